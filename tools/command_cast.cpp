#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/catalogue.hpp"
#include "formats/conversion.hpp"
#include "formats/converters.hpp"
#include "formats/error.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/files/dtype.hpp"
#include "formats/files/printable.hpp"
#include "formats/nearest.hpp"
#include "formats/text.hpp"
#include "tools/commands.hpp"
#include "tools/format_facts.hpp"
#include "tools/interruption.hpp"
#include "tools/terminal.hpp"

namespace guardbit::tools {

namespace {

struct Options {
  std::string input;
  std::string output;
  std::string to;
  std::string from;
  std::string rounding;
  std::string overflow = "ieee";
  std::string scale;
  std::string seed;
  std::vector<std::string> tensors;
  int threads = 0;
  bool json = false;
};

/// One converted tensor.
struct Cast {
  formats::Tensor tensor;
  formats::Format from;
  formats::ConversionSummary summary;
};

[[noreturn]] void refuse_overflow(const std::string& name, const formats::Format& to) {
  std::vector<std::string_view> names = {"ieee", "saturate"};
  std::string list = "ieee, saturate";
  for (const formats::Converter* row : formats::converters_to(to)) {
    names.push_back(row->name);
    list += ", " + std::string(row->name);
  }
  const auto known = formats::converter_names();
  const bool elsewhere =
      std::find(known.begin(), known.end(), formats::lower_case(name)) != known.end();
  throw formats::Error("--overflow",
                       elsewhere
                           ? "converter '" + name + "' does not convert to " + formats::name_of(to)
                           : formats::unknown_name("overflow rule", name, names),
                       list);
}

formats::Value parse_scale(const std::string& text) {
  const formats::ParsedValue number = formats::parse_value(text, "--scale");
  const formats::Value scale =
      formats::decode(formats::fp64, formats::encode(formats::fp64, number.value));
  if (scale.kind != formats::Kind::finite) {
    throw formats::Error("--scale",
                         formats::in_quotes(text) + " is not a finite FP64 number other than zero");
  }
  return scale;
}

/// All of the text: CLI11 would take -1 for 2^64 - 1.
std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw formats::Error("--seed", formats::in_quotes(text) + " is not a seed",
                         "0 to " + std::to_string(~std::uint64_t{0}));
  }
  return seed;
}

/// A converter brings its own rounding; naming another one beside it is a contradiction.
formats::ConversionOptions conversion_options(const Options& options, const formats::Format& to) {
  formats::ConversionOptions conversion;
  if (!options.rounding.empty())
    conversion.rounding = formats::require_rounding(options.rounding, "--rounding");
  const std::string overflow = formats::lower_case(options.overflow);
  if (overflow == "saturate") {
    conversion.overflow = formats::overflow_saturate;
  } else if (overflow != "ieee") {
    const formats::Converter* converter = formats::find_converter(overflow, to);
    if (converter == nullptr) refuse_overflow(options.overflow, to);
    if (!options.rounding.empty() && conversion.rounding != converter->rounding) {
      throw formats::Error(
          "--rounding",
          "converter " + std::string(converter->name) + " rounds " +
              std::string(formats::rounding_names[static_cast<std::size_t>(converter->rounding)]));
    }
    conversion = formats::options_of(*converter);
  }
  if (!options.scale.empty()) conversion.scale = parse_scale(options.scale);
  if (!options.seed.empty()) conversion.seed = parse_seed(options.seed);
  conversion.threads = options.threads;
  return conversion;
}

std::vector<formats::Tensor> select(const formats::TensorFile& file, const Options& options) {
  if (options.tensors.empty()) return file.tensors;
  std::vector<std::string_view> names;
  std::string list;
  for (const formats::Tensor& tensor : file.tensors) {
    names.push_back(tensor.name);
    if (names.size() <= 20) list += (list.empty() ? "" : ", ") + tensor.name;
  }
  if (names.size() > 20) list += ", …";
  std::vector<formats::Tensor> selected;
  for (const std::string& name : options.tensors) {
    const formats::Tensor* tensor = file.find(name);
    if (tensor == nullptr)
      throw formats::Error(options.input, formats::unknown_name("tensor", name, names), list);
    const bool repeated =
        std::any_of(selected.begin(), selected.end(),
                    [&](const formats::Tensor& other) { return other.name == name; });
    if (!repeated) selected.push_back(*tensor);
  }
  return selected;
}

/// Sub-byte codes lie densely where the file's kind has a type for that.
formats::Packing output_packing(const std::string& path, const formats::Format& to) {
  const bool dense =
      path.ends_with(".safetensors") && formats::find_dtype(to, formats::Packing::dense) != nullptr;
  return dense ? formats::Packing::dense : formats::Packing::container;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text.empty() ? "scalar" : text;
}

/// "0.4996": four significant digits of a small number.
std::string ulp_text(double ulps) {
  const auto bits = std::bit_cast<std::uint64_t>(ulps);
  return formats::to_string(formats::exact_decimal(formats::decode(formats::fp64, bits)), 4);
}

void print_table(const std::vector<Cast>& casts, const formats::Format& to) {
  Table table("lllrrrrrrrrr");
  table.add({"tensor", "shape", "from", "zeros", "infs", "NaNs", "saturated", "subnormal",
             "inexact", "of", "max ulp", "mean ulp"});
  for (const Cast& cast : casts) {
    const formats::ConversionSummary& s = cast.summary;
    table.add({paint(cast.tensor.name, Colour::bold), shape_text(cast.tensor.shape),
               formats::name_of(cast.from), std::to_string(s.zeros_made),
               std::to_string(s.infinities_made), std::to_string(s.nans_made),
               std::to_string(s.saturated), std::to_string(s.subnormals_made),
               std::to_string(s.inexact), std::to_string(s.elements), ulp_text(s.max_ulp_error),
               ulp_text(s.mean_ulp_error)});
  }
  std::cout << "to " << paint(formats::name_of(to), Colour::bold) << '\n';
  table.print(std::cout);
}

