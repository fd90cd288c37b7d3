#include "emulator/probe_telling.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/probe_aimed.hpp"
#include "emulator/probe_fit.hpp"

namespace guardbit::emulator {

namespace {

/// Questions that are looked through, of each topic and aimed ones, for one that tells two values
/// of a field apart, and how many of those are asked.
constexpr std::size_t sifted_count = 4000;
constexpr std::size_t aimed_count = 16000;
constexpr std::size_t telling_count = 3;

/// Every word; of numbers those next to the row's own on either side, which are the hardest to see,
/// and farther ones at doubling distances.
bool is_looked_at(const ProbedField& field, long value, long now) {
  const auto distance = static_cast<unsigned long>(std::abs(value - now));
  return distance != 0 && (!field.words.empty() || std::has_single_bit(distance));
}

bool is_ruled_out(const MatrixInstruction& row, const Pools& pools, const Pools& fresh) {
  const auto refutes = [&](const Pool& pool) { return refutation(row, pool).has_value(); };
  return std::any_of(pools.begin(), pools.end(), refutes) ||
         std::any_of(fresh.begin(), fresh.end(), refutes);
}

/// Rows with another value of one field.
std::vector<MatrixInstruction> alternatives_of(const MatrixInstruction& row) {
  std::vector<MatrixInstruction> list;
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      const long now = field.get(step->spec);
      for (const long value : field.values(row, *step))
        if (is_looked_at(field, value, now)) list.push_back(with_value(row, group, field, value));
    }
  }
  return list;
}

/// Rows with other values of two fields that hide each other.
std::vector<MatrixInstruction> paired_alternatives(const MatrixInstruction& row) {
  constexpr long near = 2;
  std::vector<MatrixInstruction> list;
  const Step* const step = first_of(row, Group::accumulations);
  if (step == nullptr) return list;
  for (const auto& [first, second] : hidden_pairs()) {
    const long now = first->get(step->spec);
    for (const long x : first->values(row, *step)) {
      if (x == now || std::abs(x - now) > near) continue;
      const MatrixInstruction other = with_value(row, Group::accumulations, *first, x);
      for (const long y : second->values(row, *step))
        if (std::abs(y - x) <= near || is_looked_at(*second, y, second->get(step->spec)))
          list.push_back(with_value(other, Group::accumulations, *second, y));
    }
  }
  return list;
}

/// Alternatives that no answer has ruled out.
std::vector<MatrixInstruction> open_alternatives(const MatrixInstruction& row, const Pools& pools,
                                                 const Pools& fresh) {
  std::vector<MatrixInstruction> open = alternatives_of(row);
  const std::vector<MatrixInstruction> pairs = paired_alternatives(row);
  open.insert(open.end(), pairs.begin(), pairs.end());
  std::erase_if(open, [&](const MatrixInstruction& x) { return is_ruled_out(x, pools, fresh); });
  return open;
}

/// Questions that the row and one of the alternatives answer differently, a few for each: what
/// chance did not ask, the models themselves can find.
std::vector<Question> telling_questions(const BlackBox& box, const MatrixInstruction& row,
                                        const std::vector<MatrixInstruction>& alternatives,
                                        std::mt19937_64& random) {
  std::vector<Question> telling;
  std::vector<std::size_t> found(alternatives.size());
  const auto sift = [&](std::vector<Question> list) {
    for (Question& q : list) {
      bool tells = false;
      std::optional<std::uint64_t> own;
      for (std::size_t i = 0; i < alternatives.size(); ++i) {
        if (found[i] >= telling_count) continue;
        if (!own) own = model(row, q);
        if (model(alternatives[i], q) == *own) continue;
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

bool ask_what_tells(const BlackBox& box, const MatrixInstruction& row, Pools& pools, Pools& fresh,
                    std::mt19937_64& random) {
  std::vector<Question> list =
      telling_questions(box, row, open_alternatives(row, pools, fresh), random);
  if (list.empty()) return false;
  bool refuted = false;
  for (Answered& x : asked(box, std::move(list))) {
    const bool wrong = model(row, x.question) != x.d;
    refuted = refuted || wrong;
    (wrong ? pools.back() : fresh.back()).push_back(std::move(x));
  }
  return refuted;
}

}  // namespace guardbit::emulator
