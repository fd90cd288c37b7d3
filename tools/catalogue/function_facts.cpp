#include "tools/catalogue/function_facts.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/largest_errors.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/joined.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using emulator::Function;
using emulator::FunctionErrors;
using emulator::ProgramStep;
using formats::Format;
namespace mufu = emulator::mufu;

std::string decimal_text(std::uint64_t code, const Format& format = formats::fp32) {
  return formats::shortest_text(format, code);
}
std::string code_text(std::uint64_t code, const Format& format = formats::fp32) {
  return formats::hex_text(format, code);
}
std::string number_text(std::uint64_t code, const Format& format = formats::fp32) {
  return code_text(code, format) + "  " + decimal_text(code, format);
}

std::string largest_error_text(const Function& function) {
  const auto* const error = emulator::find_largest_error(function);
  if (error == nullptr) return "";
  char text[32];
  std::snprintf(text, sizeof text, error->ulp < 1e4 ? "%.4f" : "%.3e", error->ulp);
  return text;
}
std::vector<std::string> largest_error_place(const Function& function) {
  const auto* const error = emulator::find_largest_error(function);
  std::vector<std::string> codes;
  if (error == nullptr || !error->has_place()) return codes;
  for (std::size_t i = 0; i < function.operands; ++i)
    codes.push_back(code_text(error->at.at(i), function.formats.operands.at(i)));
  return codes;
}
std::string asked_text(const Function& function) {
  const auto* const error = emulator::find_largest_error(function);
  if (error == nullptr) return "";
  switch (error->asked) {
    case emulator::ErrorInputs::all: return "all inputs";
    case emulator::ErrorInputs::every_1009th: return "every 1009th input";
    case emulator::ErrorInputs::drawn: return "2^20 drawn inputs";
    case emulator::ErrorInputs::definition: return "none: it rounds once";
  }
  return "";
}

const Columns<Function>& function_columns() {
  static const Columns<Function> columns = {
      {"function", "function", Side::left, [](const Function& f) { return f.name; }, {}, 0, true},
      {"arch", "machine", Side::left, [](const Function& f) { return f.arch; }},
      {"operands", "operands", Side::right, [](const Function& f) { return f.operands; }},
      {"format", "format", Side::left, [](const Function& f) { return operand_formats_text(f); }},
      {"meaning", "computes", Side::left, [](const Function& f) { return f.meaning; }},
      {"largest_error_ulp", "largest error, ulp", Side::right,
       [](const Function& f) {
         const auto* const error = emulator::find_largest_error(f);
         return error == nullptr ? absent() : nlohmann::ordered_json(error->ulp);
       },
       largest_error_text},
      {"largest_error_at", "at", Side::left,
       [](const Function& f) {
         const std::vector<std::string> codes = largest_error_place(f);
         return codes.empty() ? absent() : nlohmann::ordered_json(codes);
       },
       [](const Function& f) { return formats::joined(largest_error_place(f), " "); }},
      {"largest_error_of", "of", Side::left,
       [](const Function& f) {
         const auto* const error = emulator::find_largest_error(f);
         return error == nullptr ? absent()
                                 : nlohmann::ordered_json(formats::word_of(error->asked));
       },
       asked_text},
      {"evidence", "evidence", Side::left,
       [](const Function& f) { return formats::word_of(f.evidence.basis); }},
      {"source", "source", Side::left, [](const Function& f) { return f.evidence.source; }}};
  return columns;
}

/// A double with so many digits after the point, or significant ones.
std::string fixed_text(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}
/// What the host's mathematical library gives: as many digits as all of them agree in.
std::string library_text(double x) {
  if (std::isnan(x)) return "nan";  // whose sign differs, too
  char text[64];
  std::snprintf(text, sizeof text, "%.12g", x);
  return text;
}
std::string double_text(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", x);
  return text;
}

std::uint64_t rounded(double exact, const Format& format) {
  constexpr formats::Overflow one_nan = {.nan = formats::Overflow::Nan::all_ones};
  return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(exact), format,
                          formats::Rounding::nearest_even, one_nan);
}

void print_fact(const std::string& label, const std::string& text) {
  std::cout << "  " << label << std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') << text
            << '\n';
}

