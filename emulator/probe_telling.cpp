#include "emulator/probe_telling.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/probe_fit.hpp"

namespace guardbit::emulator {

namespace {

/// Questions that are looked through, of each topic, for one that tells two values of a field
/// apart, and how many of those are asked.
constexpr std::size_t sifted_count = 6000;
constexpr std::size_t telling_count = 3;

/// The row with another value of one field, where no answer has ruled it out: the values next to
/// the row's own on either side, which are the hardest to see, and every word.
std::vector<MatrixInstruction> open_alternatives(const MatrixInstruction& row, const Pools& pools,
                                                 const Pools& fresh) {
  constexpr long nearest = 2;
  std::vector<MatrixInstruction> open;
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      const long now = field.get(step->spec);
      for (const long value : field.values(row, *step)) {
        if (value == now || (field.words.empty() && std::abs(value - now) > nearest)) continue;
        const MatrixInstruction other = with_value(row, group, field, value);
        const bool ruled_out =
            std::any_of(pools.begin(), pools.end(),
                        [&](const Pool& p) { return refutation(other, p).has_value(); }) ||
            std::any_of(fresh.begin(), fresh.end(),
                        [&](const Pool& p) { return refutation(other, p).has_value(); });
        if (!ruled_out) open.push_back(other);
      }
    }
  }
  return open;
}

/// Questions that the row and one of the alternatives answer differently, a few for each: what
/// chance did not ask, the models themselves can find.
std::vector<Question> telling_questions(const BlackBox& box, const MatrixInstruction& row,
                                        std::vector<MatrixInstruction> alternatives,
                                        std::mt19937_64& random) {
  std::vector<Question> telling;
  std::vector<std::size_t> found(alternatives.size());
  for (const Topic topic : topics) {
    for (Question& q : questions(box, topic, sifted_count, random)) {
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
  }
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
