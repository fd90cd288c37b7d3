#include "gpu/validation/coverage.hpp"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/parallel.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using emulator::Coverage;
using emulator::EventEntry;
using emulator::EventSet;
using gpu::InputFamily;
using gpu::InputFamilyEntry;
using gpu::InputShape;
using gpu::TensorCoreInstruction;

constexpr std::uint64_t seed = 1;
/// Outputs of each family that an event has to happen in.
constexpr int outputs_per_family = 2048;

/// Output (i, j) of execution t by the model, with what happened on the way.
EventSet observe(const emulator::MatrixInstruction& model, const InputShape& x, InputFamily family,
                 std::int64_t t, int i, int j) {
  std::array<std::uint64_t, emulator::max_k> a{}, b{};
  for (int s = 0; s < x.stored_k; ++s) {
    const int k = gpu::dense_place(x, family, seed, t, i, s);
    const auto at = static_cast<std::size_t>(s);
    a[at] = gpu::a_word(x, family, seed, t, i, s) >> x.a.ignored;
    b[at] = gpu::b_word(x, family, seed, t, k, j) >> x.b.ignored;
  }
  const auto count = static_cast<std::size_t>(x.stored_k);
  const emulator::DotOperands operands{std::span<const std::uint64_t>(a).first(count),
                                       std::span<const std::uint64_t>(b).first(count),
                                       gpu::c_word(x, family, seed, t, i, j)};
  EventSet set;
  const std::uint64_t code = emulator::observed_dot(model, operands, set);
  if (code != emulator::dot(model, operands)) throw std::runtime_error("observed another result");
  return set;
}

/// What each family of an instruction covers.
std::map<std::string, Coverage> coverage_of(const TensorCoreInstruction& instruction) {
  const InputShape x = gpu::input_shape(instruction);
  const auto model = emulator::require_instruction("sm_90", instruction.name, "coverage");
  std::map<std::string, Coverage> found;
  for (const InputFamilyEntry& entry : gpu::generated_families(x.kind)) {
    Coverage& coverage = found[std::string(entry.name)];
    const int columns = std::min(x.n, 8);
    for (int output = 0; output < outputs_per_family; ++output) {
      coverage.add(observe(model, x, entry.family, output / columns / x.m, output / columns % x.m,
                           output % columns));
    }
  }
  return found;
}

/// The plain instructions of distinct types and arithmetic.
std::vector<const TensorCoreInstruction*> representatives() {
  std::vector<const TensorCoreInstruction*> instructions;
  std::vector<emulator::MatrixInstruction> models;
  for (const TensorCoreInstruction& instruction : gpu::tensor_core_instructions()) {
    if (!instruction.variant.empty()) continue;
    auto model = emulator::require_instruction("sm_90", instruction.name, "coverage");
    const auto alike = [&](const emulator::MatrixInstruction& other) {
      return model.a == other.a && model.b == other.b && model.c == other.c && model.d == other.d &&
             model.sparsity == other.sparsity &&
             std::equal(model.steps.begin(), model.steps.end(), other.steps.begin(),
                        other.steps.end());
    };
    if (std::any_of(models.begin(), models.end(), alike)) continue;
    models.push_back(model);
    instructions.push_back(&instruction);
  }
  return instructions;
}

/// Checks one in `every` representative; returns how many.
std::size_t check_events(std::size_t every) {
  std::vector<const TensorCoreInstruction*> instructions;
  const auto all_instructions = representatives();
  for (std::size_t at = 0; at < all_instructions.size(); at += every)
    instructions.push_back(all_instructions[at]);
  std::vector<std::map<std::string, Coverage>> found(instructions.size());
  formats::parallel_for(instructions.size(), 1, 0, [&](std::size_t at, std::size_t) {
    found[at] = coverage_of(*instructions[at]);
  });
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    const auto model = emulator::require_instruction("sm_90", instructions[at]->name, "coverage");
    const EventSet possible = emulator::possible_events(model);
    Coverage all;
    for (const auto& [family, coverage] : found[at]) all += coverage;
    for (const EventEntry& entry : emulator::events) {
      const bool happened = all.of(entry.event) != 0;
      if (happened == possible.contains(entry.event)) continue;
      FAIL_CHECK(instructions[at]->name
                 << ": " << entry.name
                 << (happened ? " happened, called impossible" : " never happened"));
    }
  }
  return instructions.size();
}

}  // namespace