std::string step_text(const mufu::FormStep& step) {
  const std::string word(formats::word_of(step.operation));
  return step.operation == mufu::StepOperation::squared
             ? word
             : word + " " + decimal_text(std::bit_cast<std::uint32_t>(step.constant));
}

/// The unit's part of a result: its argument in FP32, and the steps around it.
struct UnitPart {
  const mufu::UnitFunction* function;
  mufu::Scaling steps;
  std::uint32_t argument;
  /// of a high word, beside the argument
  int scale;
  mufu::Evaluation evaluation;
};

UnitPart unit_part(const Function& function, std::uint64_t x) {
  if (function.formatted_form != nullptr) {
    const mufu::UnitFunction& f = *function.formatted_form->function;
    const mufu::UnitArgument argument = mufu::unit_argument(*function.formatted_form, x);
    return {&f, {}, argument.code, argument.exponent, mufu::evaluate(f, argument.code)};
  }
  const mufu::SpecialFunctionForm& form = *function.form;
  const auto code = static_cast<std::uint32_t>(x);
  const mufu::Scaling steps = mufu::scaling_of(form, code);
  const std::uint32_t argument =
      bits(mufu::apply(steps.before, emulator::ReferenceNumber::of(code)));
  return {form.function, steps, argument, 0, mufu::evaluate(*form.function, argument)};
}

void print_unit(const Function& function, std::uint64_t x) {
  const UnitPart part = unit_part(function, x);
  const mufu::UnitFunction& f = *part.function;
  const mufu::Evaluation& e = part.evaluation;
  if (function.formatted_form != nullptr)
    print_fact("in fp32",
               number_text(part.argument) +
                   (part.scale == 0 ? "" : ", result times 2^" + std::to_string(part.scale)));
  if (part.steps.before.operation != mufu::StepOperation::none)
    print_fact("before", step_text(part.steps.before) + ": " + number_text(part.argument));
  if (e.special != mufu::Special::none) {
    print_fact("special", std::string(formats::word_of(e.special)));
  } else {
    const mufu::Interpolator& table = f.binades[static_cast<std::size_t>(e.binade)];
    const mufu::Place place = mufu::place_of(table, e.reduced.fraction);
    const mufu::Segment& s = table.segments[place.segment];
    const auto in_units = [](std::int64_t count, int exponent) {
      return double_text(std::ldexp(static_cast<double>(count), exponent));
    };
    print_fact("reduction", std::string(formats::word_of(f.reduction)) + ": exponent " +
                                std::to_string(e.reduced.exponent) + ", fraction 0x" +
                                hex_digits(e.reduced.fraction, 6) +
                                (e.reduced.negative ? ", negative" : ""));
    if (e.is_exact_one) {
      print_fact("T", "1, exactly");
    } else {
      print_fact("segment", std::to_string(place.segment) + " of " +
                                std::to_string(table.segments.size()) +
                                (f.binade_count > 1 ? ", table " + std::to_string(e.binade) : ""));
      print_fact("", "C0 " + in_units(s.c0, table.grid.c0) + ", C1 " +
                         in_units(s.c1, table.grid.c1) + ", C2 " + in_units(s.c2, table.grid.c2) +
                         ", bias " + in_units(table.bias, -mufu::guard_bits) + "; units U = 2^" +
                         std::to_string(f.unit_exponent));
      print_fact("x", std::to_string(place.offset) + " / 2^" + std::to_string(mufu::offset_bits));
      print_fact("S(x)", std::to_string(mufu::square(f.squarer, place.offset)) + " / 2^" +
                             std::to_string(2 * mufu::offset_bits - f.squarer.lowest_column));
      print_fact("T", in_units(e.interpolated, -mufu::guard_bits) + " U");
    }
    print_fact("cut", number_text(e.code));
  }
  if (part.steps.after.operation != mufu::StepOperation::none)
    print_fact("after", step_text(part.steps.after));
}

