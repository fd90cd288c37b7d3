#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/optimizers.hpp"
#include "emulator/operators/pointwise/pointwise.hpp"
#include "emulator/operators/reduction.hpp"
#include "emulator/operators/row_norms.hpp"
#include "emulator/operators/softmax.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"

// Loops in vectors give the bits of one element after another.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using formats::bf16;
using formats::fp16;
using formats::fp32;

/// Numbers near 1, and with `specials` everything that FP32 has.
class Draw {
 public:
  std::vector<float> numbers(std::size_t count, bool specials) {
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    for (float& x : all) {
      x = normal(random_);
      if (!specials) continue;
      switch (random_() % 24) {
        case 0: x = std::bit_cast<float>(static_cast<std::uint32_t>(random_())); break;
        case 1: x = std::copysign(0.0F, x); break;
        case 2: x *= 1e-40F; break;
        case 3: x *= 1e37F; break;
        case 4: x *= 60; break;
        case 5:
          if (random_() % 64 == 0) x = std::copysign(std::numeric_limits<float>::infinity(), x);
          break;
        default: break;
      }
    }
    return all;
  }
  ops::Tensor tensor(const formats::Format& type, ops::Dimensions shape, bool specials) {
    std::int64_t count = 1;
    for (const std::int64_t n : shape) count *= n;
    ops::Tensor tensor = ops::uninitialised_tensor(type, std::move(shape));
    ops::write_numbers(type, 0, numbers(static_cast<std::size_t>(count), specials), true,
                       ops::writable_bytes(tensor));
    return tensor;
  }
  std::int64_t below(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
  }

 private:
  std::mt19937_64 random_{21};
};

std::uint32_t code_of(float x, bool keeps_nans) {
  return x != x && !keeps_nans ? 0x7fffffff : std::bit_cast<std::uint32_t>(x);
}

std::size_t differing(std::span<const float> a, std::span<const float> b, bool keeps_nans = false) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += code_of(a[i], keeps_nans) != code_of(b[i], keeps_nans) ? 1U : 0U;
  return count;
}
std::size_t differing(const ops::Tensor& a, const std::vector<float>& b) {
  return differing(ops::numbers_of(a), b);
}

float tree(std::vector<float> v) {
  for (std::size_t n = v.size() / 2; n > 0; n /= 2) {
    for (std::size_t t = 0; t < n; ++t) v[t] += v[t + n];
  }
  return v[0];
}
/// Warps, then their sums in a table of 32.
float block_sum(const std::vector<float>& v) {
  std::vector<float> warps(32, 0.0F);
  for (std::size_t w = 0; w * 32 < v.size(); ++w) {
    const auto begin = v.begin() + static_cast<std::ptrdiff_t>(w * 32);
    warps[w] = tree({begin, begin + 32});
  }
  return tree(warps);
}

}  // namespace

TEST_CASE("pointwise kernels give the bits of the expressions") {
  Draw draw;
  for (const ops::PointwiseOperator& op : ops::pointwise_operators()) {
    INFO(op.name);
    const bool keeps_nans = op.chosen_nan != ops::ChosenNan::unit;
    for (const std::size_t count : {1U, 13U, 2051U}) {
      std::vector<std::vector<float>> numbers;
      ops::PointwiseOperands operands;
      for (int i = 0; i < op.operands; ++i) numbers.push_back(draw.numbers(count, true));
      for (std::size_t i = 0; i < numbers.size(); ++i) operands.numbers[i] = numbers[i];
      const ops::Parameters parameters{{0.3F, 1.7F, 0.9F, 2}, fp32};
      std::vector<float> one_by_one(count), quick(count);
      op.run(operands, parameters, one_by_one);
      ops::PointwiseRunner(op).run(operands, parameters, quick);
      CHECK(differing(one_by_one, quick, keeps_nans) == 0);
    }
  }
}

