#include "tools/products/explain_operator.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/counted.hpp"
#include "tools/products/operand_file.hpp"

namespace guardbit::tools {
namespace {

emulator::operators::Tensor tensor_at(const std::string& option, const std::string& name,
                                      const std::string& place) {
  if (place.empty()) throw formats::Error("explain", "--operator needs --input and --output");
  const formats::Tensor tensor = read_operand(option, name, place, formats::fp32);
  if (tensor.packing != formats::Packing::container)
    throw formats::Error(option, "codes of less than a byte");
  return {.type = tensor.format,
          .shape = tensor.shape,
          .stride = emulator::operators::contiguous_stride(tensor.shape),
          .offset = 0,
          .is_on_gpu = true,
          .bytes = tensor.bytes,
          .owner = tensor.owner};
}

/// How much the outputs say of the order of additions.
std::string evidence_text(const AskedOperator& asked, const emulator::OperatorAnswer& answer) {
  const std::string outputs = counted(answer.outputs, "output");
  if (answer.refuting == 0)
    return "no output of " + std::to_string(answer.outputs) +
           " depends on the order: it is not told by them";
  if (asked.op.starts_with("all_reduce"))
    return std::to_string(answer.refuting) + " of " + outputs +
           " would differ in another order of the ranks";
  return std::to_string(answer.refuting) + " of " + outputs +
         " would differ with the elements of a row in a random order";
}

}  // namespace

emulator::OperatorQuestion operator_question(const AskedOperator& asked, int threads) {
  using Op = emulator::SearchedOperator;
  const Op op = formats::require_word<Op>("operator", asked.op, "--operator");
  emulator::OperatorQuestion question;
  question.op = op;
  question.input = tensor_at("--input", "input", asked.input);
  question.output = tensor_at("--output", "output", asked.output);
  question.dimension = asked.dimension;
  const bool reduces_all = op == Op::sum || op == Op::mean;
  if (!question.dimension && !reduces_all) question.dimension = -1;
  question.epsilon = asked.epsilon;
  question.input_place = "--input";
  question.output_place = "--output";
  question.dimension_place = "--dim";
  question.threads = threads;
  return question;
}

void print_operator_answer(std::ostream& out, const AskedOperator& asked,
                           const emulator::OperatorAnswer& answer) {
  out << asked.op << " of " << formats::printable(asked.input) << "  "
      << (answer.explained() ? "explained" : "not explained") << ": "
      << counted(answer.outputs, "output") << ", " << counted(answer.tried, "rule") << " tried\n";
  for (const emulator::RuleResult& rule : answer.exact) out << "\n  " << rule.rule << "\n";
  if (answer.explained()) {
    out << "\nevidence: " << evidence_text(asked, answer) << "\n";
  } else if (answer.nearest) {
    out << "\nnearest: " << answer.nearest->rule << "\n  about " << answer.nearest->mismatches
        << " of " << answer.outputs << " differ\n";
  }
}

nlohmann::ordered_json operator_answer_json(const AskedOperator& asked,
                                            const emulator::OperatorAnswer& answer) {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const emulator::RuleResult& rule : answer.exact) rules.push_back(rule.rule);
  nlohmann::ordered_json json = {{"operator", asked.op},      {"explained", answer.explained()},
                                 {"outputs", answer.outputs}, {"tried", answer.tried},
                                 {"rules", std::move(rules)}, {"refuting", answer.refuting},
                                 {"nearest", nullptr}};
  if (answer.nearest)
    json["nearest"] = {{"rule", answer.nearest->rule}, {"mismatches", answer.nearest->mismatches}};
  return json;
}

}  // namespace guardbit::tools
