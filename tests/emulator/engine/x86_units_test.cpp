#include <algorithm>
#include <array>
#include <cfenv>
#include <iostream>
#include <sstream>
#include <thread>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/cpu.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/emulator/inputs/x86_inputs.hpp"
#include "tests/instruction_sets_here.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

// The model against this CPU's own matrix units, every bit of every NaN included (NUMERICS 5).
namespace {

using namespace guardbit;
using namespace guardbit::tests;
using emulator::Engine;
using emulator::MatrixBatch;
using emulator::Operation;
using emulator::Source;
using emulator::Step;

MatrixInstruction instruction_of(std::string_view name) {
  return emulator::require_instruction("x86", name, "test");
}

const Engine& engine_named(std::string_view name) {
  return *std::find_if(emulator::engines().begin(), emulator::engines().end(),
                       [&](const Engine& engine) { return engine.name == name; });
}

const Engine& silicon() { return engine_named("cpu"); }
const Engine& model() { return engine_named("reference"); }

/// The instructions of those whose unit this CPU has. Says so when there is none: what says
/// "SKIPPED" is reported as skipped whatever else it does, so a case that runs must not.
std::vector<MatrixInstruction> available(const std::vector<std::string_view>& names) {
  std::vector<MatrixInstruction> instructions;
  for (const std::string_view name : names) {
    const MatrixInstruction instruction = instruction_of(name);
    if (silicon().accepts(instruction)) instructions.push_back(instruction);
  }
  if (instructions.empty()) {
    std::cout << "SKIPPED: " << names.front() << " is not a unit of this CPU ("
              << emulator::cpu::description() << ")\n";
  }
  return instructions;
}

using Results = std::vector<std::byte>;

/// D as `run` leaves it.
template <class Run>
Results results_of(const MatrixInstruction& instruction, const BatchInputs& inputs, Run run) {
  const auto width = static_cast<std::size_t>(formats::container_bits(instruction.d)) / 8;
  const std::int64_t outputs = inputs.count * inputs.shape.m * inputs.shape.n;
  Results results(static_cast<std::size_t>(outputs) * width);
  run(inputs.batch(instruction, results.data()));
  return results;
}

Results on_threads(const Engine& engine, const MatrixInstruction& instruction,
                   const BatchInputs& inputs, int threads = 0) {
  return results_of(instruction, inputs, [&](const MatrixBatch& batch) {
    emulator::run_batch(engine, instruction, batch, threads);
  });
}

/// On this very thread, in the environment that it has.
Results on_this_thread(const Engine& engine, const MatrixInstruction& instruction,
                       const BatchInputs& inputs) {
  return results_of(instruction, inputs, [&](const MatrixBatch& batch) {
    engine.run(instruction, batch, 0, batch.count);
  });
}

/// Outputs that differ, and the first of them in words.
struct Difference {
  std::int64_t count = 0;
  std::string first;
};

Difference difference(const MatrixInstruction& instruction, const BatchInputs& inputs,
                      const Results& computed, const Results& recorded) {
  Difference result;
  if (computed == recorded) return result;
  const emulator::ConstCodes x = emulator::codes_of(instruction.d, computed.data());
  const emulator::ConstCodes y = emulator::codes_of(instruction.d, recorded.data());
  const Shape& s = inputs.shape;
  const MatrixBatch batch = inputs.batch(instruction, nullptr);
  for (std::int64_t i = 0; i < inputs.count * s.m * s.n; ++i) {
    if (x[i] == y[i]) continue;
    if (++result.count > 1) continue;
    const std::int64_t t = i / (s.m * s.n), m = i / s.n % s.m, n = i % s.n;
    std::ostringstream text;
    text << std::hex << "model " << x[i] << ", silicon " << y[i] << ", c " << batch.c[i];
    for (int k = 0; k < s.k; ++k) {
      const std::uint64_t a = batch.a[(t * s.m + m) * s.k + k];
      const std::uint64_t b = batch.b[(t * s.k + k) * s.n + n];
      if (a != 0 || b != 0) text << "\nk " << std::dec << k << std::hex << ": " << a << " * " << b;
    }
    result.first = text.str();
  }
  return result;
}

/// Compares at least `outputs` outputs, all families together.
void compare(const MatrixInstruction& instruction, std::int64_t outputs, std::uint64_t seed) {
  const std::vector<InputFamily> families = unit_families(instruction);
  const Shape shape = {16, 16, instruction.shape.k};
  constexpr std::int64_t per_execution = 256;
  const std::int64_t executions =
      outputs / per_execution / static_cast<std::int64_t>(families.size()) + 1;
  constexpr std::int64_t at_once = 1024;
  std::int64_t compared = 0;
  for (const InputFamily family : families) {
    for (std::int64_t done = 0; done < executions; done += at_once, ++seed) {
      const std::int64_t count = std::min(at_once, executions - done);
      const BatchInputs inputs = unit_inputs(instruction, family, seed, shape, count);
      const Difference found =
          difference(instruction, inputs, on_threads(model(), instruction, inputs),
                     on_threads(silicon(), instruction, inputs));
      INFO(text_of(instruction) << ", " << name_of(family) << ", seed " << seed << "\n"
                                << found.first);
      CHECK(found.count == 0);
      compared += count * per_execution;
    }
  }
  CHECK(compared >= outputs);
}

void compare(std::string_view name, std::int64_t outputs) {
  for (const MatrixInstruction& instruction : available({name})) compare(instruction, outputs, 1);
}

constexpr std::int64_t quick_lanes = 400'000, quick_tiles = 60'000, quick_integer_tiles = 200'000;
constexpr std::int64_t sweep_outputs = 10'000'000;

}  // namespace

