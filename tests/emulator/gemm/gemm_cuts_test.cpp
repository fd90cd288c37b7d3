#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/gemm.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"
#include "tests/emulator/gemm/gemm_owners.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/oracle/arithmetic.hpp"

// Elements of K that belong together: groups of a sparse A, runs of pieces. Plans that cut them are
// refused; the others give what the independent judge of instructions gives.
namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;
using formats::fp32;

/// A with at most so many numbers in each group as an instruction stores.
CodeMatrix sparse_matrix(const emulator::MatrixInstruction& instruction, std::int64_t rows,
                         std::int64_t k, Random& random) {
  CodeMatrix a = random_matrix(instruction.a, 1, rows, k, random);
  const emulator::Sparsity& s = instruction.sparsity;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t group = 0; group < k; group += s.group_elements) {
      int zeros = s.group_elements - random.between(0, s.stored_per_group);
      for (int left = s.group_elements; left > 0; --left)
        if (random.below(static_cast<std::uint64_t>(left)) < static_cast<std::uint64_t>(zeros)) {
          a.set(a.index(0, i, group + left - 1), 0);
          --zeros;
        }
    }
  return a;
}

/// What a plan of a sparse instruction gives, by the judge of instructions and exact sums.
class SparseJudge {
 public:
  SparseJudge(const GemmPlan& plan, const GemmProblem& x,
              const emulator::MatrixInstruction& instruction)
      : plan_(plan),
        x_(x),
        row_(instruction),
        judge_(judge_of(instruction)),
        sum_(oracle_format(instruction.d)) {}

  /// The keys that separate elements of a group.
  std::set<std::string> cutting_keys() const {
    std::set<std::string> keys;
    for (std::int64_t i = 0; i < x_.m(); ++i)
      for (std::int64_t j = 0; j < x_.n(); ++j)
        for (const auto& [part, ks] : parts(i, j)) {
          if (is_cut({ks})) keys.insert(plan_.stream_k.none() ? "split" : "stream_k");
          for (const Ks& slice : slices_of(plan_, ks)) {
            if (is_cut({slice})) keys.insert("lanes");
            if (plan_.residue_first != 0 && is_cut(residues(slice))) keys.insert("residue_first");
            if (plan_.promotion.interval != 0 && is_cut(intervals_of(plan_, slice)))
              keys.insert("promote");
          }
        }
    return keys;
  }

  std::uint64_t output(std::int64_t i, std::int64_t j) const {
    std::vector<oracle::Number> sums;
    for (const auto& [part, ks] : parts(i, j)) {
      std::vector<oracle::Number> of_slices;
      for (const Ks& slice : slices_of(plan_, ks)) of_slices.push_back(accumulator(i, j, slice));
      sums.push_back(added(of_slices));
    }
    return oracle::encode(oracle_format(plan_.epilogue.output), added(sums), oracle::nearest_even,
                          formats::is_integer(row_.d) ? oracle::saturate : oracle::ieee);
  }

 private:
  std::map<std::int64_t, Ks> parts(std::int64_t i, std::int64_t j) const {
    std::map<std::int64_t, Ks> result;
    for (std::int64_t k = 0; k < x_.k(); ++k) result[part_of(plan_, x_, {0, i, j}, k)].push_back(k);
    return result;
  }
  /// Neighbours, the incomplete tile of each run of them first.
  std::vector<Ks> residues(const Ks& ks) const {
    std::vector<Ks> runs;
    for (const std::int64_t k : ks) {
      if (runs.empty() || k != runs.back().back() + 1) runs.emplace_back();
      runs.back().push_back(k);
    }
    if (plan_.residue_first == 0) return runs;
    std::vector<Ks> result;
    for (const Ks& run : runs) {
      const std::ptrdiff_t residue = std::ssize(run) % plan_.residue_first;
      if (residue != 0) result.emplace_back(run.begin(), run.begin() + residue);
      if (residue != std::ssize(run)) result.emplace_back(run.begin() + residue, run.end());
    }
    return result;
  }

  bool is_cut(const std::vector<Ks>& lists) const {
    for (const Ks& list : lists)
      for (const std::int64_t k : list) {
        const std::int64_t first = k - k % row_.sparsity.group_elements;
        for (std::int64_t other = first; other < first + row_.sparsity.group_elements; ++other)
          if (std::find(list.begin(), list.end(), other) == list.end()) return true;
      }
    return false;
  }

  oracle::Number accumulator(std::int64_t i, std::int64_t j, const Ks& ks) const {
    if (plan_.promotion.interval == 0) return oracle::decode(sum_, chain(i, j, ks));
    oracle::Number sum = oracle::zero();
    for (const Ks& interval : intervals_of(plan_, ks))
      sum = in_fp32(oracle::exact_sum(sum, in_fp32(oracle::decode(sum_, chain(i, j, interval)))));
    return sum;
  }
  static oracle::Number in_fp32(const oracle::Number& x) {
    return oracle::decode(oracle::fp32, oracle::encode(oracle::fp32, x, oracle::nearest_even));
  }

