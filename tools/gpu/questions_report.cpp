#include "tools/gpu/questions_report.hpp"

#include <cstdint>
#include <iostream>
#include <map>

#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t page_width = 100, longest = 400;

std::string full_name(const gpu::TensorCoreInstruction& row) {
  std::string name(row.name);
  return row.variant.empty() ? name : name + " " + std::string(row.variant);
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
std::string names_text(const std::vector<const gpu::TensorCoreInstruction*>& rows) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < shown; ++i)
    text += (i == 0 ? "" : ", ") + full_name(*rows[i]);
  return rows.size() <= shown ? text
                              : text + " and " + std::to_string(rows.size() - shown) + " more";
}

/// Instructions that were compared with the same rules, added up.
struct Total {
  std::vector<const gpu::TensorCoreInstruction*> rows;
  std::int64_t outputs = 0;
  std::vector<std::int64_t> differ;
};

void print_comparisons(const gpu::Section& section) {
  std::map<std::vector<std::string>, Total> totals;
  for (const gpu::Comparison& comparison : section.comparisons) {
    std::vector<std::string> rules;
    for (const gpu::Candidate& candidate : comparison.candidates)
      rules.push_back(candidate.meaning);
    Total& total = totals[rules];
    total.rows.push_back(comparison.row);
    total.outputs += comparison.outputs;
    total.differ.resize(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i)
      total.differ[i] += comparison.candidates[i].differ;
  }
  for (const auto& [rules, total] : totals) {
    print_indented("random", std::to_string(total.outputs) + " outputs", Colour::plain);
    for (std::size_t i = 0; i < rules.size(); ++i)
      print_indented(i == 0 ? "differ" : "", std::to_string(total.differ[i]) + " from: " + rules[i],
                     i != 0                 ? Colour::plain
                     : total.differ[i] == 0 ? Colour::green
                                            : Colour::red);
    print_indented("asked of", names_text(total.rows), Colour::dim);
  }
}

ordered_json json_of(const gpu::Reply& reply) {
  ordered_json out = {{"inputs", reply.inputs},
                      {"words", reply.words},
                      {"conclusion", reply.conclusion},
                      {"decided", reply.decided},
                      {"as_model", reply.as_model}};
  for (const gpu::Asked& asked : reply.asked) {
    ordered_json part = {{"probes", asked.probes}};
    for (const gpu::TensorCoreInstruction* row : asked.rows)
      part["instructions"].push_back(full_name(*row));
    out["asked"].push_back(part);
  }
  return out;
}

ordered_json json_of(const gpu::Comparison& comparison) {
  ordered_json out = {{"instruction", full_name(*comparison.row)}, {"outputs", comparison.outputs}};
  for (const gpu::Candidate& candidate : comparison.candidates)
    out["candidates"].push_back({{"rule", candidate.meaning}, {"differ", candidate.differ}});
  const gpu::Candidate* const conclusion = comparison.conclusion();
  out["conclusion"] = conclusion == nullptr ? "undecided" : conclusion->meaning;
  return out;
}

}  // namespace

void print_sections(const std::vector<gpu::Section>& sections) {
  for (const gpu::Section& section : sections) {
    std::cout << paint(section.id, Colour::bold) << "  " << section.text << '\n';
    for (const gpu::Reply& reply : section.replies) {
      print_indented("inputs", reply.inputs, Colour::plain);
      print_indented("D", words_text(reply.words), Colour::plain);
      print_indented("answer",
                     reply.conclusion + (reply.as_model ? "" : " (the model gives other words)"),
                     colour_of(reply.decided, reply.as_model));
      print_indented("asked of", names_text(reply.rows()), Colour::dim);
    }
    if (!section.comparisons.empty()) print_comparisons(section);
    std::cout << '\n';
  }
}

ordered_json sections_json(const std::vector<gpu::Section>& sections) {
  ordered_json out;
  out["questions"] = ordered_json::array();
  for (const gpu::Section& section : sections) {
    ordered_json entry = {
        {"id", section.id}, {"question", section.text}, {"as_model", section.as_model()}};
    for (const gpu::Reply& reply : section.replies) entry["replies"].push_back(json_of(reply));
    for (const gpu::Comparison& comparison : section.comparisons)
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