TEST_CASE("VFMADD231PD computes as its instruction says", "[cpu]") {
  compare("VFMADD231PD", quick_lanes);
}
TEST_CASE("VFMADD231PS computes as its instruction says", "[cpu]") {
  compare("VFMADD231PS", quick_lanes);
}
TEST_CASE("VFMADD231PH computes as its instruction says", "[cpu]") {
  compare("VFMADD231PH", quick_lanes);
}
TEST_CASE("VDPBF16PS computes as its instruction says", "[cpu]") {
  compare("VDPBF16PS", quick_lanes);
}
TEST_CASE("VPDPBUSD computes as its instruction says", "[cpu]") {
  compare("VPDPBUSD", quick_lanes);
}
TEST_CASE("VPDPBUSDS computes as its instruction says", "[cpu]") {
  compare("VPDPBUSDS", quick_lanes);
}
TEST_CASE("VPDPWSSD computes as its instruction says", "[cpu]") {
  compare("VPDPWSSD", quick_lanes);
}
TEST_CASE("VPDPWSSDS computes as its instruction says", "[cpu]") {
  compare("VPDPWSSDS", quick_lanes);
}
TEST_CASE("TDPBF16PS computes as its instruction says", "[cpu]") {
  compare("TDPBF16PS", quick_tiles);
}
TEST_CASE("TDPFP16PS computes as its instruction says", "[cpu]") {
  compare("TDPFP16PS", quick_tiles);
}
TEST_CASE("TDPBSSD computes as its instruction says", "[cpu]") {
  compare("TDPBSSD", quick_integer_tiles);
}
TEST_CASE("TDPBSUD computes as its instruction says", "[cpu]") {
  compare("TDPBSUD", quick_integer_tiles);
}
TEST_CASE("TDPBUSD computes as its instruction says", "[cpu]") {
  compare("TDPBUSD", quick_integer_tiles);
}
TEST_CASE("TDPBUUD computes as its instruction says", "[cpu]") {
  compare("TDPBUUD", quick_integer_tiles);
}

TEST_CASE("every x86 instruction computes as it says, many outputs", "[cpu][sweep]") {
  std::vector<std::string_view> names;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch == "x86") names.push_back(instruction.name);
  }
  for (const MatrixInstruction& instruction : available(names))
    compare(instruction, sweep_outputs, 1000);
}

// ---- What the instructions leave out ----

