#include "gpu/questions/questionnaire.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/model/host_model.hpp"

namespace guardbit::gpu {

namespace {

std::string conclusion_text(const Answer& answer, const Outcome* outcome) {
  if (!answer.same_everywhere) return "undecided: the answer depends on the place along k";
  return outcome == nullptr ? "undecided: no outcome has these words" : outcome->meaning;
}

Reply reply_to(const Inquiry& inquiry, const Executor& execute) {
  Batch batch = pose(inquiry), modelled = batch;
  execute(inquiry.row, batch);
  run_on_host_model(inquiry.believed, inquiry.row, modelled);
  const Answer answer = read_answer(inquiry, batch);
  const Outcome* const outcome = conclude(inquiry, answer);
  Reply reply{.asked = {{{&inquiry.row}, {}}},
              .inputs = describe_inputs(inquiry),
              .words = {},
              .conclusion = conclusion_text(answer, outcome),
              .decided = outcome != nullptr,
              .as_model = answer == read_answer(inquiry, modelled)};
  for (const Probe& probe : inquiry.probes())
    reply.asked.front().probes.push_back(describe_codes(inquiry.row, probe));
  for (const std::uint64_t word : answer.words)
    reply.words.push_back(hexadecimal(inquiry.row.d, word));
  return reply;
}

bool alike(const Reply& x, const Reply& y) {
  return x.inputs == y.inputs && x.words == y.words && x.conclusion == y.conclusion &&
         x.as_model == y.as_model;
}

/// Joins the reply to one that says the same, where there is one.
void add_reply(Section& section, Reply reply) {
  const auto found = std::ranges::find_if(section.replies,
                                          [&](const Reply& other) { return alike(reply, other); });
  if (found == section.replies.end()) {
    section.replies.push_back(std::move(reply));
    return;
  }
  const Asked& asked = reply.asked.front();
  const auto same = std::ranges::find(found->asked, asked.probes, &Asked::probes);
  if (same == found->asked.end())
    found->asked.push_back(asked);
  else
    same->rows.push_back(asked.rows.front());
}

/// Q1 before Q1b before Q2 before Q15.
bool in_order(std::string_view x, std::string_view y) {
  const auto key = [](std::string_view id) {
    const std::size_t end = id.find_last_of("0123456789") + 1;
    return std::pair(std::stoi(std::string(id.substr(1, end - 1))), id.substr(end));
  };
  return key(x) < key(y);
}

}  // namespace

std::vector<const TensorCoreInstruction*> Reply::rows() const {
  std::vector<const TensorCoreInstruction*> all;
  for (const Asked& part : asked) all.insert(all.end(), part.rows.begin(), part.rows.end());
  return all;
}

bool Section::as_model() const {
  return std::ranges::all_of(replies, &Reply::as_model) &&
         std::ranges::all_of(comparisons, [](const Comparison& comparison) {
           return comparison.conclusion() == comparison.candidates.data();
         });
}

std::vector<std::string_view> question_ids() {
  std::vector<std::string_view> ids;
  for (const Question& question : questions()) ids.push_back(question.id);
  for (const ComparisonQuestion& question : comparison_questions()) ids.push_back(question.id);
  std::ranges::stable_sort(ids, in_order);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

void check_question_ids(const std::vector<std::string>& ids) {
  const auto known = question_ids();
  std::string choices;
  for (const std::string_view id : known)
    choices += (choices.empty() ? "" : ", ") + std::string(id);
  for (const std::string& id : ids)
    if (std::ranges::find(known, id) == known.end())
      throw formats::Error("probe-questions", "no question '" + id + "'", choices);
}

std::vector<Section> answer_questions(const std::vector<std::string>& ids, std::string_view arch,
                                      const Answerer& answerer, std::uint64_t seed,
                                      const std::function<bool(std::size_t)>& proceed) {
  std::vector<Section> sections;
  const auto ask_rows = [&](const auto& question, auto ask) {
    Section& section = sections.back();
    if (section.text.empty()) section.text = question.text;
    for (const TensorCoreInstruction& row : tensor_core_instructions())
      if (question.concerns(row))
        if (const auto model = emulator::find_instruction(arch, row.name))
          ask(section, row, *model);
  };
  for (const std::string_view id : question_ids()) {
    if (!ids.empty() && std::ranges::find(ids, id) == ids.end()) continue;
    if (!proceed(sections.size())) break;
    sections.push_back({id, {}, {}, {}});
    for (const Question& question : questions())
      if (question.id == id)
        ask_rows(question, [&](Section& section, const auto& row, const auto& model) {
          add_reply(section,
                    reply_to(inquire(question, row, model), answerer.of(question.translation)));
        });
    for (const ComparisonQuestion& question : comparison_questions())
      if (question.id == id)
        ask_rows(question, [&](Section& section, const auto& row, const auto&) {
          section.comparisons.push_back(question.ask(row, answerer, seed));
        });
  }
  return sections;
}

Answerer model_answerer(std::string_view arch) {
  const Executor execute = [arch](const TensorCoreInstruction& row, Batch& batch) {
    const auto model = emulator::find_instruction(arch, row.name);
    if (!model) throw formats::Error(std::string(arch), "has no '" + std::string(row.name) + "'");
    run_on_host_model(*model, row, batch);
  };
  return {execute, execute};
}

}  // namespace guardbit::gpu
