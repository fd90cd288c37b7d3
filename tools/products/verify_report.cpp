#include "tools/products/verify_report.hpp"

#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/printable.hpp"
#include "formats/text.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using emulator::ExplainedBlock;
using emulator::ExplainedTerm;
using emulator::Explanation;
using formats::Format;
using json = nlohmann::ordered_json;

std::string distance_text(const ElementReport& report) {
  if (report.equal) return "equal";
  if (!report.distance) return "one of them is NaN";
  if (*report.distance == 0) return "the signs of zero differ";
  return std::to_string(*report.distance) +
         (formats::is_integer(report.explanation.instruction.d) ? "" : " ulp") + " apart";
}

json code_json(const Format& format, std::uint64_t code) {
  return {{"code", formats::hex_text(format, code)}, {"value", emulator::value_text(format, code)}};
}

json term_json(const Explanation& explanation, const ExplainedTerm& term, bool aligned) {
  json j = {{"value", formats::to_string(term.value)}};
  if (term.pairs.size() == 1) {
    const emulator::FactorPair& pair = explanation.pairs[term.pairs.front()];
    j["k"] = pair.k;
    j["a"] = code_json(explanation.instruction.a, pair.a);
    j["b"] = code_json(explanation.instruction.b, pair.b);
  } else if (!term.pairs.empty()) {
    for (const std::size_t i : term.pairs) j["k"].push_back(explanation.pairs[i].k);
  }
  if (!aligned) return j;
  j["exponent"] = term.exponent;
  j["significand"] = term.significand;
  j["fraction_bits"] = term.fraction_bits;
  j["cut"] = formats::to_string(term.cut);
  return j;
}

json block_json(const Explanation& explanation, const ExplainedBlock& block) {
  json j = {{"step", block.step},
            {"products", block.products},
            {"first_k", block.first_k},
            {"last_k", block.last_k},
            {"special", block.special},
            {"addend", code_json(block.addend_register.format, block.addend_register.code)},
            {"result", code_json(block.result.format, block.result.code)}};
  if (block.special) return j;
  j["exact_sum"] = formats::to_string(block.exact_sum);
  j["largest"] = json::array();
  for (const ExplainedTerm& term : block.largest) {
    j["largest"].push_back(term_json(explanation, term, block.alignment.has_value()));
  }
  if (block.alignment) {
    j["exponent"] = block.alignment->exponent;
    j["grid_exponent"] = block.alignment->grid;
    j["terms_cut"] = block.terms_cut;
    j["kept_sum"] = formats::to_string(*block.kept_sum);
    j["addend_term"] = term_json(explanation, block.addend, true);
  }
  if (block.worst) {
    j["worst_step"] = {{"k", explanation.pairs[block.worst->pair].k},
                       {"exact", formats::to_string(block.worst->exact)},
                       {"rounded", code_json(block.result.format, block.worst->rounded)},
                       {"error", formats::to_string(block.worst->error)}};
  }
  return j;
}

json explanation_json(const Explanation& explanation) {
  json j = {{"blocks", json::array()}, {"steps", json::array()}};
  for (const ExplainedBlock& block : explanation.blocks)
    j["blocks"].push_back(block_json(explanation, block));
  for (const emulator::ExplainedStep& step : explanation.steps) {
    j["steps"].push_back(code_json(step.result.format, step.result.code));
  }
  j["result"] = code_json(explanation.instruction.d, explanation.result);
  return j;
}

json element_json(const ElementReport& report) {
  const Explanation& explanation = report.explanation;
  json j = {{"file", report.file},
            {"execution", report.element.execution},
            {"row", report.element.row},
            {"column", report.element.column},
            {"expected", code_json(explanation.instruction.d, report.expected)},
            {"got", code_json(explanation.instruction.d, report.got)},
            {"equal", report.equal},
            {"ulp", or_null(report.distance)},
            {"c", code_json(explanation.instruction.c, explanation.c)},
            {"operands", json::array()},
            {"explanation", explanation_json(explanation)},
            {"command", report.command}};
  for (const emulator::FactorPair& pair : explanation.pairs) {
    j["operands"].push_back({{"k", pair.k},
                             {"a", code_json(explanation.instruction.a, pair.a)},
                             {"b", code_json(explanation.instruction.b, pair.b)}});
  }
  for (std::size_t i = 0; i < explanation.a_scale.size(); ++i) {
    j["scales"].push_back(
        {{"a", code_json(explanation.instruction.scale.format, explanation.a_scale[i])},
         {"b", code_json(explanation.instruction.scale.format, explanation.b_scale[i])}});
  }
  return j;
}

