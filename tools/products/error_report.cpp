#include "tools/products/error_report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "emulator/explain/explain.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/printable.hpp"
#include "formats/text.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using experiments::Deviation;
using experiments::ErrorAnalysis;
using experiments::HeatMap;
using nlohmann::ordered_json;

constexpr std::int64_t map_rows = 24, map_columns = 64;

/// Batch entry, row and column of an element.
struct ElementPlace {
  std::int64_t batch, row, column;
};
ElementPlace place_of(const emulator::CodeMatrix& d, std::int64_t at) {
  return {at / (d.rows * d.columns), at / d.columns % d.rows, at % d.columns};
}

/// Each character stands for twice the error of the one before it.
constexpr std::string_view shades = " .:-=+*#%@";

char shade_of(double error, double largest) {
  if (std::isnan(error)) return '/';
  if (std::isinf(error)) return '!';
  if (error == 0) return shades.front();
  const double halvings = std::floor(std::log2(largest / error));
  const auto below = static_cast<std::size_t>(std::min(halvings, 8.0));
  return shades[shades.size() - 1 - below];
}

void print_map(std::ostream& out, const ErrorReport& report) {
  if (report.analysis.largest_ulps == 0 && report.analysis.specials.disagreements() == 0) return;
  const HeatMap map = error_map(report, map_rows, map_columns);
  double largest = 0;
  for (const double x : map.largest)
    if (std::isfinite(x)) largest = std::max(largest, x);
  out << "\nlargest error of each " << map.tile_rows << " x " << map.tile_columns << " tile, "
      << (report.sums.empty() ? "in ulp" : "as a part of |A||B|");
  if (report.d.batch > 1) out << ", of batch entry " << mapped_batch(report);
  out << '\n';
  for (std::int64_t i = 0; i < map.rows; ++i) {
    out << "  |";
    for (std::int64_t j = 0; j < map.columns; ++j)
      out << shade_of(map.largest[static_cast<std::size_t>(i * map.columns + j)], largest);
    out << "|\n";
  }
  out << "  '@' from " << number(largest / 2) << " to " << number(largest)
      << ", each of '%#*+=-:.' half as much as the one before it, ' ' none, '!' an infinity or a NaN on one side only, '/' nothing to compare: no element is finite on both sides\n";
}

void print_specials(std::ostream& out, const ErrorAnalysis& x) {
  const experiments::SpecialCounts& s = x.specials;
  if (x.compared == x.outputs) return;
  out << "apart    ";
  bool first = true;
  const auto item = [&](std::int64_t count, const char* what) {
    if (count == 0) return;
    out << (first ? "" : ", ") << count << ' ' << what;
    first = false;
  };
  item(s.nan_both, "NaN in both");
  item(s.nan_result, "NaN in the result only");
  item(s.nan_reference, "NaN in the reference only");
  item(s.infinity_both, "infinite as they should be");
  item(s.infinity_result, "infinite in the result only");
  item(s.infinity_reference, "infinite in the reference only");
  out << '\n';
}

void print_bounds(std::ostream& out, const ErrorReport& report) {
  const ErrorAnalysis& x = report.analysis;
  if (!report.plan) return;
  const auto line = [&](const char* name, double relative, const experiments::BoundCheck& check) {
    out << name << number(relative) << " |A||B| + " << number(report.bound.last)
        << " |D|: the largest error is " << number(check.largest_part) << " of it, "
        << paint(check.holds() ? "holds" : "does not hold",
                 check.holds() ? Colour::green : Colour::red)
        << '\n';
  };
  line("bound    deterministic ", report.bound.sum, *x.deterministic);
  line("         probabilistic ", report.bound.likely, *x.probabilistic);
  out << "         lambda = " << number(report.bound.lambda) << ", "
      << number(100 * report.bound.confidence) << " % for all outputs together"
      << (report.bound.mean_zero
              ? "\n"
              : ", if errors have mean zero: this plan truncates, so sums of one sign drift\n");
}

}  // namespace

std::int64_t mapped_batch(const ErrorReport& report) {
  return report.analysis.worst ? place_of(report.d, *report.analysis.worst).batch : 0;
}

HeatMap error_map(const ErrorReport& report, std::int64_t most_rows, std::int64_t most_columns) {
  return experiments::heat_map(report.deviations, report.d, report.sums, mapped_batch(report),
                               most_rows, most_columns);
}