TEST_CASE("the families of some instructions make everything happen that can", "[long]") {
  constexpr std::size_t every = 7;
  CHECK(check_events(every) >= 7);
}

TEST_CASE("the families of every instruction make everything happen that can", "[sweep]") {
  CHECK(check_events(1) > 50);
}

TEST_CASE("each family makes happen what it is for, in a good part of its outputs") {
  using emulator::Event;
  struct Purpose {
    InputFamily family;
    Event event;
    /// of the outputs at least
    int percent;
  };
  constexpr Purpose purposes[] = {
      {InputFamily::raw_bits, Event::nan_from_operand, 3},
      {InputFamily::finite_bits, Event::term_lost, 50},
      {InputFamily::narrow_exponents, Event::rounded, 50},
      {InputFamily::wide_exponents, Event::term_cut, 25},
      {InputFamily::staggered_terms, Event::term_lost, 50},
      {InputFamily::sum_cancellation, Event::sum_cancelled, 50},
      {InputFamily::pair_cancellation, Event::sum_cancelled, 25},
      {InputFamily::pair_cancellation, Event::zero_by_alignment, 3},
      {InputFamily::ladder, Event::term_lost, 25},
      {InputFamily::ladder, Event::zero_by_alignment, 1},
      {InputFamily::ties, Event::tie, 3},
      {InputFamily::carries, Event::sum_carried, 5},
      {InputFamily::dominant_term, Event::term_cut, 25},
      {InputFamily::subnormal_operands, Event::rounded, 25},
      {InputFamily::subnormal_results, Event::subnormal, 15},
      {InputFamily::tiny_terms, Event::zero_set_grid, 15},
      {InputFamily::tiny_terms, Event::zero_by_underflow, 5},
      {InputFamily::near_overflow, Event::infinity_from_overflow, 5},
      {InputFamily::huge_products, Event::sum_cancelled, 25},
      {InputFamily::sparse_zeros, Event::zero_of_zeros, 1},
      {InputFamily::exact_zeros, Event::zero_by_cancellation, 5},
      {InputFamily::addend_alone, Event::subnormal, 10},
      {InputFamily::one_special, Event::infinity_from_operand, 5},
      {InputFamily::one_special, Event::rounded, 10},
      {InputFamily::many_specials, Event::nan_from_operand, 25},
      {InputFamily::infinities, Event::nan_from_infinity_times_zero, 5},
      {InputFamily::infinities, Event::nan_from_opposite_infinities, 5},
      {InputFamily::nan_payloads, Event::nan_from_operand, 50},
  };
  const TensorCoreInstruction* const instruction =
      gpu::find_plain("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
  REQUIRE(instruction != nullptr);
  const std::map<std::string, Coverage> found = coverage_of(*instruction);
  for (const Purpose& purpose : purposes) {
    for (const InputFamilyEntry& entry : gpu::generated_families(gpu::InputKind::floating)) {
      if (entry.family != purpose.family) continue;
      const Coverage& coverage = found.at(std::string(entry.name));
      INFO(entry.name << ": " << emulator::events.at(static_cast<std::size_t>(purpose.event)).name
                      << " in " << coverage.of(purpose.event) << " of " << coverage.outputs);
      CHECK(100 * coverage.of(purpose.event) >=
            static_cast<std::uint64_t>(purpose.percent) * coverage.outputs);
    }
  }
}