const Columns<FileReport>& file_columns() {
  using F = FileReport;
  static const Columns<F> columns = {
      {"outputs", "outputs", Side::right, [](const F& f) { return f.outputs; }, {}, 3},
      {"mismatches", "mismatches", Side::right, [](const F& f) { return f.mismatches; }, {}, 3},
      {"engine", "engine", Side::left, [](const F& f) { return f.engine; }, {}, 2},
      {"file", "file", Side::left, [](const F& f) { return f.file; },
       [](const F& f) { return formats::printable(f.file); }},
      {"instruction", "", Side::none, [](const F& f) { return f.instruction; }, {}, 1},
      {"arch", "", Side::none, [](const F& f) { return f.arch; }, {}, 1}};
  return columns;
}

/// In columns of fixed width, since the next file is not known; the last one, the name, needs none.
void print_line(std::ostream& out, const FileReport& file, bool is_head) {
  const char* gap = "";
  file_columns().for_each_cell(file,
                               [&](const Column<FileReport>& column, const std::string& cell) {
                                 const bool is_right = column.side == Side::right;
                                 out << gap << (is_right ? std::right : std::left)
                                     << std::setw(is_right               ? 10
                                                  : column.key == "file" ? 0
                                                                         : 9)
                                     << (is_head ? column.head : cell);
                                 gap = "  ";
                               });
  out << std::right << '\n';
}

std::string command_for(const emulator::Capture& capture, const emulator::Element& element,
                        const std::string& engine) {
  std::string command = "guardbit verify " + shell_word(capture.path) + " --execution " +
                        std::to_string(element.execution) + " --row " +
                        std::to_string(element.row) + " --column " + std::to_string(element.column);
  if (engine != "auto") command += " --engine " + shell_word(engine);
  return command;
}

}  // namespace

std::int64_t VerifyReport::outputs() const {
  std::int64_t total = 0;
  for (const FileReport& file : files) total += file.outputs;
  return total;
}

