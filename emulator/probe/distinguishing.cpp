#include "emulator/probe/distinguishing.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/probe/aimed_questions.hpp"
#include "emulator/probe/fit.hpp"

namespace guardbit::emulator {

namespace {

/// How many random questions of each topic, and how many aimed ones, are searched for those that
/// distinguish two instructions, and how many of those are asked.
constexpr std::size_t searched_count = 4000;
constexpr std::size_t aimed_count = 16000;
constexpr std::size_t questions_per_alternative = 3;

/// The open values of a field that are worth a question: every word; of numbers the ends of the
/// range and those at distances of a power of two from the fitted one.
std::vector<long> worth_asking(const AccumulatorField& field, const std::vector<long>& open,
                               long now) {
  constexpr std::ptrdiff_t farthest = 4;
  std::vector<long> list;
  for (auto value = open.begin(); value != open.end(); ++value) {
    const auto distance = static_cast<unsigned long>(std::abs(*value - now));
    const bool at_end = value - open.begin() < farthest || open.end() - value <= farthest;
    if (!field.words.empty() || at_end || std::has_single_bit(distance)) list.push_back(*value);
  }
  return list;
}

bool is_excluded(const MatrixInstruction& instruction, const AnswersByTopic& training,
                 const AnswersByTopic& held_out) {
  const auto excludes = [&](const Answers& answers) {
    return counterexample(instruction, answers).has_value();
  };
  return std::any_of(training.begin(), training.end(), excludes) ||
         std::any_of(held_out.begin(), held_out.end(), excludes);
}

/// Instructions with another value of one field that no answer excludes; `only` restricts them to
/// the field of that name if it is not empty.
std::vector<MatrixInstruction> single_alternatives(const MatrixInstruction& instruction,
                                                   std::string_view only,
                                                   const AnswersByTopic& training,
                                                   const AnswersByTopic& held_out) {
  std::vector<MatrixInstruction> list;
  for (const Group group : groups) {
    const Step* const step = first_of(instruction, group);
    if (step == nullptr) continue;
    for (const AccumulatorField& field : probed_fields()) {
      if (!only.empty() && field.name != only) continue;
      const long now = field.get(step->spec);
      std::vector<long> open = field.values(instruction, *step);
      std::erase_if(open, [&](long value) {
        return value == now ||
               is_excluded(with_value(instruction, group, field, value), training, held_out);
      });
      std::sort(open.begin(), open.end());
      for (const long value : worth_asking(field, open, now))
        list.push_back(with_value(instruction, group, field, value));
    }
  }
  return list;
}

/// Instructions with other values of two confounded fields that no answer excludes.
std::vector<MatrixInstruction> paired_alternatives(const MatrixInstruction& instruction,
                                                   const AnswersByTopic& training,
                                                   const AnswersByTopic& held_out) {
  constexpr long near = 2;
  std::vector<MatrixInstruction> list;
  const Step* const step = first_of(instruction, Group::accumulations);
  if (step == nullptr) return list;
  for (const auto& [first, second] : confounded_pairs()) {
    const long now = first->get(step->spec);
    for (const long x : first->values(instruction, *step)) {
      if (x == now || std::abs(x - now) > near) continue;
      for (const MatrixInstruction& other : with_grid_value(instruction, *first, x))
        for (const long y : second->values(instruction, *step))
          if (std::abs(y - x) <= near || y == second->get(step->spec))
            list.push_back(with_value(other, Group::accumulations, *second, y));
    }
  }
  std::erase_if(list,
                [&](const MatrixInstruction& x) { return is_excluded(x, training, held_out); });
  return list;
}

/// Questions to which the models of `instruction` and of an alternative give different answers, a
/// few for each alternative.
std::vector<Question> distinguishing_questions(const BlackBox& box,
                                               const MatrixInstruction& instruction,
                                               const std::vector<MatrixInstruction>& alternatives,
                                               std::mt19937_64& random) {
  std::vector<Question> chosen;
  std::vector<std::size_t> found(alternatives.size());
  const auto as_answer = [&](std::uint64_t d) {
    return Answered{{}, d, box.nans_alike && is_nan(box.d, d)};
  };
  const auto search = [&](std::vector<Question> list) {
    for (Question& q : list) {
      bool distinguishes = false;
      std::optional<std::uint64_t> own;
      for (std::size_t i = 0; i < alternatives.size(); ++i) {
        if (found[i] >= questions_per_alternative) continue;
        if (!own) own = model(instruction, q);
        if (is_answer(box.d, model(alternatives[i], q), as_answer(*own))) continue;
        ++found[i];
        distinguishes = true;
      }
      if (distinguishes) chosen.push_back(std::move(q));
    }
  };
  if (alternatives.empty()) return chosen;
  if (!formats::is_integer(box.d)) search(aimed_questions(box, instruction, aimed_count, random));
  for (const Topic topic : topics) search(questions(box, topic, searched_count, random));
  return chosen;
}

}  // namespace

std::vector<MatrixInstruction> alternatives_in(const MatrixInstruction& instruction,
                                               std::string_view field,
                                               const AnswersByTopic& training,
                                               const AnswersByTopic& held_out) {
  return single_alternatives(instruction, field, training, held_out);
}

std::vector<MatrixInstruction> alternatives_of(const MatrixInstruction& instruction,
                                               const AnswersByTopic& training,
                                               const AnswersByTopic& held_out) {
  std::vector<MatrixInstruction> list = single_alternatives(instruction, "", training, held_out);
  const std::vector<MatrixInstruction> pairs = paired_alternatives(instruction, training, held_out);
  list.insert(list.end(), pairs.begin(), pairs.end());
  return list;
}

bool ask_distinguishing_questions(const BlackBox& box, const MatrixInstruction& instruction,
                                  const std::vector<MatrixInstruction>& others,
                                  AnswersByTopic& training, AnswersByTopic& held_out,
                                  std::mt19937_64& random) {
  std::vector<Question> list = distinguishing_questions(box, instruction, others, random);
  if (list.empty()) return false;
  bool contradicted = false;
  for (Answered& x : ask(box, std::move(list))) {
    const bool wrong = !reproduces(instruction, x);
    contradicted = contradicted || wrong;
    (wrong ? training.back() : held_out.back()).push_back(std::move(x));
  }
  return contradicted;
}

}  // namespace guardbit::emulator
