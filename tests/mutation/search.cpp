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
  std::string text(name_of(family));
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

TestVector random_vector(const MatrixInstruction& instruction, InputFamily family,
                         std::uint64_t index) {
  TestVector v;
  v.purpose = purpose_of(family);
  v.x = dot_inputs(instruction, family, 1, index);
  return v;
}

TestVector sparse_vector(const MatrixInstruction& instruction, InputFamily family,
                         std::uint64_t seed) {
  const BatchInputs inputs =
      batch_inputs(instruction, family, seed, {1, 1, instruction.shape.k}, 1);
  const emulator::MatrixBatch batch = inputs.batch(instruction, nullptr);
  const auto list = [](const emulator::ConstCodes& codes, int count) {
    std::vector<std::uint64_t> copy;
    for (int i = 0; i < count; ++i) copy.push_back(codes[i]);
    return copy;
  };
  const int stored = emulator::stored_k(instruction, instruction.shape.k);
  TestVector v;
  v.purpose = "positions";
  v.x.a = list(batch.a, stored);
  v.x.b = list(batch.b, instruction.shape.k);
  v.x.c = batch.c[0];
  v.e = list(batch.e, stored);
  return v;
}

/// The oracle's answer, which must be the model's.
void judge(const MatrixInstruction& instruction, const Judge& oracle, TestVector& v) {
  v.d = oracle.answer(gathered(instruction, v));
  if (const auto answer = computed(instruction, v);
      !answer || !agree(instruction, oracle, *answer, v.d)) {
    throw std::runtime_error(text_of(instruction) + ": model and oracle disagree on\n" +
                             text_of(v.x));
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

std::vector<Mutant> observable_mutants(const MatrixInstruction& instruction) {
  std::vector<Mutant> list = mutants_of(instruction);
  std::erase_if(list,
                [&](const Mutant& m) { return static_cast<bool>(unobservable(instruction, m)); });
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
  Collection(const MatrixInstruction& instruction, std::vector<Mutant> mutants, bool any_nan)
      : instruction_(instruction),
        mutants_(std::move(mutants)),
        any_nan_(any_nan),
        noticed_(mutants_.size()) {}

  bool complete() const {
    return std::all_of(noticed_.begin(), noticed_.end(), [](bool x) { return x; });
  }

  void offer(TestVector v, bool keep_anyway) {
    const auto answer = computed(instruction_, v);
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
  const MatrixInstruction& instruction_;
  std::vector<Mutant> mutants_;
  bool any_nan_;
  std::vector<bool> noticed_;
  std::vector<TestVector> list_;
  std::vector<std::vector<bool>> matrix_;
  std::vector<std::size_t> cost_;
};

/// Does the instruction flush as x86 does? Its last bits take probes of their own.
bool flushes(const MatrixInstruction& instruction) {
  return std::any_of(
      instruction.steps.begin(), instruction.steps.end(),
      [](const emulator::Step& step) { return step.spec.output == emulator::Subnormals::daz_ftz; });
}

/// Is a result of the instruction the upper part of a wider number?
bool cuts_results(const MatrixInstruction& instruction) {
  return std::any_of(instruction.steps.begin(), instruction.steps.end(),
                     [](const emulator::Step& step) {
                       return step.spec.result_fraction_bits > step.result.fraction_bits;
                     });
}

/// Behaviour that is not a field: one vector each.
std::vector<TestVector> samples(const MatrixInstruction& instruction) {
  std::vector<TestVector> list;
  for (const InputFamily family : input_families(instruction)) {
    switch (family) {
      case InputFamily::sum_cancellation:
      case InputFamily::near_overflow:
      case InputFamily::many_specials:
      case InputFamily::infinity_minus_infinity:
      case InputFamily::exact_zeros:
      case InputFamily::extreme_integers:
        list.push_back(random_vector(instruction, family, 1000));
        break;
      default: break;
    }
  }
  return list;
}

}  // namespace

DotInputs gathered(const MatrixInstruction& instruction, const TestVector& v) {
  if (v.e.empty()) return v.x;
  DotInputs x = v.x;
  x.b.clear();
  for (std::size_t s = 0; s < x.a.size(); ++s) {
    const auto e = static_cast<std::size_t>(v.e[s]);
    const std::size_t k = instruction.a == formats::tf32      ? 2 * s + e
                          : formats::bits(instruction.a) == 4 ? s / 4 * 8 + 2 * e + s % 2
                                                              : s / 2 * 4 + e;
    x.b.push_back(v.x.b.at(k));
  }
  return x;
}

bool notices(const TestVector& v, const Mutant& mutant, bool nan_is_any_nan) {
  const auto answer = computed(mutant.instruction, v);
  if (!answer || *answer == v.d) return false;
  return !(nan_is_any_nan && is_nan(mutant.instruction.d, *answer) &&
           is_nan(mutant.instruction.d, v.d));
}

TestVector candidate(const MatrixInstruction& instruction, std::uint64_t index) {
  const std::vector<InputFamily> families = input_families(instruction);
  // Two probes for each random input.
  if (index % 3 == 2)
    return random_vector(instruction, families[index / 3 % families.size()], index);
  const std::uint64_t seed = 1'000'003 * index + 17;
  if (formats::is_integer(instruction.a)) return probe(instruction, Probe::limits, seed);
  if (index % 16 == 4 && cuts_results(instruction)) return probe(instruction, Probe::cut, seed);
  const auto kinds =
      static_cast<std::uint64_t>(flushes(instruction) ? Probe::limits : Probe::underflow);
  return probe(instruction, static_cast<Probe>((index - index / 3) % kinds), seed);
}

std::vector<TestVector> search_vectors(const MatrixInstruction& instruction, std::uint64_t limit) {
  constexpr std::uint64_t kept_whole = 96;
  const Judge oracle = judge_of(instruction);
  Collection collection(instruction, observable_mutants(instruction), oracle.nan_is_any_nan);
  std::uint64_t index = 0;
  for (; index < kept_whole; ++index) collection.offer(candidate(instruction, index), true);
  for (; index < limit && !collection.complete(); ++index) {
    collection.offer(candidate(instruction, index), false);
  }
  if (!collection.complete()) {
    throw std::runtime_error(text_of(instruction) + ": nothing notices" + collection.unnoticed());
  }
  std::vector<TestVector> chosen = collection.cover();
  for (TestVector& v : samples(instruction)) chosen.push_back(std::move(v));
  for (TestVector& v : chosen) judge(instruction, oracle, v);
  return chosen;
}

std::vector<TestVector> search_sparsity_vectors(const MatrixInstruction& instruction) {
  const auto family =
      formats::is_integer(instruction.a) ? InputFamily::raw_bits : InputFamily::narrow_exponents;
  Collection collection(instruction, sparsity_mutants_of(instruction), false);
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    TestVector v = sparse_vector(instruction, family, seed);
    collection.offer(std::move(v), true);
  }
  if (!collection.complete()) {
    throw std::runtime_error(text_of(instruction) + ": nothing notices" + collection.unnoticed());
  }
  std::vector<TestVector> chosen = collection.cover();
  for (TestVector& v : chosen) judge(instruction, judge_of(instruction), v);
  return chosen;
}

}  // namespace guardbit::tests