void print(std::ostream& out, const ErrorReport& report, bool with_map) {
  const ErrorAnalysis& x = report.analysis;
  out << formats::printable(report.file) << " against "
      << (report.reference == "exact" ? "the exact product" : formats::printable(report.reference))
      << ": " << counted(x.outputs, "output") << " in " << formats::name_of(report.d.format) << ", "
      << std::fixed << std::setprecision(2) << report.seconds << std::defaultfloat << " s\n";
  print_specials(out, x);
  const auto share = [&](std::int64_t count) {
    return number(x.compared == 0
                      ? 0
                      : 100 * static_cast<double>(count) / static_cast<double>(x.compared)) +
           " %";
  };
  out << "equal    " << x.equal << " of " << x.compared << " (" << share(x.equal)
      << "), within half an ulp " << x.within_half_ulp << " (" << share(x.within_half_ulp) << ")\n"
      << "ulp      largest " << number(x.largest_ulps) << ", mean " << number(x.mean_ulps)
      << ", root mean square " << number(x.root_mean_square_ulps) << '\n'
      << "relative largest " << number(x.largest_relative) << ", mean " << number(x.mean_relative)
      << '\n'
      << "norms    Frobenius " << number(x.frobenius) << ", largest error by mean magnitude "
      << number(x.largest_by_mean) << '\n';
  if (x.largest_componentwise)
    out << "|A||B|   largest " << number(*x.largest_componentwise) << ", mean "
        << number(*x.mean_componentwise) << '\n';
  out << "bias     " << number(x.bias_ulps) << " ulp; of the magnitudes "
      << number(x.bias_magnitude)
      << (x.bias_magnitude < 0   ? " (toward zero)"
          : x.bias_magnitude > 0 ? " (away from zero)"
                                 : "")
      << '\n';
  print_bounds(out, report);
  if (x.worst) {
    const ElementPlace at = place_of(report.d, *x.worst);
    const Deviation& worst = report.deviations[static_cast<std::size_t>(*x.worst)];
    out << "worst    ";
    if (report.d.batch > 1) out << "batch entry " << at.batch << ", ";
    out << "row " << at.row << ", column " << at.column << ": "
        << emulator::code_text(report.d.format, report.d[*x.worst]) << " where it should be "
        << std::setprecision(17) << worst.reference << std::setprecision(6) << '\n';
  }
  if (with_map) print_map(out, report);
}

ordered_json to_json(const ErrorReport& report) {
  const ErrorAnalysis& x = report.analysis;
  const experiments::SpecialCounts& s = x.specials;
  ordered_json j = {
      {"file", report.file},
      {"reference", report.reference},
      {"format", formats::name_of(report.d.format)},
      {"batch", report.d.batch},
      {"rows", report.d.rows},
      {"columns", report.d.columns},
      {"outputs", x.outputs},
      {"compared", x.compared},
      {"nan",
       {{"both", s.nan_both}, {"result_only", s.nan_result}, {"reference_only", s.nan_reference}}},
      {"infinity",
       {{"both", s.infinity_both},
        {"result_only", s.infinity_result},
        {"reference_only", s.infinity_reference}}},
      {"equal", x.equal},
      {"within_half_ulp", x.within_half_ulp},
      {"ulp", {{"max", x.largest_ulps}, {"mean", x.mean_ulps}, {"rms", x.root_mean_square_ulps}}},
      {"relative", {{"max", x.largest_relative}, {"mean", x.mean_relative}}},
      {"absolute", {{"max", x.largest_error}, {"mean", x.mean_error}}},
      {"normwise", {{"frobenius", x.frobenius}, {"max_by_mean", x.largest_by_mean}}},
      {"componentwise",
       {{"max", or_null(x.largest_componentwise)}, {"mean", or_null(x.mean_componentwise)}}},
      {"bias",
       {{"error", x.bias_error},
        {"ulp", x.bias_ulps},
        {"relative", x.bias_relative},
        {"magnitude", x.bias_magnitude}}},
      {"bounds", nullptr},
      {"worst", nullptr}};
  if (report.plan) {
    const auto check = [](double relative, const experiments::BoundCheck& bound) {
      return ordered_json{
          {"relative", relative}, {"largest_part", bound.largest_part}, {"holds", bound.holds()}};
    };
    j["bounds"] = {{"plan", emulator::to_text(*report.plan)},
                   {"deterministic", check(report.bound.sum, *x.deterministic)},
                   {"probabilistic", check(report.bound.likely, *x.probabilistic)},
                   {"rounding_of_d", report.bound.last},
                   {"lambda", report.bound.lambda},
                   {"confidence", report.bound.confidence},
                   {"mean_zero", report.bound.mean_zero}};
  }
  if (x.worst) {
    const ElementPlace at = place_of(report.d, *x.worst);
    const Deviation& worst = report.deviations[static_cast<std::size_t>(*x.worst)];
    j["worst"] = {
        {"batch", at.batch},      {"row", at.row},
        {"column", at.column},    {"code", formats::hex_text(report.d.format, report.d[*x.worst])},
        {"result", worst.result}, {"reference", worst.reference},
        {"error", worst.error},   {"ulp", worst.ulps}};
  }
  const HeatMap map = error_map(report, map_rows, map_columns);
  ordered_json tiles = ordered_json::array();
  for (std::int64_t i = 0; i < map.rows; ++i) {
    const auto row = map.largest.begin() + i * map.columns;
    tiles.push_back(std::vector<double>(row, row + map.columns));
  }
  j["heat_map"] = {{"statistic", report.sums.empty() ? "ulp" : "componentwise"},
                   {"batch", mapped_batch(report)},
                   {"tile_rows", map.tile_rows},
                   {"tile_columns", map.tile_columns},
                   {"max", tiles}};
  j["seconds"] = report.seconds;
  return j;
}

}  // namespace guardbit::tools
