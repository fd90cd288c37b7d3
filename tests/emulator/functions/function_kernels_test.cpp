#include "emulator/functions/kernels/function_kernels.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/array_function.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "tests/catch.hpp"
#include "tests/instruction_sets_here.hpp"

// Kernels of functions have the reference's bits. That these are the hardware's, and that nothing
// is left out, function_catalogue_test.cpp holds, by digests of what runs here.
namespace guardbit::tests {
namespace {

using emulator::Function;
using emulator::FunctionEngine;

const FunctionEngine* engine_here(std::string_view name) {
  for (const FunctionEngine& engine : emulator::function_engines())
    if (engine.name == name) return &engine;
  return nullptr;
}

/// What programs and the unit treat apart: ends of exponents with both signs, ends of segments, the
/// bounds at which programs branch, which are near 1, and any codes.
std::vector<std::uint32_t> arguments() {
  std::vector<std::uint32_t> codes;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (const std::uint32_t fraction : {0U, 1U, 0x20000U, 0x3fffffU, 0x7fffffU})
      for (const std::uint32_t sign : {0U, 0x80000000U})
        codes.push_back(sign | exponent << 23 | fraction);
  emulator::inputs::Random random(11);
  for (int i = 0; i < 3000; ++i) {
    codes.push_back(static_cast<std::uint32_t>(random.bits()));
    codes.push_back(emulator::argument_of_exponents(random.bits(), -8, 4));
  }
  return codes;
}

/// Others run one by one, with fused steps that are calls (function_program.hpp).
TEMPLATE_TEST_CASE("functions of one FP32 number or two have kernels", "[cpu]", Avx512, Avx2) {
  if (!can_test(TestType::sets)) return;
  const FunctionEngine* const engine = engine_here(TestType::name);
  REQUIRE(engine != nullptr);
  for (const auto& list : {emulator::ptx_functions(), emulator::cuda_functions()}) {
    for (const Function& function : list) {
      const bool is_of_fp32 = function.formats.operands[0] == formats::fp32 &&
                              function.formats.operands[1] == formats::fp32 &&
                              function.formats.results[0] == formats::fp32;
      INFO(function.name);
      if (is_of_fp32 && function.operands <= 2 && function.results == 1)
        CHECK(find_kernel(*engine, function.name) != nullptr);
    }
  }
}

/// Compares every function that such an engine computes; how many these are.
std::size_t compare_with_reference(const FunctionEngine& engine) {
  const std::vector<std::uint32_t> x = arguments();
  std::vector<std::uint32_t> pairs_x, pairs_y;
  for (std::uint64_t i = 0; i < x.size(); ++i) {
    const emulator::ArgumentPair pair = emulator::argument_pair(i);
    pairs_x.push_back(pair.x);
    pairs_y.push_back(pair.y);
  }
  std::size_t functions = 0;
  for (const Function& listed : emulator::function_catalogue()) {
    const bool can_have_kernel = listed.run_without_kernel != nullptr;
    const Function function = emulator::on_engine(listed, engine);
    if (function.engine != engine.name || (engine.kernels.empty() && !can_have_kernel)) continue;
    ++functions;
    const bool is_of_one = function.operands == 1;
    const std::vector<std::uint32_t>& first = is_of_one ? x : pairs_x;
    std::vector<std::uint32_t> results(x.size());
    if (is_of_one) {
      function.run({{first}, {results}});
    } else {
      function.run({{first, pairs_y}, {results}});
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(function.name << " of " << std::hex << first[i] << ", " << pairs_y[i]);
      REQUIRE(function.reference({first[i], is_of_one ? 0 : pairs_y[i]})[0] == results[i]);
    }
  }
  return functions;
}

TEMPLATE_TEST_CASE("kernels of functions give the reference's bits", "[cpu]", Avx512, Avx2) {
  if (!can_test(TestType::sets)) return;
  const FunctionEngine* const engine = engine_here(TestType::name);
  REQUIRE(engine != nullptr);
  REQUIRE(engine->kernels.size() >= 90);
  CHECK(compare_with_reference(*engine) == engine->kernels.size());
}

TEST_CASE("functions that have kernels give the reference's bits without them, too") {
  const FunctionEngine* const engine = engine_here("portable");
  REQUIRE(engine != nullptr);
  CHECK(compare_with_reference(*engine) == emulator::function_engines().front().kernels.size());
}

TEMPLATE_TEST_CASE("kernels of functions take arrays of any length, also in place", "[cpu]", Avx512,
                   Avx2) {
  if (!can_test(TestType::sets)) return;
  const FunctionEngine* const engine = engine_here(TestType::name);
  REQUIRE(engine != nullptr);
  const emulator::FunctionKernel* const kernel = emulator::find_kernel(*engine, "expf");
  REQUIRE(kernel != nullptr);
  const std::vector<std::uint32_t> x = arguments();
  std::vector<std::uint32_t> all(x.size());
  kernel->run(x.data(), nullptr, all.data(), x.size());
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<std::uint32_t> part(x.begin(), x.begin() + 71);
    kernel->run(part.data(), nullptr, part.data(), count);
    for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i] == (i < count ? all[i] : x[i]));
  }
}

TEST_CASE("functions of arrays of floats are those of the catalogue") {
  const Function& expf = emulator::require_function("sm_90", "expf", "test");
  const Function& hypotf = emulator::require_function("sm_90", "hypotf", "test");
  std::vector<float> x, y, results(2500);
  for (int i = 0; i < 2500; ++i) {
    x.push_back(static_cast<float>(i) * 0.01F - 12);
    y.push_back(static_cast<float>(i) * 0.25F + 1);
  }
  const auto code = [](float number) { return std::bit_cast<std::uint32_t>(number); };
  emulator::apply(expf, x, results);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(code(results[i]) == expf.reference({code(x[i])})[0]);
  emulator::apply(hypotf, x, y, results);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(code(results[i]) == hypotf.reference({code(x[i]), code(y[i])})[0]);
}

}  // namespace
}  // namespace guardbit::tests
