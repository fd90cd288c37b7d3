#include "experiments/training/product.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/context.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments::training {
namespace {

Tensor random_tensor(std::int64_t rows, std::int64_t columns, const std::string& name) {
  Tensor x = zeros({rows, columns});
  Draws(11, name).fill(Distribution::outliers, x.values, 1);
  return x;
}

emulator::CodeMatrix copy_of(const Format& f, const Operand& x, bool turned) {
  emulator::CodeMatrix copy =
      emulator::make_matrix(f, 1, turned ? x.k : x.lines, turned ? x.lines : x.k);
  for (std::int64_t i = 0; i < x.lines; ++i)
    for (std::int64_t k = 0; k < x.k; ++k)
      copy.set(turned ? k * x.lines + i : i * x.k + k, x.codes(i, k));
  return copy;
}

}  // namespace

TEST_CASE("Products of layers are those of their plans") {
  struct Of {
    std::string recipe, arch;
  };
  for (const Of& of : {Of{"fp32", ""},
                       {"tf32", "sm_80"},
                       {"fp16_amp", "sm_90"},
                       {"fp16_amp", "sm_70"},
                       {"bf16_amp", "sm_90"},
                       {"fp8_current", "sm_90"}}) {
    const PrecisionRecipe recipe = require_recipe(of.recipe, of.arch, "test");
    Context context(recipe, 2, "test");
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      INFO(of.recipe << " on " << of.arch << ", " << formats::word_of(pass));
      const Role role = pass == Pass::forward ? Role::activation : Role::gradient;
      const CodedMatrix a = context.encode("a", role, random_tensor(300, 9, "a"), 300, 9);
      const CodedMatrix b = context.encode("b", Role::weight, random_tensor(300, 7, "b"), 300, 7);
      const Operand x = a.by_columns(), y = b.by_columns();
      Values d(63);
      context.product_of(pass)(x, y, d.data(), 2);
      emulator::GemmProblem problem;
      problem.a = copy_of(context.product_of(pass).a(), x, false);
      problem.b = copy_of(context.product_of(pass).b(), y, true);
      const emulator::CodeMatrix expected =
          emulator::execute(context.product_of(pass).plan(), problem, 1);
      CHECK(std::memcmp(d.data(), expected.bytes.data(), expected.bytes.size()) == 0);
    }
  }
}

TEST_CASE("A plan that splits K is executed as it says") {
  PrecisionRecipe recipe = require_recipe("fp16_amp", "sm_90", "test");
  recipe.plans[0].split.parts = 3;
  recipe.plans[0].split.tile = 16;
  Context context(recipe, 2, "test");
  const Tensor from_a = random_tensor(5, 100, "a"), from_b = random_tensor(4, 100, "b");
  const CodedMatrix a = context.encode("a", Role::activation, from_a, 5, 100);
  const CodedMatrix b = context.encode("b", Role::weight, from_b, 4, 100);
  Values d(20), whole(20);
  context.product_of(Pass::forward)(a.by_rows(), b.by_rows(), d.data(), 2);
  emulator::GemmProblem problem;
  problem.a = copy_of(formats::fp16, a.by_rows(), false);
  problem.b = copy_of(formats::fp16, b.by_rows(), true);
  const emulator::CodeMatrix expected = emulator::execute(recipe.plans[0], problem, 1);
  CHECK(std::memcmp(d.data(), expected.bytes.data(), expected.bytes.size()) == 0);
  context.product_of(Pass::input_gradient)(a.by_rows(), b.by_rows(), whole.data(), 2);
  CHECK(d != whole);
}

TEST_CASE("Products with scales are near the products of what was quantised") {
  // E4M3 keeps 4 bits, E2M1 2: relative errors of an element 2^-4 and 2^-2, and of FP8's tensor
  // scale nothing beside that.
  struct Of {
    std::string recipe;
    double tolerance;
  };
  for (const Of& of :
       {Of{"fp8_current", 0x1p-3}, {"mxfp8", 0x1p-3}, {"nvfp4", 0.5}, {"eigen", 1e-5}}) {
    INFO(of.recipe);
    Context context(require_recipe(of.recipe, "", "test"), 2, "test");
    const Tensor from_a = random_tensor(6, 70, "a"), from_b = random_tensor(5, 70, "b");
    const CodedMatrix a = context.encode("a", Role::activation, from_a, 6, 70);
    const CodedMatrix b = context.encode("b", Role::weight, from_b, 5, 70);
    const Tensor d = context.multiply(Pass::forward, a.by_rows(), b.by_rows(), {6, 5},
                                      formats::fp32, Role::activation);
    const Tensor turned =
        context.multiply(Pass::forward, a.by_columns(),
                         context.encode("c", Role::weight, from_a, 6, 70).by_columns(), {70, 70},
                         formats::fp32, Role::activation);
    for (std::int64_t i = 0; i < 6; ++i)
      for (std::int64_t j = 0; j < 5; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < 70; ++k) {
          const double p = static_cast<double>(from_a[i * 70 + k]) * from_b[j * 70 + k];
          sum += p;
          magnitude += std::abs(p);
        }
        REQUIRE(std::abs(static_cast<double>(d[i * 5 + j]) - sum) <= of.tolerance * magnitude);
      }
    for (std::int64_t i = 0; i < 70; i += 3) {
      double sum = 0;
      for (std::int64_t k = 0; k < 6; ++k)
        sum += static_cast<double>(from_a[k * 70 + i]) * from_a[k * 70 + i];
      REQUIRE(std::abs(static_cast<double>(turned[i * 70 + i]) - sum) <= 2 * of.tolerance * sum);
    }
  }
}

