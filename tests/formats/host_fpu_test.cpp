#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/mismatches.hpp"
#include "tests/formats/patterns.hpp"

/// fp32 and fp64 beside the processor that runs the test, under its four rounding modes. Operands
/// and results pass through volatile objects, so that the compiler neither computes nor moves them.
namespace guardbit::formats {
namespace {

static_assert(FLT_EVAL_METHOD == 0, "float and double must be computed as themselves");

struct HostRounding {
  int mode;
  Rounding rounding;
};
constexpr HostRounding host_roundings[] = {{FE_TONEAREST, Rounding::nearest_even},
                                           {FE_TOWARDZERO, Rounding::toward_zero},
                                           {FE_UPWARD, Rounding::upward},
                                           {FE_DOWNWARD, Rounding::downward}};

/// The mode of the processor while this lives.
class RoundingMode {
 public:
  explicit RoundingMode(int mode) : before_(std::fegetround()) {
    REQUIRE(std::fesetround(mode) == 0);
  }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;
  ~RoundingMode() { std::fesetround(before_); }

 private:
  int before_;
};

template <typename Float>
using CodeOf = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

template <typename Float>
constexpr Format format_of() {
  return sizeof(Float) == 4 ? fp32 : fp64;
}

/// Results of add, subtract, multiply, divide, fma and sqrt.
constexpr std::size_t operations = 6;
using Codes = std::array<std::uint64_t, operations>;

template <typename Float>
Codes host_results(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  using Code = CodeOf<Float>;
  volatile Float a = std::bit_cast<Float>(static_cast<Code>(x));
  volatile Float b = std::bit_cast<Float>(static_cast<Code>(y));
  volatile Float c = std::bit_cast<Float>(static_cast<Code>(z));
  volatile Float results[operations] = {};
  results[0] = a + b;
  results[1] = a - b;
  results[2] = a * b;
  results[3] = a / b;
  results[4] = std::fma(a, b, c);
  results[5] = std::sqrt(a);
  Codes codes{};
  for (std::size_t i = 0; i < operations; ++i) {
    const Float result = results[i];
    codes[i] = std::bit_cast<Code>(result);
  }
  return codes;
}

Codes model_results(const Format& f, std::uint64_t x, std::uint64_t y, std::uint64_t z,
                    Rounding rounding) {
  const Value a = decode(f, x);
  const Value b = decode(f, y);
  const bool down = rounding == Rounding::downward;
  const auto rounded = [&](const Unrounded& exact) { return encode(f, exact, rounding); };
  return {rounded(add(exactly(a), exactly(b), down)),
          rounded(subtract(exactly(a), exactly(b), down)),
          rounded(multiply(a, b)),
          rounded(divide(a, b)),
          rounded(fused_multiply_add(a, b, decode(f, z), down)),
          rounded(square_root(a))};
}

/// NaNs count as equal: which one results is the processor's choice.
bool same(const Format& f, std::uint64_t x, std::uint64_t y) {
  return x == y || (decode(f, x).kind == Kind::nan && decode(f, y).kind == Kind::nan);
}

template <typename Float>
void compare(std::uint64_t x, std::uint64_t y, std::uint64_t z, Rounding rounding,
             Mismatches& mismatches) {
  constexpr Format f = format_of<Float>();
  const Codes host = host_results<Float>(x, y, z);
  const Codes model = model_results(f, x, y, z, rounding);
  for (std::size_t i = 0; i < operations; ++i) {
    mismatches.compare(same(f, model[i], host[i]), model[i], host[i], [&](auto& out) {
      out << "operation " << i << " of " << x << ' ' << y << ' ' << z << ", rounding "
          << static_cast<int>(rounding);
    });
  }
}

template <typename Float>
void compare_patterns() {
  Mismatches mismatches;
  const std::vector<std::uint64_t> patterns = crossed_patterns(format_of<Float>());
  for (const auto& [mode, rounding] : host_roundings) {
    const RoundingMode set(mode);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      for (std::size_t j = 0; j < patterns.size(); ++j) {
        compare<Float>(patterns[i], patterns[j], patterns[(i * 31 + j * 7) % patterns.size()],
                       rounding, mismatches);
      }
    }
  }
  CHECK(mismatches.report() == "");
}

template <typename Float>
void compare_random(int count) {
  Mismatches mismatches;
  constexpr Format f = format_of<Float>();
  for (const auto& [mode, rounding] : host_roundings) {
    const RoundingMode set(mode);
    std::mt19937_64 generator(static_cast<std::uint64_t>(mode));
    for (int i = 0; i < count; ++i) {
      const std::uint64_t x = random_code(f, generator(), generator);
      const std::uint64_t y = random_code(f, x, generator);
      compare<Float>(x, y, random_code(f, x, generator), rounding, mismatches);
    }
  }
  CHECK(mismatches.report() == "");
}

/// double to float and, where it fits, to a 64-bit integer.
void compare_conversion(std::uint64_t code, Rounding rounding, Mismatches& mismatches) {
  volatile double x = std::bit_cast<double>(code);
  volatile float narrow = static_cast<float>(x);
  const float result = narrow;
  const std::uint64_t host = std::bit_cast<std::uint32_t>(result);
  const std::uint64_t model = convert(fp64, code, fp32, rounding);
  mismatches.compare(same(fp32, model, host), model, host,
                     [&](auto& out) { out << "double to float " << code; });
  if (!(std::fabs(x) < 0x1p62)) return;
  volatile long long whole = std::llrint(x);
  const auto integer = static_cast<std::uint64_t>(whole);
  const std::uint64_t model_integer = convert(fp64, code, int64, rounding);
  mismatches.compare(model_integer == integer, model_integer, integer,
                     [&](auto& out) { out << "double to integer " << code; });
}

void compare_conversions(int count) {
  Mismatches mismatches;
  for (const auto& [mode, rounding] : host_roundings) {
    const RoundingMode set(mode);
    for (const std::uint64_t code : crossed_patterns(fp64)) {
      compare_conversion(code, rounding, mismatches);
    }
    std::mt19937_64 generator(static_cast<std::uint64_t>(mode) + 1);
    for (int i = 0; i < count; ++i) {
      // Any number, and one in fp32's range.
      const std::uint64_t code = random_code(fp64, 0, generator);
      const std::uint64_t exponent = generator() % 300 + 870;
      compare_conversion(code, rounding, mismatches);
      compare_conversion((code & 0x800FFFFFFFFFFFFF) | exponent << 52, rounding, mismatches);
    }
  }
  CHECK(mismatches.report() == "");
}

}  // namespace

