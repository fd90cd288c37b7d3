#include "tools/products/function_probe_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "formats/text.hpp"
#include "tools/console/counted.hpp"

namespace guardbit::tools {

namespace {

using emulator::FunctionFit;
using json = nlohmann::ordered_json;

/// Functions that are shown where none gives every answer.
constexpr std::size_t most_nearest = 3;

std::string number_text(const formats::Format& format, std::uint64_t code) {
  return formats::hex_text(format, code) + " (" + formats::shortest_text(format, code) + ")";
}

/// "x 0x3f800000 (1): the unit gives …, expf …"
std::string difference_text(const FunctionProbeReport& report, const FunctionFit& fit,
                            std::size_t question) {
  std::string text;
  emulator::OperandCodes codes{};
  for (std::size_t i = 0; i < report.questions.size(); ++i) {
    codes.at(i) = report.questions[i][question];
    text += std::string(i == 0 ? "" : ", ") + emulator::operand_names.at(i) + " " +
            number_text(report.shape.operand, codes.at(i));
  }
  const std::uint64_t result = fit.function->reference(codes)[0];
  return text + ": the unit gives " +
         number_text(report.shape.result, report.answers[0][question]) + ", " +
         std::string(fit.function->name) + " " + number_text(report.shape.result, result);
}

}  // namespace

void print_function_probe(std::ostream& out, const FunctionProbeReport& report) {
  const std::size_t count = report.answers.at(0).size();
  out << report.unit << ": " << counted(count, "answer") << '\n';
  if (report.is_found()) {
    for (const FunctionFit& fit : report.fits)
      if (fit.differing == 0)
        out << "  gives every answer of " << fit.function->name << ": " << fit.function->meaning
            << '\n';
    return;
  }
  out << (report.fits.empty() ? "  no function that is known takes such operands\n"
                              : "  no function that is known gives every answer; the nearest:\n");
  for (std::size_t i = 0; i < std::min(most_nearest, report.fits.size()); ++i) {
    const FunctionFit& fit = report.fits[i];
    out << "  " << fit.function->name << ": " << fit.differing << " of " << count << " differ\n";
    for (const std::size_t question : fit.first)
      out << "    " << difference_text(report, fit, question) << '\n';
  }
}

json function_probe_json(const FunctionProbeReport& report) {
  json j = {{"unit", report.unit},
            {"questions", report.answers.at(0).size()},
            {"found", report.is_found()},
            {"functions", json::array()},
            {"nearest", json::array()}};
  for (const FunctionFit& fit : report.fits) {
    if (fit.differing == 0) j["functions"].push_back(fit.function->name);
    if (report.is_found() || j["nearest"].size() == most_nearest) continue;
    json first = json::array();
    for (const std::size_t question : fit.first) {
      json difference;
      emulator::OperandCodes codes{};
      for (std::size_t i = 0; i < report.questions.size(); ++i) {
        codes.at(i) = report.questions[i][question];
        difference[emulator::operand_names.at(i)] =
            formats::hex_text(report.shape.operand, codes.at(i));
      }
      difference["unit"] = formats::hex_text(report.shape.result, report.answers[0][question]);
      difference["function"] =
          formats::hex_text(report.shape.result, fit.function->reference(codes)[0]);
      first.push_back(difference);
    }
    j["nearest"].push_back(
        {{"function", fit.function->name}, {"differing", fit.differing}, {"first", first}});
  }
  return j;
}

}  // namespace guardbit::tools
