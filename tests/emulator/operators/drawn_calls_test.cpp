#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "emulator/operators/channel_norms.hpp"
#include "emulator/operators/draws.hpp"
#include "emulator/operators/losses.hpp"
#include "emulator/operators/margin_losses.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/optimizers.hpp"
#include "emulator/operators/row_norms.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

// Results whose digests an H200 gave for calls drawn at random.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using Floats = std::vector<float>;

ops::Tensor counted(const ops::Dimensions& shape, const ops::Dimensions& stride) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  Floats numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i));
  return ops::tensor_of_numbers(formats::fp32, shape, stride, numbers);
}

std::vector<std::int64_t> mask_of(const ops::Tensor& input, std::uint64_t seed) {
  return ops::integers_of(ops::dropout(input, 0.3, {.state = {seed, 0}}).mask);
}

}  // namespace

TEST_CASE("Normal numbers of FP64 are those of an H200") {
  const std::vector<double> drawn =
      ops::doubles_of(ops::normal(formats::fp64, {1700}, 0, 1, {.state = {416003349534, 0}}));
  const std::array expected = {0x1.2c53268040785p-3,  -0x1.1f4931dd31e46p-1, -0x1.3d0df5a2feacfp-1,
                               -0x1.aee132be83846p-1, -0x1.b5f94ba1c5ceep-2, -0x1.43cd56bbd322ep-2,
                               0x1.4bee4872affd8p-1,  0x1.41357642d913ap+1};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(drawn[i] == expected[i]);
}

TEST_CASE("What fills a tensor with gaps goes by the order of its strides") {
  const ops::Tensor written = counted({6}, {1});
  const auto filled = [&](const ops::Dimensions& shape, const ops::Dimensions& stride) {
    ops::Tensor rows = written;
    rows.shape = shape;
    return ops::numbers_of(ops::from_iteration_order(counted(shape, stride), rows));
  };
  CHECK(filled({2, 3}, {1, 5}) == Floats{0, 2, 4, 1, 3, 5});
  CHECK(filled({2, 3}, {7, 2}) == Floats{0, 1, 2, 3, 4, 5});
  CHECK(filled({2, 3}, {0, 0}) == Floats{0, 1, 2, 3, 4, 5});
}

TEST_CASE("Strides of a result follow earlier operands before later ones") {
  const auto strides = [](const ops::Dimensions& first, const ops::Dimensions& second) {
    return ops::stride_of_operands({2, 3}, std::array{first, second});
  };
  CHECK(strides({1, 2}, {3, 1}) == ops::Dimensions{1, 2});
  CHECK(strides({3, 1}, {1, 2}) == ops::Dimensions{3, 1});
  CHECK(strides({0, 1}, {1, 2}) == ops::Dimensions{1, 2});
  CHECK(strides({0, 0}, {0, 0}) == ops::Dimensions{3, 1});
}

TEST_CASE(
    "Dropout takes vectors in the order of memory and single elements in that of dimensions") {
  // bf16[3, 4], the first dimension the fastest, by the mask of an H200.
  ops::Tensor input = ops::tensor_of_numbers(formats::bf16, {3, 4}, Floats(12, 1));
  input.stride = {1, 3};
  CHECK(mask_of(input, 225206145) == std::vector<std::int64_t>{1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0});
  const ops::Tensor rows = counted({5, 3}, {3, 1}), columns = counted({5, 3}, {1, 5}),
                    gaps = counted({5, 3}, {2, 11}), same = counted({5, 3}, {0, 0});
  for (const ops::Tensor* other : {&columns, &gaps, &same})
    CHECK(mask_of(*other, 77) == mask_of(rows, 77));
  const ops::Tensor even = counted({4, 4}, {4, 1}), turned = counted({4, 4}, {1, 4});
  CHECK(mask_of(turned, 77) != mask_of(even, 77));
}

TEST_CASE("Dropout of FP64 computes in FP64") {
  const ops::Tensor input = ops::tensor_of_doubles({2}, std::array{0x1.0000000000001p0, 1.0});
  const ops::Dropped all = ops::dropout(input, 1e-9, {});
  CHECK(ops::doubles_of(all.output)[0] == 0x1.0000000000001p0 * (1 / (1 - 1e-9)));
}