nlohmann::ordered_json unit_json(const Function& function, std::uint64_t x) {
  const UnitPart part = unit_part(function, x);
  const mufu::Evaluation& e = part.evaluation;
  nlohmann::ordered_json j = {{"argument", code_text(part.argument)},
                              {"special", formats::word_of(e.special)}};
  if (e.special == mufu::Special::none) {
    const mufu::UnitFunction& f = *part.function;
    const mufu::Interpolator& table = f.binades[static_cast<std::size_t>(e.binade)];
    const mufu::Place place = mufu::place_of(table, e.reduced.fraction);
    const mufu::Segment& s = table.segments[place.segment];
    j["exponent"] = e.reduced.exponent;
    j["fraction"] = e.reduced.fraction;
    j["table"] = e.binade;
    j["segment"] = place.segment;
    j["coefficients"] = {s.c0, s.c1, s.c2};
    j["x"] = place.offset;
    j["square"] = mufu::square(f.squarer, place.offset);
    j["interpolated"] = e.interpolated;
  }
  j["result"] = code_text(e.code);
  return j;
}

std::vector<ProgramStep> steps_of(const FunctionResult& r) { return r.function->steps(r.operands); }

void print_steps(const FunctionResult& r) {
  Table table("rllll");
  table.add({"step", "operation", "of", "", "result"});
  std::size_t count = 0;
  for (const ProgramStep& step : steps_of(r)) {
    std::string codes, numbers;
    for (int i = 0; i < step.operands; ++i) {
      const std::uint64_t code = step.arguments.at(static_cast<std::size_t>(i));
      codes += (i == 0 ? "" : " ") + code_text(code, step.format);
      numbers += (i == 0 ? "" : ", ") + decimal_text(code, step.format);
    }
    table.add({std::to_string(++count), std::string(step.operation), codes, numbers,
               number_text(step.result, step.format)});
  }
  table.print(std::cout);
}

nlohmann::ordered_json steps_json(const FunctionResult& r) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ProgramStep& step : steps_of(r)) {
    nlohmann::ordered_json arguments = nlohmann::ordered_json::array();
    for (int i = 0; i < step.operands; ++i)
      arguments.push_back(code_text(step.arguments.at(static_cast<std::size_t>(i)), step.format));
    all.push_back({{"operation", step.operation},
                   {"arguments", arguments},
                   {"result", code_text(step.result, step.format)}});
  }
  return all;
}

}  // namespace

std::string hex_digits(std::uint64_t word, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (std::size_t i = text.size(); i-- > 0; word >>= 4) text[i] = "0123456789abcdef"[word & 15];
  return text;
}

void print_functions(const std::vector<Function>& functions, bool as_markdown) {
  function_columns().print(std::cout, functions, as_markdown ? Form::markdown : Form::terminal);
}
nlohmann::ordered_json functions_json(const std::vector<Function>& functions) {
  return function_columns().json_list(functions);
}

std::string operand_formats_text(const Function& function) {
  std::string text = formats::name_of(function.formats.operands[0]);
  for (std::size_t i = 1; i < function.operands; ++i)
    if (function.formats.operands.at(i) != function.formats.operands[0])
      text += ", " + formats::name_of(function.formats.operands.at(i));
  return text;
}

FunctionResult function_result(const Function& function, const emulator::OperandCodes& operands) {
  std::array<double, emulator::most_operands> numbers{};
  for (std::size_t i = 0; i < function.operands; ++i)
    numbers.at(i) = emulator::double_of(function.formats.operands.at(i), operands.at(i));
  return {&function, operands, function.reference(operands), function.in_doubles(numbers)};
}

