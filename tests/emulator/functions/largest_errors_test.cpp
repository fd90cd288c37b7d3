#include "emulator/functions/largest_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_errors.hpp"
#include "formats/codec.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"

/// The listed errors are the model's at the places that are listed, and no larger ones are met.
namespace guardbit::tests {
namespace {

using emulator::CompileMode;
using emulator::ErrorInputs;
using emulator::Function;
using emulator::LargestError;
using emulator::OperandCodes;

template <class Check>
void for_each_function(const Check& check) {
  for (const CompileMode mode : formats::enumerators_of<CompileMode>) {
    for (const Function& function : emulator::function_catalogue(mode)) {
      INFO(function.name << ", " << formats::word_of(mode));
      check(function);
    }
  }
}

/// The largest error that is no larger but by what the host's mathematical libraries differ in.
double most(double listed) { return listed * (1 + 1e-5) + 1e-5; }

TEST_CASE("every function has its largest error, but where doubles are no judge") {
  std::size_t listed = 0;
  for_each_function([&](const Function& function) {
    const LargestError* const error = emulator::find_largest_error(function);
    CHECK((error != nullptr) == (function.name != "rsqrt.approx.f64"));
    if (error == nullptr) return;
    ++listed;
    CHECK((error->asked == ErrorInputs::drawn) ==
          (function.operands > 1 && error->asked != ErrorInputs::definition));
    CHECK((error->asked == ErrorInputs::definition) ==
          (error->has_place() == false && error->ulp > 0));
  });
  CHECK(listed == emulator::largest_errors().size());
}

TEST_CASE("results have the listed errors at the listed places") {
  for_each_function([&](const Function& function) {
    const LargestError* const error = emulator::find_largest_error(function);
    if (error == nullptr || !error->has_place()) return;
    const auto found =
        emulator::counted_error(function, error->at, function.reference(error->at)[0]);
    REQUIRE(found.has_value());
    CHECK(std::abs(std::abs(*found) - error->ulp) <= error->ulp * 1e-5);
  });
}

TEST_CASE("no input has a larger error than the listed one, in part") {
  for_each_function([&](const Function& function) {
    const LargestError* const error = emulator::find_largest_error(function);
    if (error == nullptr || error->asked == ErrorInputs::definition) return;
    const int bits = formats::bits(function.formats.operands[0]);
    if (bits > 32) return;
    if (function.operands == 1) {
      const std::uint64_t stride = bits == 16 ? 1 : emulator::error_stride * 1021;
      const emulator::FunctionErrors errors = emulator::function_errors(function, stride);
      INFO("of " << std::hex << errors.largest_at);
      CHECK(errors.largest <= most(error->ulp));
      return;
    }
    constexpr std::uint64_t count = 2048, stride = emulator::drawn_error_inputs / count - 1;
    double largest = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const OperandCodes codes = emulator::drawn_inputs(function, i * stride);
      const auto found = emulator::counted_error(function, codes, function.reference(codes)[0]);
      if (found) largest = std::max(largest, std::abs(*found));
    }
    CHECK(largest <= most(error->ulp));
  });
}

TEST_CASE("flushed results count as unlike the exact ones, of either sign") {
  Function zero = emulator::require_function("sm_90", "tanh.approx.f16", "test");
  zero.in_doubles = [](const auto& x) { return std::array{x[0], 0.0}; };
  zero.run = [](const emulator::CodeArrays<std::uint32_t>& arrays) {
    std::ranges::fill(arrays.results[0], 0U);
  };
  const emulator::FunctionErrors errors = emulator::function_errors(zero);
  CHECK(errors.results == 2 * 30 * 1024);
  // Of the subnormal numbers the least is a neighbour of zero.
  CHECK(errors.unlike == 2 * 1022);
}

TEST_CASE("an error from an exact NaN is none") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(emulator::error_in_ulp(formats::fp32, 0x3f800000, nan)));
  CHECK(emulator::error_in_ulp(formats::fp32, 0x7fffffff, nan) == 0);
}

TEST_CASE("the listed errors of all inputs are the largest ones", "[sweep]") {
  for_each_function([&](const Function& function) {
    const LargestError* const error = emulator::find_largest_error(function);
    const bool is_of_all = error != nullptr && error->asked == ErrorInputs::all;
    if (!is_of_all || formats::bits(function.formats.operands[0]) > 32) return;
    const double largest = emulator::function_errors(function).largest;
    CHECK(std::abs(largest - error->ulp) <= largest * 1e-5);
  });
}

}  // namespace
}  // namespace guardbit::tests
