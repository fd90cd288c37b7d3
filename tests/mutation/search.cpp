#include "tests/mutation/search.hpp"

#include <algorithm>
#include <stdexcept>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/mutation/directed.hpp"
#include "tests/mutation/unobservable.hpp"

namespace guardbit::tests {

namespace {

bool is_nan(const formats::Format& f, std::uint64_t code) {
  return formats::decode(f, code).kind == formats::Kind::nan;
}

std::string purpose_of(InputFamily family) {
  std::string text(family_name(family));
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

TestVector random_vector(const MatrixInstruction& row, InputFamily family, std::uint64_t index) {
  TestVector v;
  v.purpose = purpose_of(family);
  v.x = dot_inputs(row, family, 1, index);
  return v;
}

TestVector sparse_vector(const MatrixInstruction& row, InputFamily family, std::uint64_t seed) {
  const BatchInputs inputs = batch_inputs(row, family, seed, {1, 1, row.shape.k}, 1);
  const emulator::MatrixBatch batch = inputs.batch(row, nullptr);
  const auto list = [](const emulator::ConstCodes& codes, int count) {
    std::vector<std::uint64_t> copy;
    for (int i = 0; i < count; ++i) copy.push_back(codes[i]);
    return copy;
  };
  const int stored = emulator::stored_k(row, row.shape.k);
  TestVector v;
  v.purpose = "positions";
  v.x.a = list(batch.a, stored);
  v.x.b = list(batch.b, row.shape.k);
  v.x.c = batch.c[0];
  v.e = list(batch.e, stored);
  return v;
}

/// The oracle's answer, which must be the model's.
void judge(const MatrixInstruction& row, const Judge& oracle, TestVector& v) {
  v.d = oracle.answer(gathered(row, v));
  if (const auto answer = computed(row, v); !answer || !agree(row, oracle, *answer, v.d)) {
    throw std::runtime_error(text_of(row) + ": model and oracle disagree on\n" + text_of(v.x));
  }
}

/// The indices of a cover: the vector that notices most of what is left, shorter ones first.
std::vector<std::size_t> greedy_cover(const std::vector<std::vector<bool>>& noticed,
                                      const std::vector<std::size_t>& cost, std::size_t mutants) {
  std::vector<std::size_t> chosen;
  std::vector<bool> covered(mutants, false);
  while (true) {
    std::size_t best = 0, most = 0;
    for (std::size_t v = 0; v < noticed.size(); ++v) {
      std::size_t fresh = 0;
      for (std::size_t m = 0; m < mutants; ++m) fresh += noticed[v][m] && !covered[m] ? 1U : 0U;
      const bool better = fresh > most || (fresh == most && fresh != 0 && cost[v] < cost[best]);
      if (better) {
        best = v;
        most = fresh;
      }
    }
    if (most == 0) return chosen;
    chosen.push_back(best);
    for (std::size_t m = 0; m < mutants; ++m) covered[m] = covered[m] || noticed[best][m];
  }
}

std::vector<Mutant> observable_mutants(const MatrixInstruction& row) {
  std::vector<Mutant> list = mutants_of(row);
  std::erase_if(list, [&](const Mutant& m) { return static_cast<bool>(unobservable(row, m)); });
  return list;
}

std::size_t cost_of(const DotInputs& x) {
  const auto nonzero = [](const std::vector<std::uint64_t>& codes) {
    auto end = codes.size();
    while (end > 0 && codes[end - 1] == 0) --end;
    return end;
  };
  return nonzero(x.a) + nonzero(x.b);
}

/// Vectors of a stream that notice something new, after a first part that is kept whole so that
/// the cover has a choice.
class Collection {
 public:
  Collection(const MatrixInstruction& row, std::vector<Mutant> mutants, bool any_nan)
      : row_(row), mutants_(std::move(mutants)), any_nan_(any_nan), noticed_(mutants_.size()) {}

  bool complete() const {
    return std::all_of(noticed_.begin(), noticed_.end(), [](bool x) { return x; });
  }

  void offer(TestVector v, bool keep_anyway) {
    const auto answer = computed(row_, v);
    if (!answer) return;
    v.d = *answer;
    std::vector<bool> notices_which(mutants_.size(), false);
    bool fresh = false;
    for (std::size_t m = 0; m < mutants_.size(); ++m) {
      if (!keep_anyway && !fresh && noticed_[m]) continue;
      notices_which[m] = notices(v, mutants_[m], any_nan_);
      fresh = fresh || (notices_which[m] && !noticed_[m]);
    }
    if (!fresh && !keep_anyway) return;
    for (std::size_t m = 0; m < mutants_.size(); ++m) {
      // What stood before the first fresh one was not tried yet.
      if (!notices_which[m]) notices_which[m] = notices(v, mutants_[m], any_nan_);
      noticed_[m] = noticed_[m] || notices_which[m];
    }
    cost_.push_back(cost_of(v.x));
    matrix_.push_back(std::move(notices_which));
    list_.push_back(std::move(v));
  }

  std::vector<TestVector> cover() const {
    std::vector<TestVector> chosen;
    for (const std::size_t v : greedy_cover(matrix_, cost_, mutants_.size())) {
      chosen.push_back(list_[v]);
    }
    return chosen;
  }

  std::string unnoticed() const {
    std::string text;
    for (std::size_t m = 0; m < mutants_.size(); ++m) {
      if (noticed_[m]) continue;
      text += "\n  " + mutants_[m].field + ": " + mutants_[m].from + " -> " + mutants_[m].to;
    }
    return text;
  }

 private:
  const MatrixInstruction& row_;
  std::vector<Mutant> mutants_;
  bool any_nan_;
  std::vector<bool> noticed_;
  std::vector<TestVector> list_;
  std::vector<std::vector<bool>> matrix_;
  std::vector<std::size_t> cost_;
};

/// Does the row flush as x86 does? Its last bits take probes of their own.
bool flushes(const MatrixInstruction& row) {
  return std::any_of(row.steps.begin(), row.steps.end(), [](const emulator::Step& step) {
    return step.spec.output == emulator::Subnormals::daz_ftz;
  });
}

/// Behaviour that is not a field: one vector each.
std::vector<TestVector> samples(const MatrixInstruction& row) {
  std::vector<TestVector> list;
  for (const InputFamily family : input_families(row)) {
    switch (family) {
      case InputFamily::cancellation:
      case InputFamily::near_overflow:
      case InputFamily::specials:
      case InputFamily::opposite_infinities:
      case InputFamily::exact_zeros:
      case InputFamily::integer_extremes: list.push_back(random_vector(row, family, 1000)); break;
      default: break;
    }
  }
  return list;
}

}  // namespace

DotInputs gathered(const MatrixInstruction& row, const TestVector& v) {
  if (v.e.empty()) return v.x;
  DotInputs x = v.x;
  x.b.clear();
  for (std::size_t s = 0; s < x.a.size(); ++s) {
    const auto e = static_cast<std::size_t>(v.e[s]);
    const std::size_t k = row.a == formats::tf32      ? 2 * s + e
                          : formats::bits(row.a) == 4 ? s / 4 * 8 + 2 * e + s % 2
                                                      : s / 2 * 4 + e;
    x.b.push_back(v.x.b.at(k));
  }
  return x;
}

bool notices(const TestVector& v, const Mutant& mutant, bool nan_is_any_nan) {
  const auto answer = computed(mutant.row, v);
  if (!answer || *answer == v.d) return false;
  return !(nan_is_any_nan && is_nan(mutant.row.d, *answer) && is_nan(mutant.row.d, v.d));
}

TestVector candidate(const MatrixInstruction& row, std::uint64_t index) {
  const std::vector<InputFamily> families = input_families(row);
  // Two probes for each random input.
  if (index % 3 == 2) return random_vector(row, families[index / 3 % families.size()], index);
  const std::uint64_t seed = 1'000'003 * index + 17;
  if (formats::is_integer(row.a)) return probe(row, Probe::limits, seed);
  const auto kinds = static_cast<std::uint64_t>(flushes(row) ? Probe::limits : Probe::underflow);
  return probe(row, static_cast<Probe>((index - index / 3) % kinds), seed);
}

std::vector<TestVector> search_vectors(const MatrixInstruction& row, std::uint64_t limit) {
  constexpr std::uint64_t kept_whole = 96;
  const Judge oracle = judge_of(row);
  Collection collection(row, observable_mutants(row), oracle.nan_is_any_nan);
  std::uint64_t index = 0;
  for (; index < kept_whole; ++index) collection.offer(candidate(row, index), true);
  for (; index < limit && !collection.complete(); ++index) {
    collection.offer(candidate(row, index), false);
  }
  if (!collection.complete()) {
    throw std::runtime_error(text_of(row) + ": nothing notices" + collection.unnoticed());
  }
  std::vector<TestVector> chosen = collection.cover();
  for (TestVector& v : samples(row)) chosen.push_back(std::move(v));
  for (TestVector& v : chosen) judge(row, oracle, v);
  return chosen;
}

std::vector<TestVector> search_sparsity_vectors(const MatrixInstruction& row) {
  const auto family =
      formats::is_integer(row.a) ? InputFamily::raw_bits : InputFamily::narrow_exponents;
  Collection collection(row, sparsity_mutants_of(row), false);
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    TestVector v = sparse_vector(row, family, seed);
    collection.offer(std::move(v), true);
  }
  if (!collection.complete()) {
    throw std::runtime_error(text_of(row) + ": nothing notices" + collection.unnoticed());
  }
  std::vector<TestVector> chosen = collection.cover();
  for (TestVector& v : chosen) judge(row, judge_of(row), v);
  return chosen;
}

}  // namespace guardbit::tests