TEST_CASE("the BF16 units neither read MXCSR nor write it", "[cpu]") {
#ifdef __SSE2__
  for (const MatrixInstruction& instruction : available({"VDPBF16PS", "TDPBF16PS", "TDPFP16PS"})) {
    for (const InputFamily family : unit_families(instruction)) {
      const BatchInputs inputs =
          unit_inputs(instruction, family, 7, {16, 16, instruction.shape.k}, 4);
      const Results expected = on_this_thread(model(), instruction, inputs);
      const unsigned saved = _mm_getcsr();
      for (const unsigned rounding : {0U, 0x2000U, 0x4000U, 0x6000U}) {
        for (const unsigned flushing : {0U, 0x40U, 0x8000U, 0x8040U}) {
          const unsigned all_masked = 0x1F80U | rounding | flushing;
          _mm_setcsr(all_masked);
          const Results got = on_this_thread(silicon(), instruction, inputs);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(saved);
          INFO(text_of(instruction) << ", MXCSR " << std::hex << all_masked);
          CHECK(after == all_masked);
          CHECK(difference(instruction, inputs, expected, got).first == "");
        }
      }
    }
  }
#endif
}

TEST_CASE("a unit answers alike on any number of threads and on new ones", "[cpu]") {
  for (const MatrixInstruction& instruction :
       available({"VFMADD231PS", "VDPBF16PS", "TDPBF16PS", "TDPBUSD"})) {
    const BatchInputs inputs =
        unit_inputs(instruction, InputFamily::raw_bits, 5, {17, 33, instruction.shape.k}, 70);
    const Results one = on_this_thread(silicon(), instruction, inputs);
    CHECK(on_threads(silicon(), instruction, inputs, 5) == one);
    Results other;
    std::thread([&] { other = on_this_thread(silicon(), instruction, inputs); }).join();
    CHECK(other == one);
  }
}

namespace {

/// The instruction with other steps: what the unit might have been.
MatrixInstruction with_steps(MatrixInstruction instruction, const emulator::Steps& steps) {
  instruction.steps = steps;
  return instruction;
}

Step step_like(const MatrixInstruction& instruction, int index, emulator::Selection selection,
               Source addend) {
  Step step = instruction.steps.list.at(static_cast<std::size_t>(index));
  step.selection = selection;
  step.addend = addend;
  return step;
}

Step sum_like(const MatrixInstruction& instruction, Source addend, Source other) {
  Step step = instruction.steps.list[3];
  step.addend = addend;
  step.other = other;
  return step;
}

/// Outputs of finite numbers on which a candidate and the silicon differ.
std::int64_t refutations(const MatrixInstruction& candidate) {
  std::int64_t count = 0;
  for (const InputFamily family : {InputFamily::narrow_exponents, InputFamily::sparse_zeros,
                                   InputFamily::sum_cancellation, InputFamily::dominant_term}) {
    const BatchInputs inputs = batch_inputs(candidate, family, 3, {16, 16, candidate.shape.k}, 8);
    count += difference(candidate, inputs, on_threads(model(), candidate, inputs),
                        on_threads(silicon(), candidate, inputs))
                 .count;
  }
  return count;
}

}  // namespace

// Intel's intrinsics guide writes one chain that starts at C, the SDM two chains apart from C.
TEST_CASE("the order of TDPBF16PS is the manual's, and every other one is refuted", "[cpu]") {
  const auto instructions = available({"TDPBF16PS"});
  if (instructions.empty()) return;
  const MatrixInstruction& instruction = instructions.front();
  const emulator::Selection all = {1, 1}, even = {2, 1}, odd = {2, 2};
  const auto chain = [&](emulator::Selection selection, Source addend) {
    return step_like(instruction, 0, selection, addend);
  };
  const auto sum = [&](Source x, Source y) { return sum_like(instruction, x, y); };
  const Source zero = Source::positive_zero;
  CHECK(refutations(instruction) == 0);
  CHECK(refutations(with_steps(instruction, {chain(all, Source::c)})) > 100);
  CHECK(refutations(with_steps(instruction, {chain(all, zero), sum(Source::c, Source::step_0)})) >
        100);
  CHECK(refutations(with_steps(instruction, {chain(even, Source::c), chain(odd, Source::step_0)})) >
        100);
  CHECK(refutations(with_steps(instruction, {chain(odd, Source::c), chain(even, Source::step_0)})) >
        100);
  CHECK(refutations(with_steps(instruction, {chain(even, Source::c), chain(odd, zero),
                                             sum(Source::step_0, Source::step_1)})) > 100);
  CHECK(refutations(with_steps(instruction, {chain(even, zero), chain(odd, Source::c),
                                             sum(Source::step_0, Source::step_1)})) > 100);
  CHECK(refutations(with_steps(instruction,
                               {chain(even, zero), chain(odd, zero), sum(Source::c, Source::step_0),
                                sum(Source::step_2, Source::step_1)})) > 100);
  CHECK(refutations(with_steps(instruction,
                               {chain(even, zero), chain(odd, zero), sum(Source::c, Source::step_1),
                                sum(Source::step_2, Source::step_0)})) > 100);
}

