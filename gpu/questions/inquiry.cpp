#include "gpu/questions/inquiry.hpp"

#include <algorithm>
#include <array>

#include "formats/support/error.hpp"

namespace guardbit::gpu {

namespace {

std::uint64_t exact_word(const Format& format, long double value, std::string_view where) {
  const std::uint64_t word = word_of(format, value);
  if (value_of(format, word) != value)
    throw formats::Error(std::string(where), "a probe's value does not fit its format");
  return word;
}

/// Positions of the stored values of a sparse row: they vary by row and group, and ascend.
std::uint8_t position_of(const TensorCoreInstruction& row, int i, int stored) {
  const SparseGroup group = sparse_group(row);
  const int index = i + stored / group.stored;
  if (group.positions == 2) return static_cast<std::uint8_t>(index % 2);
  static constexpr std::array<std::array<std::uint8_t, 2>, 6> pairs = {
      {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};
  const int chunk = group.stored / 2;
  return pairs[static_cast<std::size_t>(index % 6)]
              [static_cast<std::size_t>(stored % group.stored / chunk)];
}

}  // namespace

Inquiry& Inquiry::probe(std::uint64_t c) {
  probes_.push_back({{}, c});
  return *this;
}

Inquiry& Inquiry::probe_value(long double c) { return probe(exact_word(row.c, c, row.name)); }

Inquiry& Inquiry::term(int k, long double a, long double b) {
  return codes(k, exact_word(row.a, a, row.name), exact_word(row.b, b, row.name));
}

Inquiry& Inquiry::codes(int k, std::uint64_t a, std::uint64_t b) {
  if (k >= row.stored_k()) throw formats::Error(std::string(row.name), "a probe exceeds K");
  probes_.back().terms.push_back({k, a, b});
  return *this;
}

Inquiry& Inquiry::fill(long double a, long double b) {
  for (int k = 0; k < row.stored_k(); ++k)
    if (std::ranges::none_of(probes_.back().terms, [k](const Term& t) { return t.k == k; }))
      term(k, a, b);
  return *this;
}

Inquiry& Inquiry::power(int k, int exponent, bool negative) {
  const auto holds = [](const Format& f, int e) {
    return value_of(f, word_of(f, two(e))) == two(e);
  };
  int half = exponent / 2;
  while (!holds(row.b, exponent - half) && holds(row.a, half - 1)) --half;
  return term(k, negative ? -two(half) : two(half), two(exponent - half));
}

void Inquiry::outcome(std::string meaning, std::vector<std::uint64_t> words,
                      std::optional<emulator::MatrixInstruction> hypothesis) {
  if (words.size() != probes_.size())
    throw formats::Error(std::string(row.name), "outcome '" + meaning + "' misses a probe");
  outcomes_.push_back({std::move(meaning), std::move(words), std::move(hypothesis)});
}

std::uint64_t Inquiry::d(long double value) const { return exact_word(row.d, value, row.name); }

emulator::MatrixInstruction Inquiry::if_steps(const emulator::Steps& steps) const {
  emulator::MatrixInstruction changed = believed;
  changed.steps = steps;
  return changed;
}

void Inquiry::keep_together(int neighbours, bool ordered) {
  neighbours_ = neighbours;
  ordered_ = ordered;
  step_ = std::max(row.stored_k() / 8, 1);
  while (step_ % neighbours != 0) ++step_;
}

int Inquiry::placements() const {
  return step_ == 0 ? 1 : std::max(1, std::min({8, row.m, row.n, row.stored_k() / step_}));
}

int Inquiry::placed_k(int k, int placement) const {
  if (step_ == 0) return k;
  const bool reversed = !ordered_ && placement % 2 != 0 && k < neighbours_;
  return ((reversed ? neighbours_ - 1 - k : k) + placement * step_) % row.stored_k();
}

Batch pose(const Inquiry& inquiry) {
  const TensorCoreInstruction& row = inquiry.row;
  const auto& probes = inquiry.probes();
  Batch batch(row, static_cast<int>(probes.size()));
  for (int t = 0; t < batch.executions; ++t) {
    const Probe& probe = probes[static_cast<std::size_t>(t)];
    const auto at = [t](int rows, int columns, int i, int j) {
      return element_index(rows, columns, t, i, j);
    };
    for (int i = 0; row.sparse && i < row.m; ++i)
      for (int s = 0; s < row.stored_k(); ++s)
        batch.e[at(row.m, row.stored_k(), i, s)] = position_of(row, i, s);
    for (int r = 0; r < inquiry.placements(); ++r) {
      for (const Term& term : probe.terms) {
        const int stored = inquiry.placed_k(term.k, r);
        const int k = row.sparse ? dense_column(row, stored, position_of(row, r, stored)) : stored;
        batch.a[at(row.m, row.stored_k(), r, stored)] = term.a;
        batch.b[at(row.k, row.n, k, r)] = term.b;
      }
    }
    for (int i = 0; i < row.m; ++i)
      for (int j = 0; j < row.n; ++j) batch.c[at(row.m, row.n, i, j)] = probe.c;
  }
  return batch;
}

Answer read_answer(const Inquiry& inquiry, const Batch& batch) {
  const TensorCoreInstruction& row = inquiry.row;
  Answer answer;
  for (int t = 0; t < batch.executions; ++t) {
    const std::uint64_t first = batch.d[element_index(row.m, row.n, t, 0, 0)];
    answer.words.push_back(first);
    for (int r = 1; r < inquiry.placements(); ++r)
      answer.same_everywhere &= batch.d[element_index(row.m, row.n, t, r, r)] == first;
  }
  return answer;
}

const Outcome* conclude(const Inquiry& inquiry, const Answer& answer) {
  if (!answer.same_everywhere) return nullptr;
  for (const Outcome& outcome : inquiry.outcomes())
    if (outcome.words == answer.words) return &outcome;
  return nullptr;
}

}  // namespace guardbit::gpu