  /// Executions one after the other, each of the nonzeros of its groups and of zeros.
  std::uint64_t chain(std::int64_t i, std::int64_t j, const Ks& ks) const {
    std::uint64_t sum = 0;
    for (const Ks& run : residues(ks)) {
      for (std::size_t begin = 0; begin < run.size();
           begin += static_cast<std::size_t>(row_.shape.k)) {
        const std::size_t end =
            std::min(run.size(), begin + static_cast<std::size_t>(row_.shape.k));
        DotInputs inputs;
        const emulator::Sparsity& s = row_.sparsity;
        for (std::size_t group = begin; group < end;
             group += static_cast<std::size_t>(s.group_elements)) {
          Ks kept;
          for (int e = 0; e < s.group_elements; ++e)
            if (x_.a(0, i, run[group] + e) != 0) kept.push_back(run[group] + e);
          for (int e = 0; std::ssize(kept) < s.stored_per_group; ++e)
            if (x_.a(0, i, run[group] + e) == 0) kept.push_back(run[group] + e);
          std::sort(kept.begin(), kept.end());
          for (const std::int64_t k : kept) {
            inputs.a.push_back(x_.a(0, i, k));
            inputs.b.push_back(x_.b(0, k, j));
          }
        }
        const auto stored = static_cast<std::size_t>(emulator::stored_k(row_, row_.shape.k));
        inputs.a.resize(stored), inputs.b.resize(stored);
        inputs.c = sum;
        sum = judge_.answer(inputs);
      }
    }
    return sum;
  }

  oracle::Number added(const std::vector<oracle::Number>& sums) const {
    const oracle::FormatParameters f = formats::is_integer(row_.d) ? oracle::int32 : oracle::fp32;
    oracle::Number total = sums.front();
    for (std::size_t s = 1; s < sums.size(); ++s)
      total = oracle::decode(f, oracle::add(f, total, sums[s], oracle::nearest_even));
    return total;
  }

  const GemmPlan& plan_;
  const GemmProblem& x_;
  const emulator::MatrixInstruction& row_;
  Judge judge_;
  oracle::FormatParameters sum_;
};

emulator::Partition drawn_partition(Random& random) {
  emulator::Partition p;
  p.parts = random.between(2, 5);
  p.tile = random.between(1, 20);
  p.division = static_cast<emulator::Division>(random.below(4));
  return p;
}

/// Cuts by some of the keys.
void draw_cuts(GemmPlan& plan, Random& random) {
  const int keys = random.between(1, 15);
  if ((keys & 1) != 0) plan.split = drawn_partition(random);
  if ((keys & 2) != 0) plan.slices = drawn_partition(random);
  if ((keys & 4) != 0) {
    if (random.one_in(2))
      plan.promotion.interval = random.between(1, 40);
    else
      plan.residue_first = random.between(1, 40);
  }
  if ((keys & 8) != 0) {
    plan.split = {};
    plan.stream_k.blocks = random.between(1, 9);
    plan.stream_k.tile_m = random.between(1, 3);
    plan.stream_k.tile_n = random.between(1, 3);
    plan.stream_k.tile_k = random.between(1, 20);
    plan.stream_k.tiles = static_cast<emulator::StreamK::Tiles>(random.below(3));
    if (random.one_in(2)) plan.stream_k.division = emulator::Division::balanced;
  }
}

/// Tiles of so many elements, each a multiple of what it was.
void widen(GemmPlan& plan, std::int64_t elements) {
  for (std::int64_t* const length : {&plan.split.tile, &plan.slices.tile, &plan.residue_first,
                                     &plan.promotion.interval, &plan.stream_k.tile_k})
    *length *= elements;
}