TEST_CASE("float operations on crossed patterns agree with the processor") {
  compare_patterns<float>();
}
TEST_CASE("double operations on crossed patterns agree with the processor") {
  compare_patterns<double>();
}
TEST_CASE("random float operations agree with the processor") { compare_random<float>(100'000); }
TEST_CASE("random double operations agree with the processor") { compare_random<double>(100'000); }
TEST_CASE("conversions of doubles agree with the processor") { compare_conversions(100'000); }

TEST_CASE("10^7 random float operations agree with the processor", "[sweep]") {
  compare_random<float>(10'000'000);
}
TEST_CASE("10^7 random double operations agree with the processor", "[sweep]") {
  compare_random<double>(10'000'000);
}
TEST_CASE("10^7 conversions of doubles agree with the processor", "[sweep]") {
  compare_conversions(10'000'000);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("NaN payloads move between float and double as in the processor") {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto code = static_cast<std::uint32_t>(generator() | 0x7F800001);
    volatile float x = std::bit_cast<float>(code);
    volatile double wide = x;
    const double result = wide;
    REQUIRE(convert(fp32, code, fp64) == std::bit_cast<std::uint64_t>(result));

    const std::uint64_t wide_code = generator() | 0x7FF0000000000001;
    volatile double y = std::bit_cast<double>(wide_code);
    volatile float narrow = static_cast<float>(y);
    const float narrow_result = narrow;
    REQUIRE(convert(fp64, wide_code, fp32) == std::bit_cast<std::uint32_t>(narrow_result));
  }
}
#endif

}  // namespace guardbit::formats
