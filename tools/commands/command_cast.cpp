#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/conversion/counted_conversion.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/cast/cast_blocks.hpp"
#include "tools/cast/cast_options.hpp"
#include "tools/cast/cast_report.hpp"
#include "tools/cast/cast_run.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"

namespace guardbit::tools {

namespace {

/// Elements of blocks without their scales are other numbers: says so on standard error.
void warn_of_scales(const formats::TensorFile& file, const std::vector<formats::Tensor>& tensors) {
  for (const formats::Tensor& tensor : tensors) {
    const formats::Tensor* const scales = file.find(tensor.name + scales_suffix);
    if (scales == nullptr || formats::bits(tensor.format) > 8 || formats::bits(scales->format) > 8)
      continue;
    std::cerr << "guardbit: remark: " << formats::in_quotes(tensor.name) << " has scales, "
              << formats::in_quotes(scales->name)
              << ", which are not applied: --from and a block format such as mxfp8_e4m3 applies "
                 "them\n";
  }
}

int cast_elements(const CastOptions& options) {
  const formats::Format to = require_element_format(options.to, "--to");
  formats::ConversionOptions conversion = conversion_options(options, to);
  refuse_block_options(options, false);
  formats::FormatOverrides overrides;
  if (!options.from.empty()) overrides.any = require_element_format(options.from, "--from");
  const formats::TensorFile file = formats::read_tensors(options.input, overrides);
  const std::vector<formats::Tensor> tensors = selected_tensors(file, options);
  if (options.from.empty()) warn_of_scales(file, tensors);
  const formats::Packing packing = output_packing(options.output, to);
  Casting<Cast> casting;
  casting.to = formats::name_of(to);
  const auto described = [&](const formats::Tensor& tensor) {
    return formats::Tensor{tensor.name, to, packing, tensor.shape, {}, nullptr};
  };
  casting.parts = [&](const formats::Tensor& tensor) { return std::vector{described(tensor)}; };
  casting.convert = [&](const formats::Tensor& tensor,
                        const std::vector<formats::TensorWriter>& parts,
                        const CastProgress& progress) {
    conversion.progress = progress;
    const formats::TensorWriter& part = parts.front();
    const auto count = static_cast<std::size_t>(formats::element_count(tensor.shape));
    return Cast{described(tensor), formats::name_of(tensor.format),
                formats::convert_codes(tensor.format, tensor.packing, tensor.bytes, to,
                                       part.packing, part.write, count, conversion)};
  };
  return run_cast(options, file, tensors, casting);
}

int run(const CastOptions& options) {
  const auto to = formats::find_block_format(options.to);
  const auto from = formats::find_block_format(options.from);
  if (to && from) {
    throw formats::Error("--to",
                         "from blocks to blocks goes by way of numbers: cast --to fp32 first");
  }
  if (to) return cast_to_blocks(options, *to);
  if (from) return cast_from_blocks(options, *from);
  return cast_elements(options);
}

}  // namespace

void add_cast(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("cast", "Convert arrays from one format to another");
  const auto options = std::make_shared<CastOptions>();
  command->add_option("IN", options->input, "A file of tensors: " + formats::tensor_extensions())
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--to", options->to,
          "The format to convert to; a block format makes elements NAME, scales NAME_scale and, for nvfp4, NAME_tensor_scale")
      ->type_name("FORMAT")
      ->required();
  command
      ->add_option(
          "--from", options->from,
          "The format of the input, where the file does not say it, or the block format of which it has elements and scales")
      ->type_name("FORMAT");
  command->add_option("--rounding", options->rounding, "How to round (default nearest_even)")
      ->type_name("ROUNDING");
  command
      ->add_option(
          "--overflow", options->overflow,
          "ieee, saturate, or a converter such as pytorch (default ieee, of blocks saturate)")
      ->type_name("OVERFLOW");
  command
      ->add_option("--scale", options->scale,
                   "Multiply by this FP64 number, exactly, before the one rounding")
      ->type_name("VALUE");
  command
      ->add_option(
          "--scale-rule", options->scale_rule,
          "How blocks choose scales: exponents (OCP's floor, default of MX), without_overflow (rounded up) or nearest (default of nvfp4)")
      ->type_name("RULE:" + type_of_words<ScaleChoice>());
  command
      ->add_option(
          "--tensor-scale", options->tensor_scale,
          "Of nvfp4: an FP32 number, or auto (default): the largest magnitude over 448 * 6")
      ->type_name("VALUE");
  command
      ->add_option("--axis", options->axis,
                   "The axis along which blocks lie (default -1, the last)")
      ->type_name("N");
  command->add_option("--seed", options->seed, "Of stochastic rounding (default 0)")
      ->check(below_zero)
      ->type_name("N");
  command->add_option("--tensor", options->tensors, "Convert and write only these tensors")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_threads_option(*command, options->threads);
  command
      ->add_option("-o,--output", options->output,
                   "The file to write; its extension names its kind")
      ->type_name("FILE")
      ->required();
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      "Example: guardbit cast w.safetensors --to e4m3 --scale 16 --overflow ml_dtypes -o w8.safetensors\n"
      "Example: guardbit cast w.safetensors --to nvfp4 -o w4.safetensors; back: --from nvfp4 --to fp32\n"
      "'guardbit formats --converters' lists the converters.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace guardbit::tools
