#include "tools/products/error_report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
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
  if (largest != 0)
    out << "  '@' from " << number(largest / 2) << " to " << number(largest)
        << ", each of '%#*+=-:.' half as much as the one before it, ' ' none, ";
  else
    out << "  ' ' no error, ";
  out << "'!' an infinity or a NaN on one side only, '/' nothing to compare: no element is finite on both sides\n";
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

/// What is judged, term by term.
std::string formula(const ErrorReport& report, double relative) {
  const experiments::ErrorBound& x = report.bound;
  std::string text = number(relative) + " |A||B|";
  if (x.last != 0) text += " + " + number(x.last) + " |D|";
  if (x.absolute != 0) text += " + " + number(x.absolute);
  return text;
}

void print_bounds(std::ostream& out, const ErrorReport& report) {
  const ErrorAnalysis& x = report.analysis;
  if (!report.plan) return;
  const auto line = [&](const char* name, double relative, const experiments::BoundCheck& check) {
    out << name << formula(report, relative) << ": ";
    if (check.judged == 0) {
      out << "nothing to judge\n";
      return;
    }
    out << "the largest error is " << number(check.largest_part) << " of it, "
        << paint(check.holds() ? "holds" : "does not hold",
                 check.holds() ? Colour::green : Colour::red)
        << '\n';
  };
  line("bound    deterministic ", report.bound.sum, *x.deterministic);
  line("         probabilistic ", report.bound.likely, *x.probabilistic);
  if (report.has_small_factors)
    out << "         factors below " << number(report.bound.least_a) << " of A and "
        << number(report.bound.least_b) << " of B count as these in |A||B|\n";
  if (const std::int64_t out_of_reach = x.compared - x.deterministic->judged; out_of_reach != 0)
    out << "         not judged: " << counted(out_of_reach, "output")
        << " that may overflow, in D or on the way\n";
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
  // Of no element there is no figure.
  const auto figure = [&](double value) { return x.compared == 0 ? "-" : number(value); };
  const auto share = [&](std::int64_t count) {
    return figure(100 * static_cast<double>(count) / static_cast<double>(x.compared)) +
           (x.compared == 0 ? "" : " %");
  };
  out << "equal    " << x.equal << " of " << x.compared << " (" << share(x.equal)
      << "), within half an ulp " << x.within_half_ulp << " (" << share(x.within_half_ulp) << ")\n"
      << "ulp      largest " << figure(x.largest_ulps) << ", mean " << figure(x.mean_ulps)
      << ", root mean square " << figure(x.root_mean_square_ulps) << '\n'
      << "relative largest " << figure(x.largest_relative) << ", mean " << figure(x.mean_relative)
      << '\n'
      << "norms    Frobenius " << figure(x.frobenius) << ", largest error by mean magnitude "
      << figure(x.largest_by_mean) << '\n';
  if (x.largest_componentwise)
    out << "|A||B|   largest " << figure(*x.largest_componentwise) << ", mean "
        << figure(*x.mean_componentwise) << '\n';
  out << "bias     " << figure(x.bias_ulps) << (x.compared == 0 ? "" : " ulp")
      << "; of the magnitudes " << figure(x.bias_magnitude)
      << (x.bias_magnitude < 0   ? " (toward zero)"
          : x.bias_magnitude > 0 ? " (away from zero)"
                                 : "")
      << '\n';
  print_bounds(out, report);
  if (x.worst) {
    const ElementPlace at = place_of(report.d, *x.worst);
    const Deviation worst = report.deviations[static_cast<std::size_t>(*x.worst)];
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
  // Of no element there is no figure.
  const auto figure = [&](double value) {
    return x.compared == 0 ? ordered_json(nullptr) : ordered_json(value);
  };
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
      {"ulp",
       {{"max", figure(x.largest_ulps)},
        {"mean", figure(x.mean_ulps)},
        {"rms", figure(x.root_mean_square_ulps)}}},
      {"relative", {{"max", figure(x.largest_relative)}, {"mean", figure(x.mean_relative)}}},
      {"absolute", {{"max", figure(x.largest_error)}, {"mean", figure(x.mean_error)}}},
      {"normwise",
       {{"frobenius", figure(x.frobenius)}, {"max_by_mean", figure(x.largest_by_mean)}}},
      {"componentwise",
       {{"max", x.largest_componentwise ? figure(*x.largest_componentwise) : nullptr},
        {"mean", x.mean_componentwise ? figure(*x.mean_componentwise) : nullptr}}},
      {"bias",
       {{"error", figure(x.bias_error)},
        {"ulp", figure(x.bias_ulps)},
        {"relative", figure(x.bias_relative)},
        {"magnitude", figure(x.bias_magnitude)}}},
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
                   {"absolute", report.bound.absolute},
                   {"least_a", report.bound.least_a},
                   {"least_b", report.bound.least_b},
                   {"judged", x.deterministic->judged},
                   {"lambda", report.bound.lambda},
                   {"confidence", report.bound.confidence},
                   {"mean_zero", report.bound.mean_zero}};
  }
  if (x.worst) {
    const ElementPlace at = place_of(report.d, *x.worst);
    const Deviation worst = report.deviations[static_cast<std::size_t>(*x.worst)];
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
