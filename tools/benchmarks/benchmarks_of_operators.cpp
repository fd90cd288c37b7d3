// Operators of PyTorch on 2^22 FP32 elements, forward and backward.

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "emulator/operators/optimizers.hpp"
#include "emulator/operators/pointwise/pointwise.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/row_norms.hpp"
#include "emulator/operators/softmax.hpp"
#include "formats/format_catalogue.hpp"
#include "tools/benchmarks/benchmarks.hpp"

namespace guardbit::tools {

namespace {

namespace ops = emulator::operators;
using formats::fp32;

constexpr std::int64_t rows = 4096, columns = 1024;

/// What the operators take: rows of normal numbers, and a row of weights.
struct Operands {
  ops::Tensor x, y, row;
};

ops::Tensor normal_numbers(ops::Dimensions shape, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(
      ops::Tensor{.shape = shape, .stride = {}, .bytes = {}, .owner = {}}.count()));
  for (float& number : numbers) number = normal(random);
  return ops::tensor_of_numbers(fp32, std::move(shape), numbers);
}

std::shared_ptr<const Operands> operands() {
  return std::make_shared<const Operands>(Operands{normal_numbers({rows, columns}, 1),
                                                   normal_numbers({rows, columns}, 2),
                                                   normal_numbers({columns}, 3)});
}

using Prepare = std::function<void()> (*)(int threads);

std::function<void()> softmax(int threads) {
  return [=, of = operands()] { ops::softmax(of->x, -1, false, fp32, threads); };
}
std::function<void()> softmax_backward(int threads) {
  const auto of = operands();
  return [=, y = ops::softmax(of->x, -1, false, fp32, threads).result] {
    ops::softmax_gradient(of->y, y, -1, false, fp32, threads);
  };
}
std::function<void()> layer_norm(int threads) {
  return [=, of = operands()] {
    ops::row_norm(ops::RowNorm::layer, of->x, 1, &of->row, &of->row, 1e-5, threads);
  };
}
std::function<void()> layer_norm_backward(int threads) {
  const auto of = operands();
  return
      [=, norm = ops::row_norm(ops::RowNorm::layer, of->x, 1, &of->row, &of->row, 1e-5, threads)] {
        ops::row_norm_gradients(ops::RowNorm::layer, of->y, of->x, 1, &norm.mean, norm.reciprocal,
                                &of->row, true, threads);
      };
}
std::function<void()> gelu(int threads) {
  return [=, of = operands(), op = ops::find_pointwise("gelu")] {
    ops::run_pointwise(*op, std::array{&of->x}, {}, fp32, threads);
  };
}
std::function<void()> gelu_backward(int threads) {
  return [=, of = operands(), op = ops::find_pointwise("gelu_backward")] {
    ops::run_pointwise(*op, std::array{&of->y, &of->x}, {}, fp32, threads);
  };
}
std::function<void()> sum(int threads) {
  return
      [=, of = operands()] { ops::sum(of->x, {.dimensions = {}, .type = {}, .threads = threads}); };
}
std::function<void()> sum_of_rows(int threads) {
  return [=, of = operands()] {
    ops::sum(of->x, {.dimensions = {-1}, .type = {}, .threads = threads});
  };
}
std::function<void()> adamw(int threads) {
  const auto of = operands();
  const ops::OptimizerState state{of->x, of->y, of->x, of->y, {}};
  ops::OptimizerParameters parameters;
  parameters.lr = 1e-3;
  parameters.weight_decay = 0.01;
  parameters.eps = 1e-8;
  parameters.beta1 = 0.9;
  parameters.beta2 = 0.999;
  parameters.is_decoupled = true;
  return [=] { ops::adam_step(state, parameters, threads); };
}

struct OperatorCase {
  std::string_view name;
  Prepare prepare;
};
constexpr std::array cases_of_operators = {
    OperatorCase{"softmax", softmax},
    OperatorCase{"softmax_backward", softmax_backward},
    OperatorCase{"layer_norm", layer_norm},
    OperatorCase{"layer_norm_backward", layer_norm_backward},
    OperatorCase{"gelu", gelu},
    OperatorCase{"gelu_backward", gelu_backward},
    OperatorCase{"sum", sum},
    OperatorCase{"sum_of_rows", sum_of_rows},
    OperatorCase{"adamw", adamw},
};

}  // namespace

void plan_operators(const BenchOptions& options, std::vector<Group>& groups) {
  const std::vector<int> counts = options.threads.empty() ? std::vector{2} : options.threads;
  for (const OperatorCase& of : cases_of_operators) {
    Group group;
    for (const int threads : counts) {
      Planned planned;
      planned.result.kind = "operator";
      planned.result.subject = of.name;
      planned.result.name = "operator/" + std::string(of.name) + "/" + std::to_string(threads);
      planned.result.threads = threads;
      planned.result.unit = "G/s";
      planned.result.work = 1e-9 * static_cast<double>(rows * columns);
      planned.prepare = [prepare = of.prepare, threads](Result&) { return prepare(threads); };
      group.push_back(std::move(planned));
    }
    groups.push_back(std::move(group));
  }
}

}  // namespace guardbit::tools