namespace {

/// The unit's or the program's steps, where there are any.
void print_how(const FunctionResult& r) {
  const Function& f = *r.function;
  if (f.form != nullptr || f.formatted_form != nullptr) {
    print_unit(f, r.operands[0]);
  } else if (!steps_of(r).empty()) {
    print_steps(r);
  }
}

void print_result(const FunctionResult& r, std::size_t i) {
  const Format& format = r.function->formats.results.at(i);
  const std::uint64_t code = r.results.at(i);
  const double exact = r.exact.at(i);
  print_fact(i == 0 ? "result" : "result d1", paint(number_text(code, format), Colour::bold));
  print_fact("exactly", library_text(exact));
  const double error = emulator::error_in_ulp(format, code, exact);
  if (!std::isfinite(error)) return;
  print_fact("error", fixed_text(error, 3) + " ulp" +
                          (rounded(exact, format) == code
                               ? ", correctly rounded"
                               : "; correctly rounded it is " +
                                     number_text(rounded(exact, format), format)));
}

/// Keys of the second result end in `suffix`.
void add_result(nlohmann::ordered_json& j, const FunctionResult& r, std::size_t i,
                const std::string& suffix) {
  const Format& format = r.function->formats.results.at(i);
  const std::uint64_t code = r.results.at(i);
  const double exact = r.exact.at(i);
  j["result" + suffix] = code_text(code, format);
  j["value" + suffix] = decimal_text(code, format);
  j["exact" + suffix] = library_text(exact);
  j["correctly_rounded" + suffix] = code_text(rounded(exact, format), format);
  const double error = emulator::error_in_ulp(format, code, exact);
  j["error_in_ulp" + suffix] = std::isfinite(error)
                                   ? nlohmann::ordered_json(std::round(error * 1e4) / 1e4)
                                   : nlohmann::ordered_json(nullptr);
}

}  // namespace

void print_result(const FunctionResult& r) {
  const Function& f = *r.function;
  std::cout << paint(f.name, Colour::bold) << '\n';
  print_fact("computes", std::string(f.meaning));
  for (std::size_t i = 0; i < f.operands; ++i)
    print_fact(emulator::operand_names.at(i),
               number_text(r.operands.at(i), f.formats.operands.at(i)));
  print_how(r);
  for (std::size_t i = 0; i < f.results; ++i) print_result(r, i);
}

nlohmann::ordered_json result_json(const FunctionResult& r) {
  const Function& f = *r.function;
  nlohmann::ordered_json j;
  for (std::size_t i = 0; i < f.operands; ++i)
    j[emulator::operand_names.at(i)] = code_text(r.operands.at(i), f.formats.operands.at(i));
  for (std::size_t i = 0; i < f.results; ++i) add_result(j, r, i, i == 0 ? "" : "_d1");
  if (f.form != nullptr || f.formatted_form != nullptr) {
    j["unit"] = unit_json(f, r.operands[0]);
  } else {
    j["steps"] = steps_json(r);
  }
  return j;
}

void print_errors(const Function& function, const FunctionErrors& errors) {
  const auto count = [](std::uint64_t n) { return std::to_string(n); };
  const double share = errors.results == 0 ? 0
                                           : static_cast<double>(errors.correctly_rounded) /
                                                 static_cast<double>(errors.results);
  print_fact("results", count(errors.results) + " in the normal range");
  print_fact("largest", fixed_text(errors.largest, 4) + " ulp, of " +
                            number_text(errors.largest_at, function.formats.operands[0]));
  print_fact("rounded",
             count(errors.correctly_rounded) + " correctly, " + fixed_text(100 * share, 4) + " %");
  print_fact("unlike", count(errors.unlike) + " others: flushed, or of another kind");
  print_fact("monotony", count(errors.not_monotonic) + " steps the wrong way");
  print_fact("symmetry", count(errors.not_symmetric) + " pairs of x and -x that differ");
  std::cout << "  errors in ulp, from the exact result:\n";
  Table table("lr");
  for (std::size_t i = 0; i < errors.histogram.size(); ++i) {
    if (errors.histogram[i] == 0) continue;
    const double low = (static_cast<double>(i) - 32) / 8;
    const bool is_first = i == 0, is_last = i + 1 == errors.histogram.size();
    table.add({is_first  ? "below " + fixed_text(low + 0.125, 3)
               : is_last ? "from " + fixed_text(low, 3)
                         : fixed_text(low, 3) + " to " + fixed_text(low + 0.125, 3),
               count(errors.histogram[i])});
  }
  table.print(std::cout);
}

nlohmann::ordered_json errors_json(const Function& function, const FunctionErrors& errors) {
  return {{"results", errors.results},
          {"correctly_rounded", errors.correctly_rounded},
          {"largest_ulp", errors.largest},
          {"largest_at", code_text(errors.largest_at, function.formats.operands[0])},
          {"unlike", errors.unlike},
          {"not_monotonic", errors.not_monotonic},
          {"not_symmetric", errors.not_symmetric},
          {"histogram", errors.histogram}};
}

}  // namespace guardbit::tools