std::int64_t VerifyReport::mismatches() const {
  std::int64_t total = 0;
  for (const FileReport& file : files) total += file.mismatches;
  return total;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ElementReport report_element(const emulator::Capture& capture, const emulator::Element& element,
                             std::uint64_t got, const std::string& engine) {
  const emulator::MatrixBatch& batch = capture.operands.batch;
  const std::int64_t place =
      (element.execution * batch.shape.m + element.row) * batch.shape.n + element.column;
  ElementReport report;
  report.file = capture.path;
  report.element = element;
  report.expected = capture.operands.recorded[place];
  report.got = got;
  report.equal = emulator::same_result(capture.instruction, report.expected, got);
  report.distance = emulator::code_distance(capture.instruction.d, report.expected, got);
  report.explanation =
      emulator::explain(capture.instruction, batch, element.execution, element.row, element.column);
  report.command = command_for(capture, element, engine);
  return report;
}

void print_file(std::ostream& out, const FileReport& file, bool is_first) {
  if (is_first) print_line(out, file, true);
  print_line(out, file, false);
}

void print_element(std::ostream& out, const ElementReport& report) {
  const Explanation& explanation = report.explanation;
  const Format& d = explanation.instruction.d;
  out << report.file << '\n'
      << "  execution " << report.element.execution << ", row " << report.element.row << ", column "
      << report.element.column << " of " << std::string_view(explanation.instruction.name) << '\n'
      << "    expected  " << emulator::code_text(d, report.expected) << '\n'
      << "    got       "
      << paint(emulator::code_text(d, report.got), report.equal ? Colour::green : Colour::red)
      << "  " << distance_text(report) << '\n';
  if (!emulator::same_result(explanation.instruction, explanation.result, report.got)) {
    out << "    the reference model, which the lines below follow, gives "
        << emulator::code_text(d, explanation.result) << '\n';
  }
  out << "  operands\n";
  for (const std::string& line : emulator::operand_lines(explanation))
    out << "    " << line << '\n';
  out << "  the model\n";
  for (const std::string& line : emulator::explanation_lines(explanation))
    out << "    " << line << '\n';
  if (!report.command.empty()) out << "  reproduce: " << report.command << '\n';
}

namespace {

/// That takes the model's result apart.
std::string command_for(const FunctionElement& e) {
  std::string command = "guardbit function " + shell_word(std::string(e.function->name));
  for (std::size_t i = 0; i < e.function->operands; ++i) {
    const Format& format = e.function->formats.operands.at(i);
    command += " " + formats::hex_text(format, e.operands.at(i)) + ":" + formats::name_of(format);
  }
  return command;
}

void print_element(std::ostream& out, const FunctionElement& e) {
  const Format& format = e.function->formats.results.at(e.result);
  const auto distance = emulator::code_distance(format, e.expected, e.got);
  out << e.file << "\n  element " << e.element << " of " << emulator::result_names.at(e.result)
      << ", " << e.function->name << '\n'
      << "    expected  " << emulator::code_text(format, e.expected) << '\n'
      << "    got       " << paint(emulator::code_text(format, e.got), Colour::red) << "  "
      << (distance ? std::to_string(*distance) + " apart" : "one of them is NaN") << '\n';
  for (std::size_t i = 0; i < e.function->operands; ++i)
    out << "    " << emulator::operand_names.at(i) << "         "
        << emulator::code_text(e.function->formats.operands.at(i), e.operands.at(i)) << '\n';
  out << "  how the model computes it: " << command_for(e) << '\n';
}

json element_json(const FunctionElement& e) {
  const Format& format = e.function->formats.results.at(e.result);
  json j = {{"file", e.file},
            {"function", e.function->name},
            {"element", e.element},
            {"result", emulator::result_names.at(e.result)},
            {"expected", code_json(format, e.expected)},
            {"got", code_json(format, e.got)},
            {"ulp", or_null(emulator::code_distance(format, e.expected, e.got))},
            {"command", command_for(e)}};
  for (std::size_t i = 0; i < e.function->operands; ++i)
    j[emulator::operand_names.at(i)] =
        code_json(e.function->formats.operands.at(i), e.operands.at(i));
  return j;
}

}  // namespace

void print_summary(std::ostream& out, const VerifyReport& report) {
  for (const ElementReport& element : report.elements) {
    out << '\n';
    print_element(out, element);
  }
  for (const FunctionElement& element : report.function_elements) {
    out << '\n';
    print_element(out, element);
  }
  if (report.files.empty()) return;
  if (!report.elements.empty() || !report.function_elements.empty()) out << '\n';
  const std::int64_t mismatches = report.mismatches();
  out << paint(counted(std::ssize(report.files), "file") + ", " +
                   counted(report.outputs(), "output") + ", " +
                   counted(mismatches, "mismatch", "es"),
               mismatches == 0 ? Colour::green : Colour::red)
      << ", " << std::fixed << std::setprecision(2) << report.seconds << " s\n";
}

json to_json(const VerifyReport& report) {
  json j = {{"files", file_columns().json_list(report.files)},
            {"outputs", report.outputs()},
            {"mismatches", report.mismatches()},
            {"reports", json::array()},
            {"errors", json::array()},
            {"skipped", report.skipped},
            {"seconds", report.seconds}};
  for (const ElementReport& element : report.elements)
    j["reports"].push_back(element_json(element));
  for (const FunctionElement& element : report.function_elements)
    j["reports"].push_back(element_json(element));
  if (!report.predictions.empty()) j["predictions"] = json::array();
  for (const Prediction& x : report.predictions) {
    j["predictions"].push_back({{"file", x.file},
                                {"predicted", x.predicted},
                                {"plan", x.plan},
                                {"known", x.known},
                                {"mismatches", x.mismatches}});
  }
  for (const FailedFile& failed : report.failed) {
    j["errors"].push_back({{"file", failed.file}, {"error", failed.error}});
  }
  return j;
}

}  // namespace guardbit::tools
