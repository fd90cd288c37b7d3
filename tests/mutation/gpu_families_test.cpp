#include <algorithm>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/parallel.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "tests/catch.hpp"
#include "tests/mutation/search.hpp"
#include "tests/mutation/unobservable.hpp"

// The families that `guardbit gpu validate` compares notice every change of the model by one step
// that can be noticed at all.
namespace {

using namespace guardbit::tests;
using guardbit::gpu::InputFamilyEntry;
using guardbit::gpu::InputShape;
using guardbit::gpu::TensorCoreInstruction;

/// Outputs of each family that a change has to be noticed by.
constexpr int outputs_per_family = 4096;
constexpr std::uint64_t seed = 1;

/// An arithmetic of the H200, with the instruction of the most products that has it.
struct Subject {
  const TensorCoreInstruction* instruction = nullptr;
  /// dense, K counts the stored products
  MatrixInstruction arithmetic;
};

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  for (const TensorCoreInstruction& instruction : guardbit::gpu::tensor_core_instructions()) {
    if (!instruction.variant.empty()) continue;
    Subject subject{&instruction, guardbit::emulator::require_instruction(
                                      instruction.arch, instruction.name, "gpu families")};
    subject.arithmetic.shape.k = instruction.stored_k();
    subject.arithmetic.sparsity = {};
    const auto same = [&](const Subject& x) {
      return same_arithmetic(x.arithmetic, subject.arithmetic);
    };
    const auto at = std::find_if(found.begin(), found.end(), same);
    if (at == found.end())
      found.push_back(subject);
    else if (at->arithmetic.shape.k < subject.arithmetic.shape.k)
      *at = subject;
  }
  return found;
}

/// Output (i, j) of execution t, and what the model makes of it.
TestVector vector_of(const Subject& subject, const InputShape& x, guardbit::gpu::InputFamily family,
                     std::int64_t t, int i, int j) {
  TestVector v;
  for (int s = 0; s < x.stored_k; ++s) {
    const int k = guardbit::gpu::dense_place(x, family, seed, t, i, s);
    v.x.a.push_back(guardbit::gpu::a_word(x, family, seed, t, i, s) >> x.a.ignored);
    v.x.b.push_back(guardbit::gpu::b_word(x, family, seed, t, k, j) >> x.b.ignored);
  }
  v.x.c = guardbit::gpu::c_word(x, family, seed, t, i, j);
  v.d = computed(subject.arithmetic, v).value();
  return v;
}

/// The same output with A's positions and all of B's column.
TestVector sparse_vector_of(const Subject& subject, const InputShape& x,
                            guardbit::gpu::InputFamily family, std::int64_t t, int i, int j) {
  TestVector v;
  for (int s = 0; s < x.stored_k; ++s) {
    v.x.a.push_back(guardbit::gpu::a_word(x, family, seed, t, i, s) >> x.a.ignored);
    v.e.push_back(static_cast<std::uint64_t>(guardbit::gpu::e_position(x, family, seed, t, i, s)));
  }
  for (int k = 0; k < x.k; ++k)
    v.x.b.push_back(guardbit::gpu::b_word(x, family, seed, t, k, j) >> x.b.ignored);
  v.x.c = guardbit::gpu::c_word(x, family, seed, t, i, j);
  v.d = computed(subject.arithmetic, v).value();
  return v;
}

/// Those of `mutants` that no family notices.
template <class MakeVector>
std::vector<Mutant> unnoticed(const Subject& subject, std::vector<Mutant> mutants,
                              MakeVector make_vector) {
  const InputShape x = guardbit::gpu::input_shape(*subject.instruction);
  for (const InputFamilyEntry& entry : guardbit::gpu::generated_families(x.kind)) {
    for (int output = 0; output < outputs_per_family && !mutants.empty(); ++output) {
      const int columns = std::min(x.n, 8);
      const int i = output / columns % x.m, j = output % columns;
      const TestVector v = make_vector(subject, x, entry.family, output / columns / x.m, i, j);
      std::erase_if(mutants, [&](const Mutant& m) { return notices(v, m, false); });
    }
  }
  return mutants;
}

void report(const Subject& subject, const std::vector<Mutant>& left) {
  for (const Mutant& mutant : left) {
    FAIL_CHECK(subject.instruction->name << ", " << mutant.field << ": " << mutant.from << " -> "
                                         << mutant.to << " is noticed by no family");
  }
}

/// Checks one in `every` subject; returns how many.
std::size_t check_subjects(std::size_t every) {
  std::vector<Subject> chosen;
  const std::vector<Subject> all = subjects();
  for (std::size_t at = 0; at < all.size(); at += every) chosen.push_back(all[at]);
  std::vector<std::vector<Mutant>> left(chosen.size());
  guardbit::formats::parallel_for(chosen.size(), 1, 0, [&](std::size_t at, std::size_t) {
    std::vector<Mutant> mutants = mutants_of(chosen[at].arithmetic);
    std::erase_if(mutants, [&](const Mutant& m) {
      return static_cast<bool>(unobservable(chosen[at].arithmetic, m));
    });
    left[at] = unnoticed(chosen[at], std::move(mutants), vector_of);
  });
  for (std::size_t at = 0; at < chosen.size(); ++at) report(chosen[at], left[at]);
  return chosen.size();
}

/// Sparse instructions of distinct kinds of sparsity.
std::vector<Subject> sparse_subjects() {
  std::vector<Subject> found;
  for (const TensorCoreInstruction& instruction : guardbit::gpu::tensor_core_instructions()) {
    if (!instruction.variant.empty() || !instruction.sparse) continue;
    const Subject subject{&instruction, guardbit::emulator::require_instruction(
                                            instruction.arch, instruction.name, "gpu families")};
    const auto same = [&](const Subject& x) {
      return x.arithmetic.sparsity == subject.arithmetic.sparsity;
    };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(subject);
  }
  return found;
}

}  // namespace

TEST_CASE("the input families of the GPU notice the observable changes of some instructions",
          "[long]") {
  constexpr std::size_t every = 18;
  CHECK(check_subjects(every) >= 3);
}

TEST_CASE("the input families of the GPU notice every observable change of the model", "[sweep]") {
  CHECK(check_subjects(1) > 40);
}

TEST_CASE("the input families of the GPU notice every change of a sparsity") {
  const std::vector<Subject> all = sparse_subjects();
  for (const Subject& subject : all)
    report(subject, unnoticed(subject, sparsity_mutants_of(subject.arithmetic), sparse_vector_of));
  CHECK(all.size() == 3);
}