const std::vector<std::pair<std::string, std::string>> sparse_units = {
    {"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.f16.f16"},
    {"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.bf16.bf16"},
    {"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk16.f32.tf32.tf32"},
    {"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk64.f32.e4m3.e4m3"},
    {"sm_90", "wgmma.mma_async.sp.sync.aligned.m64nNk64.s32.s8.s8"},
    {"sm_80", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    {"sm_80", "mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16"},
    {"sm_80", "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
    {"sm_90", "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"}};

TEST_CASE("plans of sparse instructions cut K between groups, or are refused") {
  Random random(91);
  std::map<std::string, int> refused;
  int computed = 0;
  for (const auto& [arch, name] : sparse_units) {
    const emulator::MatrixInstruction row = emulator::require_instruction(arch, name, "test");
    const int group = row.sparsity.group_elements;
    for (int round = 0; round < 60; ++round) {
      GemmPlan plan;
      plan.unit = {arch, name};
      draw_cuts(plan, random);
      if (random.one_in(2)) widen(plan, group);
      if (formats::is_integer(row.d)) plan.epilogue.compute = plan.epilogue.output = formats::int32;
      GemmProblem x;
      const std::int64_t k = std::int64_t{group} * random.between(1, 200 / group);
      x.a = sparse_matrix(row, random.between(1, 4), k, random);
      x.b = random_matrix(row.b, 1, k, random.between(1, 4), random);
      x.sparse_a = true;
      INFO(to_text(plan) << ", K = " << k);
      const SparseJudge judge(plan, x, row);
      if (const std::set<std::string> keys = judge.cutting_keys(); !keys.empty()) {
        std::string said;
        try {
          execute(plan, x, 1);
        } catch (const formats::Error& error) {
          said = error.what();
        }
        const std::string multiples = std::to_string(group);
        const std::string key = said.substr(0, said.find('=')).substr(said.find(' ') + 1);
        CHECK(said.starts_with("plan: " + key + "="));
        CHECK(keys.contains(key));
        ++refused[key];
        CHECK(said.ends_with(", where a sparse A is stored in groups of " + multiples +
                             " (valid: cuts at multiples of " + multiples + ")"));
        continue;
      }
      ++computed;
      const CodeMatrix d = execute(plan, x, 2);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < d.rows; ++i)
        for (std::int64_t j = 0; j < d.columns; ++j)
          wrong += d(0, i, j) != judge.output(i, j) ? 1 : 0;
      REQUIRE(wrong == 0);
    }
  }
  CHECK(computed > 150);
  for (const char* const key : {"split", "lanes", "promote", "residue_first", "stream_k"}) {
    INFO(key);
    CHECK(refused[key] >= 8);
  }
}

std::string refusal_of(const std::string& plan, const GemmProblem& x) {
  try {
    execute(emulator::parse_plan(plan, "test"), x, 1);
  } catch (const formats::Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("loads, runs and pieces do not take groups apart") {
  Random random(92);
  const auto& [arch, name] = sparse_units[2];
  const std::string unit = arch + "/" + name;
  const emulator::MatrixInstruction row = emulator::require_instruction(arch, name, "test");
  GemmProblem x;
  x.a = sparse_matrix(row, 3, 48, random);
  x.b = random_matrix(row.b, 1, 48, 2, random);
  x.sparse_a = true;
  CHECK(refusal_of(unit + " loads=2x4:1", x) ==
        "plan: loads take 1 neighbours, where a sparse A is stored in groups of 2 (valid: a TAKE "
        "that is a multiple of 2)");
  CHECK(refusal_of(unit + " loads=2x4:2", x).empty());
  CHECK(refusal_of(unit + " input=rne:2x2:run5", x) ==
        "plan: input has runs of 5, where a sparse A is stored in groups of 2 (valid: runs of a "
        "multiple of 2)");
  CHECK(refusal_of(unit + " input=rne:2x2:run6", x).empty());
  x.a.set(0, 0x3f800000 >> 13), x.a.set(1, 0x3f800000 >> 13);
  CHECK(refusal_of(unit, x) == "plan: A has more than 1 of 2 neighbours that are not zero, which " +
                                   name + " cannot store");

  // A run of pieces is taken by whole instructions for each pair of pieces.
  const std::string dense = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";
  GemmProblem p;
  p.a = random_matrix(fp32, 1, 3, 40, random);
  p.b = random_matrix(fp32, 1, 40, 2, random);
  for (const char* const key : {"split=2x20", "lanes=5x4:round_robin", "promote=12",
                                "residue_first=12", "stream_k=3x4x4x5"}) {
    const std::string text(key);
    const std::string said = refusal_of(dense + " input=rne:2x3 " + text, p);
    INFO(said);
    CHECK(said.starts_with("plan: " + text.substr(0, text.find_first_of(":"))));
    CHECK(said.ends_with(
        ", where the products of pieces take turns in runs of 8 (valid: cuts at multiples of 8)"));
    CHECK(refusal_of(dense + " " + text, p).empty());
  }
  CHECK(refusal_of(dense + " input=rne:2x3 split=2x8 promote=8", p).empty());
  CHECK(refusal_of(dense + " input=rne:2x3:run16 promote=8", p).ends_with("multiples of 16)"));
}

TEST_CASE("a key that nothing reads beside another one is refused") {
  Random random(93);
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 3, 40, random);
  x.b = random_matrix(fp32, 1, 40, 2, random);
  const std::string int8 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8";
  CHECK(refusal_of(int8 + " input=rz:4x4:slices promote=32 compute=fp64 d=fp64", x) ==
        "plan: promote=32 is not read beside input=rz:4x4:slices, whose products are exact (valid: "
        "no promote)");
  CHECK(refusal_of("simt/fma.fp32 residue_first=16 promote=8", x) ==
        "plan: residue_first=16 is not read beside promote=8 (valid: one of them)");
  CHECK(refusal_of("simt/fma.fp32 input=rne:2x3", x) ==
        "plan: pieces are multiplied by an instruction of the catalogue, not by simt/fma.fp32");
  CHECK(refusal_of("simt/fma.fp32 promote=0:scaled_fma", x) ==
        "test: promote=0:scaled_fma is not valid (valid: an INTERVAL of at least 1)");
}

}  // namespace
}  // namespace guardbit::tests
