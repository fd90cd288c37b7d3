#include "tools/cast/cast_report.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "tools/console/columns.hpp"
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

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_array()) return shape_text(value.get<std::vector<std::int64_t>>());
  return value.is_number_float() ? small_text(value.get<double>()) : plain_text(value);
}

template <class Row>
Column<Row> column(const char* key, const char* head, Side side, Json (*value)(const Row&)) {
  return {key, head, side, value, [value](const Row& r) { return text_of(value(r)); }};
}

template <class Row>
Column<Row> name_column(const formats::Tensor& (*tensor)(const Row&)) {
  return {"name", "tensor", Side::left, [tensor](const Row& r) { return tensor(r).name; },
          [tensor](const Row& r) { return paint(tensor(r).name, Colour::bold); }};
}

/// A count of the summary, or what it computes of its counts; without a head it is not in the
/// table.
template <class Row, class Count>
Column<Row> count_column(const char* key, const char* head, Count count) {
  const auto value = [count](const Row& r) -> Json { return std::invoke(count, r.summary); };
  return {key, head, *head == '\0' ? Side::none : Side::right, value,
          [value](const Row& r) { return text_of(value(r)); }};
}

const Columns<Cast>& cast_columns() {
  using C = Cast;
  using S = formats::ConversionSummary;
  static const Columns<C> columns = {
      name_column<C>([](const C& c) -> const formats::Tensor& { return c.tensor; }),
      column<C>("shape", "shape", Side::left, [](const C& c) -> Json { return c.tensor.shape; }),
      column<C>("from", "from", Side::left, [](const C& c) -> Json { return c.from; }),
      column<C>("to", "", Side::none,
                [](const C& c) -> Json { return formats::name_of(c.tensor.format); }),
      count_column<C>("elements", "", &S::elements),
      count_column<C>("nans_in", "", &S::nans_in),
      count_column<C>("zeros_made", "made 0", &S::zeros_made),
      count_column<C>("infinities_made", "made inf", &S::infinities_made),
      count_column<C>("nans_made", "made NaN", &S::nans_made),
      count_column<C>("saturated", "saturated", &S::saturated),
      count_column<C>("subnormals_made", "subnormal", &S::subnormals_made),
      count_column<C>("inexact", "inexact", &S::inexact),
      count_column<C>("", "of", &S::elements),
      count_column<C>("compared", "", &S::compared),
      count_column<C>("max_ulp_error", "max ulp", &S::max_ulp_error),
      count_column<C>("mean_ulp_error", "mean ulp", &S::mean_ulp_error)};
  return columns;
}

const Columns<BlockCast>& block_columns() {
  using C = BlockCast;
  using S = formats::BlockSummary;
  static const Columns<C> columns = {
      name_column<C>([](const C& c) -> const formats::Tensor& { return c.tensor.elements; }),
      column<C>("shape", "shape", Side::left,
                [](const C& c) -> Json { return c.tensor.elements.shape; }),
      column<C>("from", "from", Side::left,
                [](const C& c) -> Json { return formats::name_of(c.from); }),
      column<C>("to", "", Side::none, [](const C& c) -> Json { return c.to; }),
      column<C>("axis", "", Side::none, [](const C& c) -> Json { return c.axis; }),
      column<C>("tensor_scale", "tensor scale", Side::right,
                [](const C& c) -> Json { return or_null(tensor_scale_of(c)); }),
      count_column<C>("blocks", "blocks", &S::blocks),
      count_column<C>("elements", "", &S::elements),
      count_column<C>("nans_in", "", &S::nans_in),
      count_column<C>("infinities_in", "", &S::infinities_in),
      count_column<C>("zeros_made", "made 0", &S::zeros_made),
      count_column<C>("zeros_under_zero_scale", "", &S::under_no_scale),
      count_column<C>("infinities_made", "made inf", &S::infinities_made),
      count_column<C>("nans_made", "made NaN", &S::nans_made),
      count_column<C>("saturated", "saturated", &S::saturated),
      count_column<C>("inexact", "inexact", &S::inexact),
      count_column<C>("", "of", &S::elements),
      count_column<C>("compared", "", &S::compared),
      count_column<C>("measured", "", &S::measured),
      count_column<C>("max_error", "max error", &S::max_error),
      count_column<C>("mean_error", "mean error", &S::mean_error),
      count_column<C>("signal", "", &S::signal),
      count_column<C>("noise", "", &S::noise),
      {"snr_db", "SNR dB", Side::right,
       [](const C& c) -> Json { return or_null(c.summary.signal_to_noise()); },
       [](const C& c) { return ratio_text(c.summary); }}};
  return columns;
}

template <class Row>
void print_columns(std::span<const Row> rows, const Columns<Row>& columns, const std::string& to) {
  std::cout << "to " << paint(to, Colour::bold) << '\n';
  columns.print(std::cout, rows);
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text.empty() ? "scalar" : text;
}

void print_table(std::span<const Cast> casts, const std::string& to) {
  print_columns(casts, cast_columns(), to);
}

void print_table(std::span<const BlockCast> casts, const std::string& to) {
  print_columns(casts, block_columns(), to);
  std::cout
      << "Errors in units of a block (its scale times the tensor scale); errors and SNR over finite numbers that still are.\n";
  for (const BlockCast& cast : casts) {
    const formats::BlockSummary& s = cast.summary;
    if (s.compared == s.elements && s.under_no_scale == 0) continue;
    std::cout << cast.tensor.elements.name << ": " << s.elements - s.compared
              << " elements not compared (" << s.nans_in << " NaN, " << s.infinities_in
              << " infinite before), " << s.under_no_scale
              << " became zero because their block's scale did\n";
  }
}

nlohmann::ordered_json to_json(const Cast& cast) { return cast_columns().json(cast); }

nlohmann::ordered_json to_json(const BlockCast& cast) { return block_columns().json(cast); }

}  // namespace guardbit::tools
