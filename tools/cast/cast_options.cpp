#include "tools/cast/cast_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "formats/codec.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"

namespace guardbit::tools {

namespace {

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

formats::ScaleRule parse_scale_rule(const std::string& text) {
  switch (formats::require_word<ScaleChoice>("scale rule", text, "--scale-rule")) {
    case ScaleChoice::exponents: break;
    case ScaleChoice::without_overflow: return formats::scale_without_overflow;
    case ScaleChoice::nearest: return formats::scale_nearest;
  }
  return formats::scale_of_exponents;
}

}  // namespace

formats::ConversionOptions conversion_options(const CastOptions& options,
                                              const formats::Format& to) {
  formats::ConversionOptions conversion;
  if (!options.rounding.empty())
    conversion.rounding =
        formats::require_word<formats::Rounding>("rounding", options.rounding, "--rounding");
  const std::string overflow = formats::lower_case(options.overflow);
  if (overflow == "saturate") {
    conversion.overflow = formats::overflow_saturate;
  } else if (!overflow.empty() && overflow != "ieee") {
    const formats::Converter* converter = formats::find_converter(overflow, to);
    if (converter == nullptr) refuse_overflow(options.overflow, to);
    if (!options.rounding.empty() && conversion.rounding != converter->rounding) {
      throw formats::Error("--rounding", "converter " + std::string(converter->name) + " rounds " +
                                             std::string(formats::word_of(converter->rounding)));
    }
    conversion = formats::options_of(*converter);
  }
  if (!options.scale.empty()) conversion.scale = parse_scale(options.scale);
  if (!options.seed.empty()) conversion.seed = parse_seed(options.seed);
  conversion.threads = options.threads;
  return conversion;
}

formats::BlockQuantisationOptions block_options(const CastOptions& options,
                                                const formats::BlockFormat& to) {
  formats::BlockQuantisationOptions block;
  if (!options.scale.empty()) {
    throw formats::Error("--scale", "blocks choose their scales (--scale-rule, --tensor-scale)");
  }
  if (!options.rounding.empty())
    block.rounding =
        formats::require_word<formats::Rounding>("rounding", options.rounding, "--rounding");
  const std::string overflow = formats::lower_case(options.overflow);
  if (overflow == "ieee") {
    block.overflow = formats::overflow_ieee;
  } else if (!overflow.empty() && overflow != "saturate") {
    throw formats::Error(
        "--overflow", formats::in_quotes(options.overflow) + " is no rule for elements of blocks",
        "saturate, ieee");
  }
  // OCP's rule for the scales that are powers of two; others have fractions to round.
  block.rule = to.scale == formats::e8m0 ? formats::scale_of_exponents : formats::scale_nearest;
  if (!options.scale_rule.empty()) block.rule = parse_scale_rule(options.scale_rule);
  if (!options.seed.empty()) block.seed = parse_seed(options.seed);
  block.threads = options.threads;
  return block;
}

std::optional<formats::Value> given_tensor_scale(const CastOptions& options,
                                                 const formats::BlockFormat& to) {
  const std::string& text = options.tensor_scale;
  if (!to.tensor_scale) {
    if (text.empty()) return std::nullopt;
    throw formats::Error("--tensor-scale", options.to + " has no tensor scale");
  }
  if (text.empty() || formats::lower_case(text) == "auto") return std::nullopt;
  const formats::ParsedValue number = formats::parse_value(text, "--tensor-scale");
  const formats::Value scale =
      formats::decode(*to.tensor_scale, formats::encode(*to.tensor_scale, number.value));
  if (scale.kind != formats::Kind::finite || scale.negative) {
    throw formats::Error("--tensor-scale",
                         formats::in_quotes(text) + " is no finite number above zero of " +
                             formats::name_of(*to.tensor_scale),
                         "auto, or such a number");
  }
  return scale;
}

std::size_t block_axis(const CastOptions& options, const std::vector<std::int64_t>& shape,
                       const std::string& what) {
  const auto dimensions = static_cast<std::int64_t>(shape.size());
  if (dimensions == 0) throw formats::Error(what, "a scalar has no axis for blocks to lie along");
  const std::int64_t axis = options.axis.value_or(-1);
  if (axis < -dimensions || axis >= dimensions) {
    throw formats::Error(what, "no axis " + std::to_string(axis),
                         std::to_string(-dimensions) + " to " + std::to_string(dimensions - 1));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

void refuse_block_options(const CastOptions& options, bool from_blocks) {
  const auto refuse = [](const std::string& option) {
    std::string names;
    for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue)
      names.append(names.empty() ? "" : ", ").append(entry.name);
    throw formats::Error(option, "only for block formats", names);
  };
  if (!options.scale_rule.empty()) refuse("--scale-rule");
  if (!options.tensor_scale.empty()) refuse("--tensor-scale");
  if (options.axis && !from_blocks) refuse("--axis");
}

std::vector<formats::Tensor> selected_tensors(const formats::TensorFile& file,
                                              const CastOptions& options) {
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

formats::Packing output_packing(const std::string& path, const formats::Format& to) {
  const bool dense =
      path.ends_with(".safetensors") && formats::find_dtype(to, formats::Packing::dense) != nullptr;
  return dense ? formats::Packing::dense : formats::Packing::container;
}

}  // namespace guardbit::tools