TEST_CASE("A group norm of single pixels has a kernel of its own") {
  const Floats numbers = {0x1.68p+0, 0x1.34p-2, 0x1.aap+0, -0x1.fep-2, 0x1.5ap-3,  0x1.5ap-4,
                          0x1.22p-2, 0x1.cp-5,  0x1.16p+0, -0x1.1ap+1, -0x1.4ap-1, -0x1.e6p-4};
  const Floats gradients = {0x1.42p-1,  0x1p-2,    0x1.6ap+0, 0x1.28p-1, -0x1.9cp-1, 0x1.86p-1,
                            -0x1.1ep+0, 0x1.24p+0, 0x1.8cp-4, 0x1.6p-2,  0x1.cp+0,   -0x1.46p+0};
  const ops::Tensor input = ops::tensor_of_numbers(formats::bf16, {4, 3}, numbers);
  const ops::ChannelNormResult all = ops::group_norm(input, nullptr, nullptr, 1, 1e-6);
  CHECK(ops::numbers_of(all.output) == Floats{0x1.e6p-2, -0x1.64p+0, 0x1.d2p-1, -0x1.68p+0,
                                              0x1.bp-1, 0x1.1ep-1, -0x1.bcp-2, -0x1.e8p-1,
                                              0x1.62p+0, -0x1.6p+0, 0x1.8ep-2, 0x1.f8p-1});
  const ops::ChannelNormGradients of_input =
      ops::group_norm_gradients(ops::tensor_of_numbers(formats::bf16, {4, 3}, gradients), input,
                                all.mean, all.reciprocal, nullptr, 1);
  // Products that are not rounded to BF16 first would give other bits.
  CHECK(ops::numbers_of(of_input.input) == Floats{-0x1.2p-1, 0x1.b2p-4, 0x1.d6p-2, -0x1.52p-2,
                                                  -0x1.28p+1, 0x1.52p+1, -0x1.64p+1, 0x1.14p+1,
                                                  0x1.3cp-1, -0x1.dap-2, 0x1.d4p+0, -0x1.5ep+0});
}

TEST_CASE("Huber's gradient at the width itself is the inner one") {
  const ops::ElementLoss loss{.kind = ops::ElementLoss::Kind::huber, .width = 2.5};
  const auto bf16 = [](const Floats& numbers) {
    return ops::tensor_of_numbers(formats::bf16, {static_cast<std::int64_t>(numbers.size())},
                                  numbers);
  };
  const float inner = ops::rounded_to(formats::bf16, (1.0F / 3)) * 2.5F;
  const float own = 0x1.9p-1F;
  const ops::Tensor all = ops::element_loss_gradient(loss, bf16({own}), bf16({2.5F, -2.5F, 0}),
                                                     bf16({0, 0, 0}), ops::LossReduction::mean)
                              .loss;
  const float expected =
      ops::rounded_to(formats::bf16, ops::rounded_to(formats::bf16, inner) * own);
  CHECK(ops::numbers_of(all) == Floats{expected, -expected, 0});
}

TEST_CASE("Weights of a loss of logits are broadcast, and its sum goes by the target's order") {
  const ops::Tensor input = counted({2, 3}, {3, 1}), target = counted({2, 3}, {3, 1});
  const ops::Tensor weight = ops::tensor_of_numbers(formats::fp32, {2, 1}, Floats{1, 0});
  const ops::ElementLoss loss{.kind = ops::ElementLoss::Kind::logits, .weight = &weight};
  const auto all = ops::element_loss(loss, input, target, ops::LossReduction::none, {}, 1).loss;
  const Floats losses = ops::numbers_of(all);
  CHECK(losses[1] != 0);
  for (const std::size_t i : {3U, 4U, 5U}) CHECK(losses[i] == 0);
  const ops::Tensor turned = counted({2, 3}, {1, 2});
  CHECK(ops::element_loss({.kind = ops::ElementLoss::Kind::logits}, input, turned,
                          ops::LossReduction::none, {}, 1)
            .loss.stride == ops::Dimensions{1, 2});
}

