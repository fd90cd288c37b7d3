#include "tools/cast/cast_report.hpp"

#include <bit>
#include <cmath>
#include <iostream>
#include <optional>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

/// "0.4996": four significant digits of a small number.
std::string small_text(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return formats::to_string(formats::exact_decimal(formats::decode(formats::fp64, bits)), 4);
}

/// The tensor scale as FP32, whose numbers an FP64 holds.
std::optional<double> tensor_scale_of(const BlockCast& cast) {
  if (!cast.tensor.tensor_scale) return std::nullopt;
  const formats::Value& scale = *cast.tensor.tensor_scale;
  return std::ldexp(static_cast<double>(scale.significand), scale.exponent);
}

/// "exact" where there is no noise, "-" where there is no signal either.
std::string ratio_text(const formats::BlockSummary& s) {
  if (const auto decibels = s.signal_to_noise()) {
    const auto tenths = static_cast<long long>(std::llround(*decibels * 100));
    const std::string digits = std::to_string(std::abs(tenths) % 100);
    return (tenths < 0 ? "-" : "") + std::to_string(std::abs(tenths) / 100) + "." +
           (digits.size() < 2 ? "0" : "") + digits;
  }
  if (s.noise == 0 && s.signal != 0) return "exact";
  return "-";
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text.empty() ? "scalar" : text;
}

void print_table(std::span<const Cast> casts, const formats::Format& to) {
  Table table("lllrrrrrrrrr");
  table.add({"tensor", "shape", "from", "zeros", "infs", "NaNs", "saturated", "subnormal",
             "inexact", "of", "max ulp", "mean ulp"});
  for (const Cast& cast : casts) {
    const formats::ConversionSummary& s = cast.summary;
    table.add({paint(cast.tensor.name, Colour::bold), shape_text(cast.tensor.shape), cast.from,
               std::to_string(s.zeros_made), std::to_string(s.infinities_made),
               std::to_string(s.nans_made), std::to_string(s.saturated),
               std::to_string(s.subnormals_made), std::to_string(s.inexact),
               std::to_string(s.elements), small_text(s.max_ulp_error),
               small_text(s.mean_ulp_error)});
  }
  std::cout << "to " << paint(formats::name_of(to), Colour::bold) << '\n';
  table.print(std::cout);
}

void print_table(std::span<const BlockCast> casts, const std::string& to) {
  Table table("lllrrrrrrrrrrr");
  table.add({"tensor", "shape", "from", "tensor scale", "blocks", "zeros", "infs", "NaNs",
             "saturated", "inexact", "of", "max error", "mean error", "SNR dB"});
  for (const BlockCast& cast : casts) {
    const formats::BlockSummary& s = cast.summary;
    const std::optional<double> tensor_scale = tensor_scale_of(cast);
    table.add({paint(cast.tensor.elements.name, Colour::bold),
               shape_text(cast.tensor.elements.shape), formats::name_of(cast.from),
               tensor_scale ? small_text(*tensor_scale) : "-", std::to_string(s.blocks),
               std::to_string(s.zeros_made), std::to_string(s.infinities_made),
               std::to_string(s.nans_made), std::to_string(s.saturated), std::to_string(s.inexact),
               std::to_string(s.elements), small_text(s.max_error), small_text(s.mean_error()),
               ratio_text(s)});
  }
  std::cout << "to " << paint(to, Colour::bold) << '\n';
  table.print(std::cout);
  std::cout << "Errors in units of a block (its scale times the tensor scale); errors and SNR over "
               "finite numbers that still are.\n";
  for (const BlockCast& cast : casts) {
    const formats::BlockSummary& s = cast.summary;
    if (s.compared == s.elements && s.under_no_scale == 0) continue;
    std::cout << cast.tensor.elements.name << ": " << s.elements - s.compared
              << " elements not compared (" << s.nans_in << " NaN, " << s.infinities_in
              << " infinite before), " << s.under_no_scale
              << " became zero because their block's scale did\n";
  }
}

nlohmann::ordered_json to_json(const Cast& cast) {
  const formats::ConversionSummary& s = cast.summary;
  return {{"name", cast.tensor.name},
          {"shape", cast.tensor.shape},
          {"from", cast.from},
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

nlohmann::ordered_json to_json(const BlockCast& cast, const std::string& to) {
  const formats::BlockSummary& s = cast.summary;
  const auto or_null = [](const std::optional<double>& x) {
    return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
  };
  return {{"name", cast.tensor.elements.name},
          {"shape", cast.tensor.elements.shape},
          {"from", formats::name_of(cast.from)},
          {"to", to},
          {"axis", cast.axis},
          {"tensor_scale", or_null(tensor_scale_of(cast))},
          {"blocks", s.blocks},
          {"elements", s.elements},
          {"nans_in", s.nans_in},
          {"infinities_in", s.infinities_in},
          {"zeros_made", s.zeros_made},
          {"zeros_under_zero_scale", s.under_no_scale},
          {"infinities_made", s.infinities_made},
          {"nans_made", s.nans_made},
          {"saturated", s.saturated},
          {"inexact", s.inexact},
          {"compared", s.compared},
          {"measured", s.measured},
          {"max_error", s.max_error},
          {"mean_error", s.mean_error()},
          {"signal", s.signal},
          {"noise", s.noise},
          {"snr_db", or_null(s.signal_to_noise())}};
}

}  // namespace guardbit::tools