TEST_CASE("codes of 16 bits are read and written in vectors as one by one") {
  for (const formats::Format& type : {fp16, bf16}) {
    ops::Tensor all = ops::uninitialised_tensor(type, {65536});
    std::vector<std::uint16_t> codes(65536);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
    std::memcpy(ops::writable_bytes(all).data(), codes.data(), codes.size() * 2);
    const std::vector<float> numbers = ops::numbers_of(all);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const formats::Value value = formats::decode(type, codes[i]);
      if (value.kind == formats::Kind::nan) {
        wrong += numbers[i] == numbers[i] ? 1U : 0U;
        continue;
      }
      wrong += formats::encode(fp32, value) != std::bit_cast<std::uint32_t>(numbers[i]) ? 1U : 0U;
    }
    CHECK(wrong == 0);
    Draw draw;
    std::vector<float> drawn = draw.numbers(20011, true);
    for (const float x : numbers) {  // ties and their neighbours
      drawn.push_back(
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + (type == fp16 ? 0x1000 : 0x8000)));
      drawn.push_back(std::nextafter(drawn.back(), 0.0F));
    }
    const ops::Tensor written =
        ops::tensor_of_numbers(type, {static_cast<std::int64_t>(drawn.size())}, drawn);
    wrong = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const formats::Value value = formats::decode(fp32, std::bit_cast<std::uint32_t>(drawn[i]));
      const std::uint64_t expected =
          value.kind == formats::Kind::nan ? 0x7fff : formats::encode(type, value);
      wrong += ops::code_at(written, static_cast<std::int64_t>(i)) != expected ? 1U : 0U;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("softmax in vectors adds as its threads do") {
  Draw draw;
  for (const std::int64_t size : {5, 33, 1000, 1024, 2049, 4099, 12296}) {
    for (const bool specials : {false, true}) {
      const std::int64_t rows = 16;
      const ops::Tensor x = draw.tensor(fp32, {rows, size}, specials);
      const std::vector<float> numbers = ops::numbers_of(x);
      const auto shape = ops::forward_shape({.size = size, .is_aligned = size * 4 % 16 == 0});
      if (shape.kind == ops::SoftmaxShape::Kind::from_memory) continue;
      std::vector<float> expected;
      const auto threads = static_cast<std::size_t>(shape.threads);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row = std::span(numbers).subspan(static_cast<std::size_t>(r * size),
                                                    static_cast<std::size_t>(size));
        float greatest = -std::numeric_limits<float>::infinity();
        for (const float v : row) greatest = v > greatest ? v : greatest;
        std::vector<float> sums(threads);
        for (std::size_t i = 0; i < row.size(); ++i)
          sums[i / static_cast<std::size_t>(shape.vector) % threads] +=
              ops::exp_of(row[i] - greatest);
        const float sum =
            shape.kind == ops::SoftmaxShape::Kind::persistent ? tree(sums) : block_sum(sums);
        for (const float v : row) expected.push_back(ops::exp_of(v - greatest) / sum);
      }
      INFO(size << " " << shape.text());
      CHECK(differing(ops::softmax(x, -1, false, fp32, 2).result, expected) == 0);
      if (specials || size < 100) continue;
      auto wrong = shape;
      wrong.threads /= 2;
      CHECK(differing(ops::softmax(x, -1, false, fp32, 2, wrong).result, expected) > 0);
    }
  }
}

TEST_CASE("reductions in vectors add as their threads do") {
  Draw draw;
  for (const ops::Dimensions& shape :
       {ops::Dimensions{7, 129}, {3, 1024}, {1, 300007}, {200, 70}, {300, 300}, {5, 9001}}) {
    for (const std::int64_t dimension : {0, 1}) {
      const bool specials = draw.below(2) == 0;
      ops::Tensor x = draw.tensor(fp32, shape, specials);
      x.offset = draw.below(6);
      const auto walk = ops::walk_of_reduction(x, {dimension}, false);
      const auto cut =
          ops::shape_of_reduction(walk, x.offset, {.accumulators = 4, .vector = 4}, {});
      const std::vector<float> numbers = ops::numbers_of(x);
      const auto accumulators = static_cast<std::size_t>(cut.vector > 1 ? cut.vector : 4);
      std::vector<float> expected;
      for (std::int64_t o = 0; o < walk.outputs; ++o) {
        const std::int64_t start = ops::place_of(walk.kept, o);
        const std::int64_t address = x.offset + ops::address_of(walk.kept, o);
        const auto own = static_cast<std::size_t>(cut.threads());
        std::vector<float> slots(own * accumulators);
        const std::int64_t shift = cut.vector > 1 ? address % cut.vector : 0;
        const std::int64_t head = shift > 0 ? std::min(cut.vector - shift, walk.inputs) : 0;
        const std::int64_t tail = (walk.inputs - head) % (cut.vector > 1 ? cut.vector : 1);
        for (std::int64_t i = 0; i < walk.inputs; ++i) {
          const float number =
              numbers[static_cast<std::size_t>(start + ops::place_of(walk.reduced, i))];
          std::size_t slot = static_cast<std::size_t>(i - head) % slots.size();
          if (i < head) slot = static_cast<std::size_t>(shift + i) * accumulators;
          if (i >= walk.inputs - tail)
            slot = static_cast<std::size_t>(i - (walk.inputs - tail)) * accumulators;
          slots[slot] += number;
        }
        expected.push_back(
            ops::detail::brought_together(ops::Sum{}, cut, std::span<const float>(slots)));
      }
      INFO(shape[0] << "x" << shape[1] << ", dimension " << dimension << ": " << cut.text());
      for (const int threads : {1, 2}) {
        const auto found = ops::reduced(ops::Sum{}, x, walk, cut, threads);
        CHECK(differing(found, expected) == 0);
      }
      if (specials || walk.inputs < 1000) continue;
      auto wrong = cut;
      wrong.lane_order = ops::LaneOrder::ascending;
      CHECK(differing(ops::reduced(ops::Sum{}, x, walk, wrong, 2), expected) > 0);
    }
  }
}