TEST_CASE("VDPBF16PS takes the odd product first, rounding after each", "[cpu]") {
  const auto instructions = available({"VDPBF16PS"});
  if (instructions.empty()) return;
  const MatrixInstruction& instruction = instructions.front();
  const emulator::Selection all = {1, 1}, even = {2, 1}, odd = {2, 2};
  CHECK(refutations(instruction) == 0);
  const Step even_first = step_like(instruction, 0, even, Source::c);
  CHECK(refutations(with_steps(
            instruction, {even_first, step_like(instruction, 1, odd, Source::step_0)})) > 100);
  Step exact = step_like(instruction, 0, all, Source::c);
  exact.spec.summation = emulator::Summation::exact;
  CHECK(refutations(with_steps(instruction, {exact})) > 100);
  Step addition = instruction.steps.list[1];
  addition.operation = Operation::add;
  addition.addend = Source::c;
  addition.other = Source::step_0;
  CHECK(refutations(with_steps(
            instruction, {step_like(instruction, 0, all, Source::positive_zero), addition})) > 100);
}

// ---- Without the hardware ----

TEST_CASE("silicon is an engine by name only") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    CHECK(emulator::require_engine("auto", instruction).device == nullptr);
    if (instruction.arch != "x86") CHECK_FALSE(silicon().accepts(instruction));
  }
  CHECK(silicon().device() == emulator::cpu::description());
  const MatrixInstruction warp = emulator::require_instruction(
      "sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "test");
  CHECK_THROWS_AS(emulator::require_engine("cpu", warp), formats::Error);
}

#if defined(__x86_64__)
TEST_CASE("features are what CPUID says, less what GUARDBIT_CPU masks") {
  using formats::InstructionSets;
  const emulator::cpu::Features& has = emulator::cpu::features();
  const InstructionSets allowed = formats::allowed_instruction_sets();
  const bool avx2 = cpu_has(InstructionSets::avx2) && allowed >= InstructionSets::avx2;
  const bool avx512 = cpu_has(InstructionSets::avx512) && allowed >= InstructionSets::avx512;
  CHECK(has.fma == avx2);  // no CPU has one of the two alone
  CHECK(has.avx2_kernels == avx2);
  CHECK(has.avx512_kernels == avx512);
  CHECK(has.avx512_vnni == (avx512 && __builtin_cpu_supports("avx512vnni")));
  CHECK(has.avx512_bf16 == (avx512 && __builtin_cpu_supports("avx512bf16")));
  if (!avx2) CHECK_FALSE(has.avx_vnni);
  if (!avx512) CHECK_FALSE(has.avx512_fp16);
  if (allowed != InstructionSets::all) CHECK_FALSE((has.amx_bf16 || has.amx_fp16 || has.amx_int8));
}
#endif

TEST_CASE("the CPU's features decide which instructions its engine takes") {
  const emulator::cpu::Features& has = emulator::cpu::features();
  const auto accepts = [](std::string_view name) {
    return silicon().accepts(instruction_of(name));
  };
  CHECK(accepts("VFMADD231PS") == has.fma);
  CHECK(accepts("VFMADD231PH") == has.avx512_fp16);
  CHECK(accepts("VDPBF16PS") == has.avx512_bf16);
  CHECK(accepts("VPDPWSSDS") == has.avx512_vnni);
  CHECK(accepts("TDPBF16PS") == has.amx_bf16);
  CHECK(accepts("TDPFP16PS") == has.amx_fp16);
  CHECK(accepts("TDPBUUD") == has.amx_int8);
}

TEST_CASE("a mnemonic may be written in lower case") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != "x86") continue;
    std::string name(std::string_view(instruction.name));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    CHECK(std::string_view(instruction_of(name).name) == std::string_view(instruction.name));
  }
}