nlohmann::ordered_json to_json(const Cast& cast) {
  const formats::ConversionSummary& s = cast.summary;
  return {{"name", cast.tensor.name},
          {"shape", cast.tensor.shape},
          {"from", formats::name_of(cast.from)},
          {"to", formats::name_of(cast.tensor.format)},
          {"elements", s.elements},
          {"nans_in", s.nans_in},
          {"zeros_made", s.zeros_made},
          {"infinities_made", s.infinities_made},
          {"nans_made", s.nans_made},
          {"saturated", s.saturated},
          {"subnormals_made", s.subnormals_made},
          {"inexact", s.inexact},
          {"compared", s.compared},
          {"max_ulp_error", s.max_ulp_error},
          {"mean_ulp_error", s.mean_ulp_error}};
}

/// What can be known to fail is refused before any work.
void check_output(const std::string& path, std::size_t tensors) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".safetensors" && extension != ".npy" && extension != ".npz") {
    throw formats::Error(formats::printable(path), "unknown extension", ".safetensors, .npy, .npz");
  }
  if (extension == ".npy" && tensors != 1) {
    throw formats::Error(formats::printable(path), "a .npy file holds one tensor, not " +
                                                       std::to_string(tensors) + ": use .npz");
  }
  const formats::AtomicOutput writable(path);
}

/// Ends a conversion that was interrupted.
struct Interrupted {};

std::vector<Cast> convert(const Options& options, const formats::Format& to,
                          formats::ConversionOptions conversion,
                          const std::vector<formats::Tensor>& tensors,
                          const Interruption& interruption) {
  std::size_t total = 0;
  for (const formats::Tensor& tensor : tensors)
    total += static_cast<std::size_t>(formats::element_count(tensor.shape));
  ProgressLine progress("converting", total);
  std::size_t before = 0;
  conversion.progress = [&](std::size_t done) {
    if (interruption.asked_for()) throw Interrupted{};
    progress.update(before + done);
  };
  const formats::Packing packing = output_packing(options.output, to);
  std::vector<Cast> casts;
  casts.reserve(tensors.size());
  for (const formats::Tensor& tensor : tensors) {
    Cast cast;
    cast.from = tensor.format;
    cast.tensor = formats::convert_tensor(tensor, to, packing, conversion, cast.summary);
    before += cast.summary.elements;
    casts.push_back(std::move(cast));
  }
  return casts;
}

int run(const Options& options) {
  const formats::Format to = require_element_format(options.to, "--to");
  const formats::ConversionOptions conversion = conversion_options(options, to);
  formats::FormatOverrides overrides;
  if (!options.from.empty()) overrides.any = require_element_format(options.from, "--from");
  const formats::TensorFile file = formats::read_tensors(options.input, overrides);
  const std::vector<formats::Tensor> selected = select(file, options);

  check_output(options.output, selected.size());

  std::vector<Cast> casts;
  const Interruption interruption;
  try {
    casts = convert(options, to, conversion, selected, interruption);
  } catch (const Interrupted&) {
    std::cerr << "guardbit: interrupted: nothing written\n";
    return interruption.exit_status();
  }
  std::vector<formats::Tensor> outputs;
  outputs.reserve(casts.size());
  for (const Cast& cast : casts) outputs.push_back(cast.tensor);
  formats::write_tensors(options.output, file.metadata, outputs);
  if (options.json) {
    nlohmann::ordered_json document = {{"input", options.input}, {"output", options.output}};
    document["tensors"] = nlohmann::ordered_json::array();
    for (const Cast& cast : casts) document["tensors"].push_back(to_json(cast));
    std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    print_table(casts, to);
  }
  return interruption.asked_for() ? interruption.exit_status() : 0;
}

}  // namespace

void add_cast(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("cast", "Convert arrays from one format to another");
  const auto options = std::make_shared<Options>();
  command->add_option("IN", options->input, "A .safetensors, .npy or .npz file")
      ->type_name("FILE")
      ->required();
  command->add_option("--to", options->to, "The format to convert to")
      ->type_name("FORMAT")
      ->required();
  command
      ->add_option("--from", options->from,
                   "The format of the input, where the file does not say it")
      ->type_name("FORMAT");
  command->add_option("--rounding", options->rounding, "How to round (default nearest_even)")
      ->type_name("ROUNDING");
  command
      ->add_option("--overflow", options->overflow,
                   "ieee (default), saturate, or a converter such as pytorch")
      ->type_name("OVERFLOW");
  command
      ->add_option("--scale", options->scale,
                   "Multiply by this FP64 number, exactly, before the one rounding")
      ->type_name("VALUE");
  command->add_option("--seed", options->seed, "Of stochastic rounding (default 0)")
      ->type_name("N");
  command->add_option("--tensor", options->tensors, "Convert and write only these tensors")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--threads", options->threads, "Threads (default: all processors)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("-o,--output", options->output,
                   "The file to write; its extension names its kind")
      ->type_name("FILE")
      ->required();
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      "Example: guardbit cast w.safetensors --to e4m3 --scale 16 --overflow ml_dtypes -o "
      "w8.safetensors\n"
      "'guardbit formats --converters' lists the converters.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace guardbit::tools
