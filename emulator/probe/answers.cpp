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

std::uint64_t model(const MatrixInstruction& row, const Question& q) {
  const DotOperands operands{q.a, q.b, q.c, q.a_scale, q.b_scale};
  if (q.a.size() <= 16) return dot<16>(row, operands);
  if (q.a.size() <= 64) return dot<64>(row, operands);
  return dot<max_k>(row, operands);
}

std::size_t mismatches(const MatrixInstruction& row, const Pool& pool, std::size_t limit) {
  std::size_t count = 0;
  for (const Answered& x : pool) {
    if (!gives(row, x) && ++count >= limit) break;
  }
  return count;
}

std::size_t mismatches(const MatrixInstruction& row, const Pools& pools, std::size_t limit) {
  std::size_t count = 0;
  for (const Pool& pool : pools) {
    if (count < limit) count += mismatches(row, pool, limit - count);
  }
  return count;
}

std::optional<std::size_t> refutation(const MatrixInstruction& row, const Pool& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!gives(row, answers[i])) return i;
  }
  return {};
}

Pool asked(const BlackBox& box, std::vector<Question> list) {
  const std::vector<std::uint64_t> d = box.answer(list);
  if (d.size() != list.size()) {
    throw formats::Error("probe", "the unit gave " + std::to_string(d.size()) + " answers to " +
                                      std::to_string(list.size()) + " questions");
  }
  Pool pool;
  for (std::size_t i = 0; i < list.size(); ++i)
    pool.push_back({std::move(list[i]), d[i], box.nans_alike && is_nan(box.d, d[i])});
  return pool;
}

Pools asked_of_each_topic(const BlackBox& box, const std::array<std::size_t, topics.size()>& counts,
                          std::mt19937_64& random) {
  std::vector<Question> all;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    std::vector<Question> list = questions(box, topics[t], counts[t], random);
    std::move(list.begin(), list.end(), std::back_inserter(all));
  }
  Pool answers = asked(box, std::move(all));
  Pools pools;
  std::size_t next = 0;
  for (std::size_t t = 0; t < topics.size(); ++t) {
    for (std::size_t i = 0; i < counts[t]; ++i) pools[t].push_back(std::move(answers[next++]));
  }
  return pools;
}

bool is_answer(const Format& f, std::uint64_t code, const Answered& x) {
  return code == x.d || (x.any_nan && is_nan(f, code));
}

bool gives(const MatrixInstruction& row, const Answered& x) {
  return is_answer(row.d, model(row, x.question), x);
}

}  // namespace guardbit::emulator
