#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/screening/function_case.hpp"
#include "gpu/screening/integer_rounds.hpp"
#include "gpu/screening/product_case.hpp"
#include "gpu/screening/screen_set.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

std::uint64_t code_at(const std::vector<std::byte>& bytes, int bits, std::size_t i) {
  std::uint64_t code = 0;
  const auto width = static_cast<std::size_t>(bits / 8);
  std::memcpy(&code, bytes.data() + i * width, width);
  return code;
}

template <class Number>
Number number_at(const std::vector<std::byte>& bytes, std::size_t i) {
  Number x;
  std::memcpy(&x, bytes.data() + i * sizeof x, sizeof x);
  return x;
}

/// D of a case of the kind whose every result is one chain of multiply-adds of that type.
template <class Number>
void require_chain(const ProductCase& x) {
  for (const int i : {0, 1, 100, 255})
    for (const int j : {0, 7, 255}) {
      Number sum = 0;
      for (int k = 0; k < x.k; ++k)
        sum = std::fma(number_at<Number>(x.a, static_cast<std::size_t>(i * x.k + k)),
                       number_at<Number>(x.b, static_cast<std::size_t>(k * distinct_columns + j)),
                       sum);
      REQUIRE(number_at<Number>(x.expected, static_cast<std::size_t>(i * distinct_columns + j)) ==
              sum);
    }
}

}  // namespace

TEST_CASE("A screening's functions have the results of the models in integers") {
  for (const std::string name : {"ex2.approx.ftz.f32", "fma.rn.f64", "add.rn.f16", "div.full.f32",
                                 "rsqrt.approx.f64", "tanh.approx.bf16x2"}) {
    INFO(name);
    const FunctionCase x = make_function_case(name, 1);
    const auto& function = guardbit::emulator::require_function("sm_90", name, "test");
    REQUIRE(x.operands.size() == function.operands);
    REQUIRE(x.expected.size() == std::size_t{screened_inputs} * static_cast<unsigned>(x.bits) / 8);
    for (std::size_t n = 0; n < screened_inputs; n += 997) {
      guardbit::emulator::OperandCodes codes{};
      for (std::size_t i = 0; i < x.operands.size(); ++i)
        codes[i] = code_at(x.operands[i], x.bits, n);
      REQUIRE(guardbit::emulator::same_function_result(function.formats.results[0],
                                                       code_at(x.expected, x.bits, n),
                                                       function.reference(codes)[0]));
    }
  }
  REQUIRE_THROWS_AS(make_function_case("ex3.approx.f32"), guardbit::formats::Error);
}

TEST_CASE("Every bit of an operand reaches the integer operations' result") {
  for (const std::uint64_t x : {0ULL, ~0ULL, 0x0123456789ABCDEFULL})
    for (int bit = 0; bit < 64; ++bit) {
      CHECK(integer_rounds(x) != integer_rounds(x ^ std::uint64_t{1} << bit));
    }
  const FunctionCase x = make_integer_case();
  REQUIRE(operands_text(x, 1).substr(0, 4) == "x=0x");
  REQUIRE(x.expected != x.operands[0]);
}

TEST_CASE("A screening's products are those of the library's plan") {
  constexpr int shrink = 16;
  for (int kind = 0; kind < product_kinds(); ++kind) {
    const ProductCase x = make_product_case(kind, shrink, 1);
    INFO(x.name << " " << x.plan);
    REQUIRE(x.m % distinct_rows == 0);
    if (x.instruction.a == guardbit::formats::fp32) require_chain<float>(x);
    if (x.instruction.a == guardbit::formats::fp64) require_chain<double>(x);
    // Sums stay away from the ends of the range, so that most bits of the operands count.
    int finite = 0;
    const int bits = guardbit::formats::container_bits(x.instruction.d);
    for (std::size_t i = 0; i < std::size_t{distinct_rows} * distinct_columns; ++i)
      finite += decode(x.instruction.d, code_at(x.expected, bits, i)).kind ==
                        guardbit::formats::Kind::finite
                    ? 1
                    : 0;
    REQUIRE(finite == distinct_rows * distinct_columns);
  }
}

TEST_CASE("A set of a screening holds its cases' images, and what they cover") {
  const TensorCoreInstruction* const dense =
      find_plain("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  const TensorCoreInstruction* const sparse =
      find_plain("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
  REQUIRE(dense != nullptr);
  REQUIRE(sparse != nullptr);
  const std::vector<const TensorCoreInstruction*> both = {dense, sparse};
  const ScreenSet set = make_screen_set(both, 5, 1);
  REQUIRE(set.cases.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const ScreenCase made = make_screen_case(*both[i], 5);
    const PackedCase& packed = set.cases[i];
    REQUIRE(packed.images == made.operands.images);
    const auto holds = [&](std::size_t begin, const std::vector<std::byte>& bytes) {
      return begin % 256 == 0 && begin + bytes.size() <= set.bytes.size() &&
             (bytes.empty() ||
              std::memcmp(set.bytes.data() + begin, bytes.data(), bytes.size()) == 0);
    };
    REQUIRE(holds(packed.a, made.operands.a));
    REQUIRE(holds(packed.b, made.operands.b));
    REQUIRE(holds(packed.c, made.operands.c));
    REQUIRE(holds(packed.e, made.operands.e));
    REQUIRE(holds(packed.expected, made.expected));
  }
  REQUIRE(set.events == set.possible_events);
  REQUIRE(set.never.empty());
  REQUIRE(make_screen_set(both, 5, 2).bytes == set.bytes);
  REQUIRE(make_screen_set(both, 6, 1).bytes != set.bytes);
}