TEST_CASE("NVFP4's recipe mixes both operands of a weight's gradient, and draws for gradients") {
  Context context(require_recipe("nvfp4", "", "test"), 2, "test");
  constexpr std::int64_t k = 72;                   // four groups of 16, and 8 that stay as they are
  const Tensor from_a = random_tensor(k, 3, "a");  // beside itself, whose norms tell wrong mixing
  const auto coded = [&](Role role, const Tensor& x, std::uint64_t step) {
    context.begin_step(step);
    return context.encode("x", role, x, k, x.columns());
  };
  const CodedMatrix a = coded(Role::activation, from_a, 1), b = coded(Role::activation, from_a, 1);
  const Tensor d = context.multiply(Pass::weight_gradient, a.for_weight_gradient(),
                                    b.for_weight_gradient(), {3, 3}, formats::fp32, Role::gradient);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      double sum = 0, a_square = 0, b_square = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double x = from_a[l * 3 + i], y = from_a[l * 3 + j];
        sum += x * y;
        a_square += x * x;
        b_square += y * y;
      }
      // Elements err by a sixth of their size at most, which the transform leaves in the norm.
      REQUIRE(std::abs(static_cast<double>(d[i * 3 + j]) - sum) <=
              0.4 * std::sqrt(a_square * b_square));
    }
  }
  const auto bytes = [](const CodedMatrix& x) {
    const Operand o = x.by_rows();
    return std::vector<std::byte>(o.codes.codes.data, o.codes.codes.data + o.lines * o.k);
  };
  CHECK(bytes(a) == bytes(coded(Role::activation, from_a, 2)));
  CHECK(bytes(coded(Role::gradient, from_a, 1)) == bytes(coded(Role::gradient, from_a, 1)));
  CHECK(bytes(coded(Role::gradient, from_a, 1)) != bytes(coded(Role::gradient, from_a, 2)));
}

TEST_CASE("Windows and turned filters are gathered as the layout says") {
  const Encoding encoding{formats::fp16};
  const Windows w{2, 4, 5, 3, 3, 3, 2};
  const Tensor image = random_tensor(2 * 4 * 5, 3, "image");
  const CodedMatrix coded(encoding, image.values.data(), image.rows(), 3, 1);
  const CodedMatrix windows = coded.gathered(w, 2);
  REQUIRE(windows.rows() == w.rows());
  REQUIRE(windows.columns() == w.columns());
  const Operand from = coded.by_rows(), to = windows.by_rows();
  for (std::int64_t i = 0; i < w.rows(); ++i)
    for (std::int64_t j = 0; j < w.columns(); ++j) {
      const std::int64_t source = w.source(i, j);
      REQUIRE(to.codes(i, j) == (source < 0 ? 0 : from.codes(source / 3, source % 3)));
    }
  // Turned twice, filters are what they were, with inputs and outputs exchanged twice.
  const TurnedFilters once{4, 3, 2, 5}, twice{5, 3, 2, 4};
  for (std::int64_t o = 0; o < 4; ++o)
    for (std::int64_t k = 0; k < 3 * 2 * 5; ++k) {
      const std::int64_t at = twice.source(o, k);
      REQUIRE(once.source(at / once.columns(), at % once.columns()) == o * 30 + k);
    }
}

TEST_CASE("Autocast casts as PyTorch's table says") {
  const Context amp(require_recipe("fp16_amp", "", "test"), 1, "test");
  const Context pure(require_recipe("fp16", "", "test"), 1, "test");
  const auto fp16 = formats::fp16, fp32 = formats::fp32;
  CHECK(amp.format_for(Operation::linear, fp32) == fp16);
  CHECK(amp.format_for(Operation::conv2d, fp32) == fp16);
  CHECK(amp.format_for(Operation::relu, fp16) == fp16);
  CHECK(amp.format_for(Operation::rms_norm, fp16) == fp16);
  CHECK(amp.format_for(Operation::layer_norm, fp16) == fp32);
  CHECK(amp.format_for(Operation::cross_entropy, fp16) == fp32);
  CHECK(amp.format_for(Operation::add, fp16, fp32) == fp32);
  CHECK(pure.format_for(Operation::cross_entropy, fp16) == fp16);
  for (std::size_t i = 0; i < autocast_policy().size(); ++i)
    CHECK(static_cast<std::size_t>(autocast_policy()[i].operation) == i);
}

}  // namespace guardbit::experiments::training
