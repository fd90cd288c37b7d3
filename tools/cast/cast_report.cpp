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

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

std::string text_of(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_array()) return shape_text(value.get<std::vector<std::int64_t>>());
  if (value.is_number_float()) return small_text(value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// What is said of a cast tensor, in the table under `heading` and in JSON under `key`, where they
/// are not empty.
template <class Row>
struct Column {
  std::string_view heading;
  std::string_view key;
  Json (*value)(const Row&);
  /// in the table, where it is not the value's
  std::string (*text)(const Row&) = nullptr;
};

const std::vector<Column<Cast>> cast_columns = {
    {"tensor", "name", [](const Cast& c) -> Json { return c.tensor.name; }},
    {"shape", "shape", [](const Cast& c) -> Json { return c.tensor.shape; }},
    {"from", "from", [](const Cast& c) -> Json { return c.from; }},
    {"", "to", [](const Cast& c) -> Json { return formats::name_of(c.tensor.format); }},
    {"", "elements", [](const Cast& c) -> Json { return c.summary.elements; }},
    {"", "nans_in", [](const Cast& c) -> Json { return c.summary.nans_in; }},
    {"zeros", "zeros_made", [](const Cast& c) -> Json { return c.summary.zeros_made; }},
    {"infs", "infinities_made", [](const Cast& c) -> Json { return c.summary.infinities_made; }},
    {"NaNs", "nans_made", [](const Cast& c) -> Json { return c.summary.nans_made; }},
    {"saturated", "saturated", [](const Cast& c) -> Json { return c.summary.saturated; }},
    {"subnormal", "subnormals_made",
     [](const Cast& c) -> Json { return c.summary.subnormals_made; }},
    {"inexact", "inexact", [](const Cast& c) -> Json { return c.summary.inexact; }},
    {"of", "", [](const Cast& c) -> Json { return c.summary.elements; }},
    {"", "compared", [](const Cast& c) -> Json { return c.summary.compared; }},
    {"max ulp", "max_ulp_error", [](const Cast& c) -> Json { return c.summary.max_ulp_error; }},
    {"mean ulp", "mean_ulp_error", [](const Cast& c) -> Json { return c.summary.mean_ulp_error; }},
};

const std::vector<Column<BlockCast>> block_columns = {
    {"tensor", "name", [](const BlockCast& c) -> Json { return c.tensor.elements.name; }},
    {"shape", "shape", [](const BlockCast& c) -> Json { return c.tensor.elements.shape; }},
    {"from", "from", [](const BlockCast& c) -> Json { return formats::name_of(c.from); }},
    {"", "to", [](const BlockCast& c) -> Json { return c.to; }},
    {"", "axis", [](const BlockCast& c) -> Json { return c.axis; }},
    {"tensor scale", "tensor_scale",
     [](const BlockCast& c) -> Json { return or_null(tensor_scale_of(c)); }},
    {"blocks", "blocks", [](const BlockCast& c) -> Json { return c.summary.blocks; }},
    {"", "elements", [](const BlockCast& c) -> Json { return c.summary.elements; }},
    {"", "nans_in", [](const BlockCast& c) -> Json { return c.summary.nans_in; }},
    {"", "infinities_in", [](const BlockCast& c) -> Json { return c.summary.infinities_in; }},
    {"zeros", "zeros_made", [](const BlockCast& c) -> Json { return c.summary.zeros_made; }},
    {"", "zeros_under_zero_scale",
     [](const BlockCast& c) -> Json { return c.summary.under_no_scale; }},
    {"infs", "infinities_made",
     [](const BlockCast& c) -> Json { return c.summary.infinities_made; }},
    {"NaNs", "nans_made", [](const BlockCast& c) -> Json { return c.summary.nans_made; }},
    {"saturated", "saturated", [](const BlockCast& c) -> Json { return c.summary.saturated; }},
    {"inexact", "inexact", [](const BlockCast& c) -> Json { return c.summary.inexact; }},
    {"of", "", [](const BlockCast& c) -> Json { return c.summary.elements; }},
    {"", "compared", [](const BlockCast& c) -> Json { return c.summary.compared; }},
    {"", "measured", [](const BlockCast& c) -> Json { return c.summary.measured; }},
    {"max error", "max_error", [](const BlockCast& c) -> Json { return c.summary.max_error; }},
    {"mean error", "mean_error", [](const BlockCast& c) -> Json { return c.summary.mean_error(); }},
    {"", "signal", [](const BlockCast& c) -> Json { return c.summary.signal; }},
    {"", "noise", [](const BlockCast& c) -> Json { return c.summary.noise; }},
    {"SNR dB", "snr_db",
     [](const BlockCast& c) -> Json { return or_null(c.summary.signal_to_noise()); },
     [](const BlockCast& c) { return ratio_text(c.summary); }},
};

template <class Row>
void print_columns(std::span<const Row> rows, const std::vector<Column<Row>>& columns,
                   const std::string& to) {
  std::string alignment;
  std::vector<std::string> headings;
  for (const Column<Row>& column : columns) {
    if (column.heading.empty()) continue;
    alignment += headings.size() < 3 ? 'l' : 'r';
    headings.emplace_back(column.heading);
  }
  Table table(alignment);
  table.add(headings);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const Column<Row>& column : columns) {
      if (column.heading.empty()) continue;
      cells.push_back(column.text != nullptr ? column.text(row) : text_of(column.value(row)));
    }
    cells.front() = paint(cells.front(), Colour::bold);
    table.add(cells);
  }
  std::cout << "to " << paint(to, Colour::bold) << '\n';
  table.print(std::cout);
}

template <class Row>
Json json_of(const Row& row, const std::vector<Column<Row>>& columns) {
  Json json = Json::object();
  for (const Column<Row>& column : columns) {
    if (!column.key.empty()) json[std::string(column.key)] = column.value(row);
  }
  return json;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text.empty() ? "scalar" : text;
}

void print_table(std::span<const Cast> casts, const std::string& to) {
  print_columns(casts, cast_columns, to);
}

void print_table(std::span<const BlockCast> casts, const std::string& to) {
  print_columns(casts, block_columns, to);
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

nlohmann::ordered_json to_json(const Cast& cast) { return json_of(cast, cast_columns); }

nlohmann::ordered_json to_json(const BlockCast& cast) { return json_of(cast, block_columns); }

}  // namespace guardbit::tools
