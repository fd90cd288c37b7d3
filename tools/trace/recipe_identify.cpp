#include "tools/trace/recipe_identify.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/scaling/mx_origin.hpp"
#include "formats/block_format.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

using experiments::MxContradictions;
using experiments::MxData;
using experiments::MxOrigin;
using formats::Error;
using formats::Tensor;
using nlohmann::ordered_json;

namespace {

struct Options {
  std::string file, source_file;
  std::string elements, scales, source;
  std::string format;
  bool json = false;
};

// Below it a mode that is possible is called unlikely.
constexpr double unlikely = 1e-3;

std::string names_of(const formats::TensorFile& content) {
  std::string names;
  for (const Tensor& tensor : content.tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return formats::printable(names);
}

/// The tensor of that name; without a name, the only one that `fits`.
template <class Fits>
const Tensor& tensor_of(const std::string& file, const formats::TensorFile& content,
                        const std::string& option, const std::string& name, Fits fits) {
  if (!name.empty()) {
    if (const Tensor* tensor = content.find(name)) return *tensor;
    throw Error(option, formats::printable(file) + " has no tensor " + formats::in_quotes(name),
                names_of(content));
  }
  const Tensor* only = nullptr;
  for (const Tensor& tensor : content.tensors) {
    if (!fits(tensor)) continue;
    if (only != nullptr)
      throw Error(option, formats::printable(file) + ": say which tensor", names_of(content));
    only = &tensor;
  }
  if (only == nullptr)
    throw Error(option, formats::printable(file) + ": say which tensor", names_of(content));
  return *only;
}

bool is_mx_element(const formats::Format& format) {
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue) {
    const bool is_float = entry.format.element.encoding == formats::Encoding::floating;
    if (is_float && entry.format.scale == formats::e8m0 && entry.format.element == format)
      return true;
  }
  return false;
}

/// The element format that a word names: an element's or a block format's name.
formats::Format element_of(const std::string& word) {
  const auto block = formats::find_block_format(word);
  const auto format = block ? std::optional(block->element) : formats::find_format(word);
  if (!format || !is_mx_element(*format))
    throw Error("--format", formats::in_quotes(word) + " is no floating-point element of MX",
                "e4m3, e5m2, e3m2, e2m3, e2m1, or mxfp8_e4m3, …");
  return *format;
}

std::uint64_t count_of(const Tensor& tensor) {
  return static_cast<std::uint64_t>(formats::element_count(tensor.shape));
}

bool is_bytes(const Tensor& tensor) { return tensor.format == formats::uint8; }

bool is_scales(const Tensor& tensor) {
  const std::string name = formats::lower_case(tensor.name);
  return tensor.format == formats::e8m0 ||
         (is_bytes(tensor) && name.find("scale") != std::string::npos);
}

/// Codes, one in each byte, and how many make a row.
struct Codes {
  std::vector<std::uint8_t> codes;
  std::size_t columns = 1;
};

Codes codes_of(const Tensor& tensor, const formats::Format& format, formats::Packing packing,
               std::size_t columns, std::size_t count) {
  Codes result;
  result.columns = columns;
  result.codes.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    result.codes[i] =
        static_cast<std::uint8_t>(formats::load_code(tensor.bytes, format, packing, i));
  return result;
}

/// The elements: as the file says them, or bytes that hold one code each, or codes back to back
/// where so many fit the scales.
Codes elements_of(const Tensor& tensor, const formats::Format& format, std::size_t scales) {
  const auto stored = static_cast<std::size_t>(count_of(tensor));
  const auto last =
      tensor.shape.empty() ? std::size_t{1} : static_cast<std::size_t>(tensor.shape.back());
  if (!is_bytes(tensor)) return codes_of(tensor, format, tensor.packing, last, stored);
  const auto width = static_cast<std::size_t>(bits(format));
  const std::size_t blocks_of_one = last == 0 ? 0 : stored / last * ((last + 31) / 32);
  const bool is_packed = width < 8 && blocks_of_one != scales && last * 8 % width == 0;
  if (!is_packed) {
    for (std::size_t i = 0; i < stored; ++i) {
      if ((std::to_integer<std::uint64_t>(tensor.bytes[i]) & ~code_mask(format)) != 0)
        throw Error("--format", formats::in_quotes(tensor.name) + ": byte " + std::to_string(i) +
                                    " is no code of " + formats::name_of(format));
    }
    return codes_of(tensor, format, formats::Packing::container, last, stored);
  }
  return codes_of(tensor, format, formats::Packing::dense, last * 8 / width, stored * 8 / width);
}

std::vector<float> source_of(const Tensor& tensor) {
  if (tensor.format.encoding != formats::Encoding::floating)
    throw Error("--source", formats::in_quotes(tensor.name) + " does not hold numbers");
  std::vector<float> values(static_cast<std::size_t>(count_of(tensor)));
  formats::convert_array(tensor.format, tensor.packing, tensor.bytes, formats::fp32,
                         formats::Packing::container, std::as_writable_bytes(std::span(values)),
                         values.size());
  return values;
}

std::vector<std::string> possible_modes(const MxOrigin& origin) {
  std::vector<std::string> names;
  for (std::size_t m = 0; m < experiments::mx_modes.size(); ++m) {
    const bool is_unlikely =
        experiments::mx_modes[m] == experiments::MxMode::rceil && origin.chance_of_rceil < unlikely;
    if (origin.modes[m].count == 0 && !is_unlikely)
      names.emplace_back(formats::word_of(experiments::mx_modes[m]));
  }
  return names;
}

/// A mode and the blocks that it did not write.
struct JudgedMode {
  std::string_view name;
  const MxContradictions& blocks;
};

std::vector<JudgedMode> judged_modes(const MxOrigin& origin) {
  std::vector<JudgedMode> modes;
  for (std::size_t m = 0; m < origin.modes.size(); ++m)
    modes.push_back({formats::word_of(experiments::mx_modes[m]), origin.modes[m]});
  return modes;
}

const Columns<JudgedMode>& mode_columns() {
  using M = JudgedMode;
  static const Columns<M> columns = {
      {"", "mode", Side::left, [](const M& m) { return m.name; }},
      {"contradicting_blocks", "contradicted by", Side::right,
       [](const M& m) { return m.blocks.count; }},
      {"first", "first block", Side::right, [](const M& m) { return or_null(m.blocks.first); },
       [](const M& m) { return m.blocks.first ? std::to_string(*m.blocks.first) : "-"; }}};
  return columns;
}

ordered_json document_of(const MxOrigin& origin, const std::string& format) {
  ordered_json document = {
      {"format", format}, {"blocks", origin.blocks}, {"telling_blocks", origin.telling}};
  for (const JudgedMode& mode : judged_modes(origin))
    document["modes"][std::string(mode.name)] = mode_columns().json(mode);
  document["chance_of_rceil"] = origin.chance_of_rceil;
  document["possible"] = possible_modes(origin);
  if (origin.not_nearest_even) {
    document["elements"] = {{"not_nearest_even", *origin.not_nearest_even},
                            {"not_nearest_away", *origin.not_nearest_away}};
  }
  return document;
}

void print_text(const MxOrigin& origin, const std::string& format) {
  std::cout << format << ": " << origin.blocks << " blocks, " << origin.telling
            << " of them say something of the scale's rule\n";
  mode_columns().print(std::cout, judged_modes(origin));
  if (origin.chance_of_rceil < unlikely) {
    std::cout
        << "rceil would leave the largest element of some block lower; that none is has a chance of "
        << number(origin.chance_of_rceil, "%.1g") << '\n';
  }
  std::string names;
  for (const std::string& name : possible_modes(origin))
    names += (names.empty() ? "" : " or ") + name;
  if (origin.telling == 0) {
    std::cout << "nothing to judge by\n";
  } else if (names.empty()) {
    std::cout << paint("written by none of these modes", Colour::red) << '\n';
  } else {
    std::cout << paint("written by " + names, Colour::green) << '\n';
  }
  if (origin.not_nearest_even) {
    std::cout << "elements that differ from x over the scale: " << *origin.not_nearest_even
              << " with ties to even, " << *origin.not_nearest_away
              << " with ties away from zero\n";
  }
}

void run(const Options& options) {
  const formats::TensorFile content = formats::read_tensors(options.file);
  const Tensor& scales = tensor_of(options.file, content, "--scales", options.scales, is_scales);
  if (bits(scales.format) != 8)
    throw Error("--scales", formats::in_quotes(scales.name) + " does not hold bytes");
  const Tensor& elements =
      tensor_of(options.file, content, "--elements", options.elements, [&](const Tensor& tensor) {
        return &tensor != &scales && tensor.name != options.source &&
               (is_mx_element(tensor.format) || is_bytes(tensor));
      });
  if (options.format.empty() && !is_mx_element(elements.format))
    throw Error("--format",
                formats::in_quotes(elements.name) + " is " + formats::name_of(elements.format) +
                    ", which does not say what its codes are",
                "e4m3, e5m2, e3m2, e2m3, e2m1");
  const formats::Format format =
      options.format.empty() ? elements.format : element_of(options.format);
  if (!is_bytes(elements) && bits(elements.format) != bits(format))
    throw Error("--format",
                formats::in_quotes(elements.name) + " is " + formats::name_of(elements.format));

  const auto scale_count = static_cast<std::size_t>(count_of(scales));
  const Codes scale_codes =
      codes_of(scales, formats::uint8, formats::Packing::container, 1, scale_count);
  const Codes codes = elements_of(elements, format, scale_count);
  const MxData data = {format, codes.columns, codes.codes, scale_codes.codes};
  if (!is_consistent(data))
    throw Error(formats::printable(options.file),
                std::to_string(codes.codes.size()) + " elements in rows of " +
                    std::to_string(codes.columns) + " do not go with " +
                    std::to_string(scale_count) +
                    " scales of blocks of 32 (padded or swizzled scales are not read)");

  const std::string name = formats::name_of(format);
  MxOrigin origin;
  if (options.source.empty() && options.source_file.empty()) {
    origin = mx_origin(data);
  } else {
    const std::string& file = options.source_file.empty() ? options.file : options.source_file;
    const formats::TensorFile other = formats::read_tensors(file);
    const Tensor& source =
        tensor_of(file, other, "--source", options.source, [](const Tensor&) { return true; });
    const std::vector<float> values = source_of(source);
    if (values.size() != codes.codes.size())
      throw Error("--source", formats::in_quotes(source.name) + " has " +
                                  std::to_string(values.size()) + " elements, not " +
                                  std::to_string(codes.codes.size()));
    origin = mx_origin(data, values);
  }
  if (options.json) {
    print_json(document_of(origin, name));
  } else {
    print_text(origin, name);
  }
}

}  // namespace

void add_recipe_identify(CLI::App& recipe) {
  CLI::App* identify = recipe.add_subcommand("identify", "Which MX mode wrote a file");
  const auto options = std::make_shared<Options>();
  identify->add_option("FILE", options->file, "A file with the elements and the scales of MX data")
      ->type_name("FILE")
      ->required();
  identify->add_option("--elements", options->elements, "The tensor of element codes")
      ->type_name("TENSOR");
  identify->add_option("--scales", options->scales, "The tensor of E8M0 codes")
      ->type_name("TENSOR");
  identify
      ->add_option("--source", options->source,
                   "The tensor that was quantised, where it is there; it decides for certain")
      ->type_name("TENSOR");
  identify->add_option("--source-file", options->source_file, "The file that has it")
      ->type_name("FILE");
  identify
      ->add_option("--format", options->format,
                   "The format of the elements, where they lie in plain bytes")
      ->type_name("FORMAT");
  identify->add_flag("--json", options->json, "Print JSON");
  identify->footer(
      "Example: guardbit recipe identify weights.safetensors --elements w --scales w_scale\n"
      "Blocks of 32 lie along the last dimension; two FP4 codes in a byte have the first one low.");
  identify->callback([options] { run(*options); });
}

}  // namespace guardbit::tools
