#include "emulator/probe/telling.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/probe/aimed_questions.hpp"
#include "emulator/probe/fit.hpp"

namespace guardbit::emulator {

namespace {

/// Questions that are looked through, of each topic and aimed ones, for one that tells two values
/// of a field apart, and how many of those are asked.
constexpr std::size_t sifted_count = 4000;
constexpr std::size_t aimed_count = 16000;
constexpr std::size_t telling_count = 3;

/// Of a field's open values: every word; of numbers those next to the row's own on either side,
/// which are the hardest to see, the farthest, and some between at doubling distances.
std::vector<long> looked_at(const ProbedField& field, const std::vector<long>& open, long now) {
  constexpr std::ptrdiff_t farthest = 4;
  std::vector<long> list;
  for (auto value = open.begin(); value != open.end(); ++value) {
    const auto distance = static_cast<unsigned long>(std::abs(*value - now));
    const bool at_end = value - open.begin() < farthest || open.end() - value <= farthest;
    if (!field.words.empty() || at_end || std::has_single_bit(distance)) list.push_back(*value);
  }
  return list;
}

bool is_ruled_out(const MatrixInstruction& row, const Pools& pools, const Pools& fresh) {
  const auto refutes = [&](const Pool& pool) { return refutation(row, pool).has_value(); };
  return std::any_of(pools.begin(), pools.end(), refutes) ||
         std::any_of(fresh.begin(), fresh.end(), refutes);
}

/// Rows with another value of one field that no answer has ruled out; of that field alone, where
/// it has a name.
std::vector<MatrixInstruction> single_alternatives(const MatrixInstruction& row,
                                                   std::string_view only, const Pools& pools,
                                                   const Pools& fresh) {
  std::vector<MatrixInstruction> list;
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      if (!only.empty() && field.name != only) continue;
      const long now = field.get(step->spec);
      std::vector<long> open = field.values(row, *step);
      std::erase_if(open, [&](long value) {
        return value == now || is_ruled_out(with_value(row, group, field, value), pools, fresh);
      });
      std::sort(open.begin(), open.end());
      for (const long value : looked_at(field, open, now))
        list.push_back(with_value(row, group, field, value));
    }
  }
  return list;
}

/// Rows with other values of two fields that hide each other, which no answer has ruled out.
std::vector<MatrixInstruction> paired_alternatives(const MatrixInstruction& row, const Pools& pools,
                                                   const Pools& fresh) {
  constexpr long near = 2;
  std::vector<MatrixInstruction> list;
  const Step* const step = first_of(row, Group::accumulations);
  if (step == nullptr) return list;
  for (const auto& [first, second] : hidden_pairs()) {
    const long now = first->get(step->spec);
    for (const long x : first->values(row, *step)) {
      if (x == now || std::abs(x - now) > near) continue;
      for (const MatrixInstruction& other : with_grid_value(row, *first, x))
        for (const long y : second->values(row, *step))
          if (std::abs(y - x) <= near || y == second->get(step->spec))
            list.push_back(with_value(other, Group::accumulations, *second, y));
    }
  }
  std::erase_if(list, [&](const MatrixInstruction& x) { return is_ruled_out(x, pools, fresh); });
  return list;
}

/// Questions that the row and one of the alternatives answer differently, a few for each: what
/// chance did not ask, the models themselves can find.
std::vector<Question> telling_questions(const BlackBox& box, const MatrixInstruction& row,
                                        const std::vector<MatrixInstruction>& alternatives,
                                        std::mt19937_64& random) {
  std::vector<Question> telling;
  std::vector<std::size_t> found(alternatives.size());
  const auto as_answer = [&](std::uint64_t d) {
    return Answered{{}, d, box.nans_alike && is_nan(box.d, d)};
  };
  const auto sift = [&](std::vector<Question> list) {
    for (Question& q : list) {
      bool tells = false;
      std::optional<std::uint64_t> own;
      for (std::size_t i = 0; i < alternatives.size(); ++i) {
        if (found[i] >= telling_count) continue;
        if (!own) own = model(row, q);
        if (is_answer(box.d, model(alternatives[i], q), as_answer(*own))) continue;
        ++found[i];
        tells = true;
      }
      if (tells) telling.push_back(std::move(q));
    }
  };
  if (alternatives.empty()) return telling;
  if (!formats::is_integer(box.d)) sift(aimed_questions(box, row, aimed_count, random));
  for (const Topic topic : topics) sift(questions(box, topic, sifted_count, random));
  return telling;
}

}  // namespace

std::vector<MatrixInstruction> alternatives_in(const MatrixInstruction& row, std::string_view field,
                                               const Pools& pools, const Pools& fresh) {
  return single_alternatives(row, field, pools, fresh);
}

std::vector<MatrixInstruction> alternatives_of(const MatrixInstruction& row, const Pools& pools,
                                               const Pools& fresh) {
  std::vector<MatrixInstruction> list = single_alternatives(row, "", pools, fresh);
  const std::vector<MatrixInstruction> pairs = paired_alternatives(row, pools, fresh);
  list.insert(list.end(), pairs.begin(), pairs.end());
  return list;
}

bool ask_what_tells(const BlackBox& box, const MatrixInstruction& row,
                    const std::vector<MatrixInstruction>& others, Pools& pools, Pools& fresh,
                    std::mt19937_64& random) {
  std::vector<Question> list = telling_questions(box, row, others, random);
  if (list.empty()) return false;
  bool refuted = false;
  for (Answered& x : asked(box, std::move(list))) {
    const bool wrong = !gives(row, x);
    refuted = refuted || wrong;
    (wrong ? pools.back() : fresh.back()).push_back(std::move(x));
  }
  return refuted;
}

}  // namespace guardbit::emulator