TEST_CASE("Weighted likelihoods of 16 bits round each product") {
  const ops::Tensor input = ops::tensor_of_numbers(formats::bf16, {2, 1}, Floats{1.0078125F, 3});
  const ops::Tensor weight = ops::tensor_of_numbers(formats::bf16, {1}, Floats{1.0078125F});
  const ops::Tensor target =
      ops::tensor_of_integers(formats::int64, {2}, std::array<std::int64_t, 2>{});
  const float first = ops::rounded_to(formats::bf16, 1.0078125F * 1.0078125F);
  const float second = ops::rounded_to(formats::bf16, 3 * 1.0078125F);
  const Floats loss = ops::numbers_of(
      ops::negative_log_likelihood(input, target, &weight, ops::LossReduction::sum, -100).loss);
  CHECK(loss[0] == ops::rounded_to(formats::bf16, -first - second));
  CHECK_THROWS_AS(ops::negative_log_likelihood(
                      ops::tensor_of_numbers(formats::fp32, {1}, Floats{3}),
                      ops::tensor_of_integers(formats::int64, {}, std::array<std::int64_t, 1>{}),
                      nullptr, ops::LossReduction::mean, 0),
                  ops::UnknownShape);
}

TEST_CASE("Margin losses add what is lacking and a race of warps is refused") {
  const ops::Tensor input = ops::tensor_of_numbers(formats::fp32, {1, 3}, Floats{0.5F, 0.25F, 2});
  const ops::Tensor target =
      ops::tensor_of_integers(formats::int64, {1}, std::array<std::int64_t, 1>{});
  const auto loss = [&](int power) {
    return ops::numbers_of(
        ops::margin_loss({.power = power}, input, target, ops::LossReduction::none, {}, 1).loss);
  };
  CHECK(loss(1) == Floats{3.25F / 3});
  CHECK(loss(2) == Floats{(0.5625F + 6.25F) / 3});
  const ops::Tensor one = ops::tensor_of_numbers(formats::fp32, {}, Floats{1});
  const auto gradient_of_class = [&](std::int64_t choice) {
    std::vector<std::int64_t> classes(40, -1);
    classes[0] = choice;
    return ops::multilabel_margin_loss_gradient(
        one, ops::tensor_of_numbers(formats::fp32, {1, 40}, Floats(40, 0.5F)),
        ops::tensor_of_integers(formats::int64, {1, 40}, classes), ops::LossReduction::sum);
  };
  CHECK(gradient_of_class(31).has_value());
  CHECK_FALSE(gradient_of_class(32).has_value());
}

TEST_CASE("Fused Adam rounds by the place in memory") {
  ops::OptimizerState state{
      .parameter = ops::tensor_of_numbers(formats::fp32, {2, 4}, Floats(8, 0x1.400022p0F)),
      .gradient = ops::tensor_of_numbers(formats::fp32, {2, 4}, Floats(8, 0.3F)),
      .first = ops::tensor_of_numbers(formats::fp32, {2, 4}, Floats(8, 0)),
      .second = ops::tensor_of_numbers(formats::fp32, {2, 4}, Floats(8, 0)),
      .greatest = {}};
  ops::OptimizerParameters parameters;
  parameters.lr = 0.1;
  parameters.beta1 = 0.9;
  parameters.beta2 = 0.999;
  parameters.eps = 1e-8;
  parameters.weight_decay = 0.05;
  const Floats rows = ops::numbers_of(*ops::adam_step(state, parameters, 1).first);
  for (ops::Tensor* tensor : {&state.parameter, &state.gradient, &*state.first, &*state.second})
    tensor->stride = {1, 2};
  const Floats columns = ops::numbers_of(*ops::adam_step(state, parameters, 1).first);
  REQUIRE(rows[0] != rows[1]);
  // Of four neighbours the first one: elements 0 and 4 of the rows, 0 and 2 of the columns.
  CHECK(rows == Floats{rows[0], rows[1], rows[1], rows[1], rows[0], rows[1], rows[1], rows[1]});
  CHECK(columns == Floats{rows[0], rows[1], rows[0], rows[1], rows[1], rows[1], rows[1], rows[1]});
}

TEST_CASE("Gradients of columns add zeros for rows past the end") {
  const ops::Tensor gradient = ops::tensor_of_numbers(formats::fp32, {1, 1}, Floats{-0x1p-100F});
  const ops::Tensor input = ops::tensor_of_numbers(formats::fp32, {1, 1}, Floats{0x1p-100F});
  const ops::Tensor reciprocal = ops::tensor_of_numbers(formats::fp32, {1, 1}, Floats{1});
  const ops::RowNormGradients all = ops::row_norm_gradients(ops::RowNorm::rms, gradient, input, 1,
                                                            nullptr, reciprocal, nullptr, true, 1);
  CHECK_FALSE(std::signbit(ops::numbers_of(*all.weight)[0]));
}

}  // namespace guardbit::tests
