#include "emulator/probe/answers.hpp"

#include <iterator>
#include <string>
#include <utility>

#include "emulator/model/dot.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

bool is_nan(const Format& f, std::uint64_t code) {
  return formats::decode(f, code).kind == formats::Kind::nan;
}

std::uint64_t model(const MatrixInstruction& instruction, const Question& q) {
  return dot(instruction, {q.a, q.b, q.c, q.a_scale, q.b_scale});
}

std::size_t mismatches(const MatrixInstruction& instruction, const Answers& answers,
                       std::size_t limit) {
  std::size_t count = 0;
  for (const Answered& x : answers) {
    if (!reproduces(instruction, x) && ++count >= limit) break;
  }
  return count;
}

std::size_t mismatches(const MatrixInstruction& instruction, const AnswersByTopic& by_topic,
                       std::size_t limit) {
  std::size_t count = 0;
  for (const Answers& answers : by_topic) {
    if (count < limit) count += mismatches(instruction, answers, limit - count);
  }
  return count;
}

std::optional<std::size_t> counterexample(const MatrixInstruction& instruction,
                                          const Answers& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!reproduces(instruction, answers[i])) return i;
  }
  return {};
}

Answers ask(const BlackBox& box, std::vector<Question> list) {
  const std::vector<std::uint64_t> d = box.answer(list);
  if (d.size() != list.size()) {
    throw formats::Error("probe", "the unit gave " + std::to_string(d.size()) + " answers to " +
                                      std::to_string(list.size()) + " questions");
  }
  Answers answers;
  for (std::size_t i = 0; i < list.size(); ++i)
    answers.push_back({std::move(list[i]), d[i], box.nans_alike && is_nan(box.d, d[i])});
  return answers;
}

AnswersByTopic ask_each_topic(const BlackBox& box,
                              const std::array<std::size_t, topics.size()>& counts,
                              std::mt19937_64& random) {
  std::vector<Question> all;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    std::vector<Question> list = questions(box, topics[t], counts[t], random);
    std::move(list.begin(), list.end(), std::back_inserter(all));
  }
  Answers answers = ask(box, std::move(all));
  AnswersByTopic by_topic;
  std::size_t next = 0;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    for (std::size_t i = 0; i < counts[t]; ++i) by_topic[t].push_back(std::move(answers[next++]));
  }
  return by_topic;
}

bool is_answer(const Format& f, std::uint64_t code, const Answered& x) {
  return code == x.d || (x.any_nan && is_nan(f, code));
}

bool reproduces(const MatrixInstruction& instruction, const Answered& x) {
  return is_answer(instruction.d, model(instruction, x.question), x);
}

}  // namespace guardbit::emulator
