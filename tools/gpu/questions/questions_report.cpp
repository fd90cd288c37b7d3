#include "tools/gpu/questions/questions_report.hpp"

#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t page_width = 100, longest = 400;

std::string full_name(const gpu::TensorCoreInstruction& instruction) {
  std::string name(instruction.name);
  return instruction.variant.empty() ? name : name + " " + std::string(instruction.variant);
}

/// "00000001 00000000 x3": repeated words once.
std::string words_text(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size();) {
    std::size_t end = i;
    while (end < words.size() && words[end] == words[i]) ++end;
    text += (text.empty() ? "" : " ") + words[i];
    if (end - i > 1) text += " x" + std::to_string(end - i);
    i = end;
  }
  return text;
}

void print_indented(const char* head, const std::string& text, Colour colour) {
  const std::size_t indent = 12;
  const std::string shown =
      text.size() <= longest ? text : text.substr(0, longest) + "... (--json prints all)";
  std::string first = "  " + std::string(head);
  first.resize(indent, ' ');
  for (const std::string& line : wrapped(shown, page_width - indent)) {
    std::cout << first << paint(line, colour) << '\n';
    first.assign(indent, ' ');
  }
}

Colour colour_of(bool decided, bool as_model) {
  return !as_model ? Colour::red : decided ? Colour::green : Colour::yellow;
}

/// The first few names, and how many more there are.
std::string names_text(const std::vector<const gpu::TensorCoreInstruction*>& instructions) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < instructions.size() && i < shown; ++i)
    text += (i == 0 ? "" : ", ") + full_name(*instructions[i]);
  return instructions.size() <= shown
             ? text
             : text + " and " + std::to_string(instructions.size() - shown) + " more";
}

/// Instructions that were compared with the same rules, added up.
struct Total {
  std::vector<const gpu::TensorCoreInstruction*> instructions;
  std::int64_t outputs = 0;
  std::vector<std::int64_t> differ;
};

void print_comparisons(const gpu::QuestionResult& question) {
  std::map<std::vector<std::string>, Total> totals;
  for (const gpu::Comparison& comparison : question.comparisons) {
    std::vector<std::string> rules;
    for (const gpu::ComparedRule& rule : comparison.rules) rules.push_back(rule.meaning);
    Total& total = totals[rules];
    total.instructions.push_back(comparison.instruction);
    total.outputs += comparison.outputs;
    total.differ.resize(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) total.differ[i] += comparison.rules[i].differ;
  }
  for (const auto& [rules, total] : totals) {
    print_indented("random", std::to_string(total.outputs) + " outputs", Colour::plain);
    for (std::size_t i = 0; i < rules.size(); ++i)
      print_indented(i == 0 ? "differ" : "", std::to_string(total.differ[i]) + " from: " + rules[i],
                     i != 0                 ? Colour::plain
                     : total.differ[i] == 0 ? Colour::green
                                            : Colour::red);
    print_indented("tested", names_text(total.instructions), Colour::dim);
  }
}

ordered_json json_of(const gpu::TestResult& result) {
  ordered_json out = {{"inputs", result.inputs},
                      {"words", result.words},
                      {"conclusion", result.conclusion},
                      {"decided", result.decided},
                      {"as_model", result.as_model}};
  for (const gpu::Tested& tested : result.tested) {
    ordered_json part = {{"probes", tested.trials}};
    for (const gpu::TensorCoreInstruction* instruction : tested.instructions)
      part["instructions"].push_back(full_name(*instruction));
    out["asked"].push_back(part);
  }
  return out;
}

ordered_json json_of(const gpu::Comparison& comparison) {
  ordered_json out = {{"instruction", full_name(*comparison.instruction)},
                      {"outputs", comparison.outputs}};
  for (const gpu::ComparedRule& rule : comparison.rules)
    out["candidates"].push_back({{"rule", rule.meaning}, {"differ", rule.differ}});
  const gpu::ComparedRule* const supported = comparison.supported();
  out["conclusion"] = supported == nullptr ? "undecided" : supported->meaning;
  return out;
}

}  // namespace

void print_results(const std::vector<gpu::QuestionResult>& results) {
  for (const gpu::QuestionResult& question : results) {
    std::cout << paint(question.id, Colour::bold) << "  " << question.text << '\n';
    for (const gpu::TestResult& result : question.results) {
      print_indented("inputs", result.inputs, Colour::plain);
      print_indented("D", words_text(result.words), Colour::plain);
      print_indented("answer",
                     result.conclusion + (result.as_model ? "" : " (the model gives other words)"),
                     colour_of(result.decided, result.as_model));
      print_indented("tested", names_text(result.instructions()), Colour::dim);
    }
    if (!question.comparisons.empty()) print_comparisons(question);
    std::cout << '\n';
  }
}

ordered_json results_json(const std::vector<gpu::QuestionResult>& results) {
  ordered_json out;
  out["questions"] = ordered_json::array();
  for (const gpu::QuestionResult& question : results) {
    ordered_json entry = {
        {"id", question.id}, {"question", question.text}, {"as_model", question.as_model()}};
    for (const gpu::TestResult& result : question.results)
      entry["replies"].push_back(json_of(result));
    for (const gpu::Comparison& comparison : question.comparisons)
      entry["comparisons"].push_back(json_of(comparison));
    out["questions"].push_back(entry);
  }
  for (const gpu::AnsweredElsewhere& question : gpu::answered_elsewhere())
    out["answered_elsewhere"].push_back(
        {{"id", question.id}, {"question", question.text}, {"command", question.command}});
  for (const gpu::Undecidable& question : gpu::undecidable())
    out["undecidable"].push_back({{"question", question.text},
                                  {"assumed", question.assumed},
                                  {"machine", question.machine}});
  return out;
}

}  // namespace guardbit::tools