TEST_CASE("layer_norm in vectors has the moments of its threads") {
  Draw draw;
  for (const std::int64_t size : {4, 96, 512, 1028, 4096}) {
    const ops::Tensor x = draw.tensor(fp32, {2, size}, false), w = draw.tensor(fp32, {size}, true),
                      b = draw.tensor(fp32, {size}, true);
    const auto found = ops::row_norm(ops::RowNorm::layer, x, 1, &w, &b, 1e-5, 2);
    const auto numbers = ops::numbers_of(x), weights = ops::numbers_of(w),
               biases = ops::numbers_of(b);
    const auto means = ops::numbers_of(found.mean), reciprocals = ops::numbers_of(found.reciprocal);
    std::vector<float> expected, of_means;
    for (std::size_t r = 0; r < 2; ++r) {
      struct State {
        float mean = 0, squares = 0, count = 0;
      };
      std::vector<State> all(128);
      const float* row = numbers.data() + r * static_cast<std::size_t>(size);
      for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
        State& s = all[i / 4 % 128];
        s.count += 1;
        const float delta = row[i] - s.mean;
        s.mean = std::fma(delta, 1.0F / s.count, s.mean);
        s.squares = std::fma(delta, row[i] - s.mean, s.squares);
        expected.push_back(std::fma((row[i] - means[r]) * reciprocals[r], weights[i], biases[i]));
      }
      const auto combined = [](State lower, State upper) -> State {
        const float count = upper.count + lower.count;
        if (!(count > 0)) return {0, 0, count};
        const float inverse = 1.0F / count, of_upper = upper.count * inverse,
                    of_lower = lower.count * inverse;
        return {std::fma(of_upper, upper.mean, of_lower * lower.mean), 0, count};
      };
      for (const std::size_t width : {32U, 4U}) {
        const std::size_t groups = all.size() / width;
        for (std::size_t g = 0; g < groups; ++g) {
          for (std::size_t n = width / 2; n > 0; n /= 2) {
            for (std::size_t t = 0; t < n; ++t)
              all[g * width + t] = combined(all[g * width + t], all[g * width + t + n]);
          }
          all[g] = all[g * width];
        }
        all.resize(groups);
      }
      of_means.push_back(all[0].mean);
    }
    INFO(size);
    CHECK(differing(found.mean, of_means) == 0);
    CHECK(differing(found.output, expected) == 0);
  }
}

TEST_CASE("AdamW in vectors takes the steps of single elements") {
  Draw draw;
  for (const std::int64_t count : {1, 4097, 70003}) {
    const bool specials = count == 4097;
    const ops::OptimizerState before{draw.tensor(fp32, {count}, specials),
                                     draw.tensor(fp32, {count}, specials),
                                     draw.tensor(fp32, {count}, specials),
                                     draw.tensor(fp32, {count}, specials),
                                     {}};
    ops::OptimizerParameters parameters;
    parameters.lr = 0.25;
    parameters.weight_decay = 0.5;
    parameters.eps = 0x1p-20;
    parameters.beta1 = 0.75;
    parameters.beta2 = 0.875;
    parameters.is_decoupled = true;
    const ops::OptimizerState after = ops::adam_step(before, parameters, 2);
    const auto p = ops::numbers_of(before.parameter), g = ops::numbers_of(before.gradient);
    const auto m = ops::numbers_of(*before.first), v = ops::numbers_of(*before.second);
    std::vector<float> parameter, first, second;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const float decayed = std::fma(-0.125F, p[i], p[i]), square = g[i] * g[i];
      first.push_back(std::fma(0.75F, m[i], std::fma(-0.75F, g[i], g[i])));
      second.push_back(std::fma(0.875F, v[i], std::fma(-0.875F, square, square)));
      const float divisor = std::sqrt(second[i]) / std::sqrt(0.125F) + 0x1p-20F;
      parameter.push_back(decayed - (1.0F * first[i]) / divisor);
    }
    CHECK(differing(after.parameter, parameter) == 0);
    CHECK(differing(*after.first, first) == 0);
    CHECK(differing(*after.second, second) == 0);
  }
}

}  // namespace guardbit::tests
