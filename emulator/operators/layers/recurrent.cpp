#include "emulator/operators/layers/recurrent.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

float tanh_of(float x) { return cuda_math::tanhf(HostNumber(x)).number(); }
float logistic_of(float x) { return 1.0F / (1.0F + exp_of(-x)); }

void require_cell(bool fits) {
  if (!fits) throw UnknownShape{"shapes that no recurrent cell has"};
}

/// The size of a state that has so many gates of that tensor.
std::size_t size_of(const Tensor& state, const Tensor& gates, std::int64_t count) {
  require_cell(state.rank() == 2 && gates.rank() == 2 && state.shape[0] == gates.shape[0] &&
               state.shape[1] * count == gates.shape[1] && state.type == gates.type);
  return static_cast<std::size_t>(state.shape[1]);
}

/// The sums that the gates are functions of, in the order in which the kernel adds.
class Sums {
 public:
  explicit Sums(const GateSums& sums)
      : input_(sums.input), hidden_(sums.hidden), width_(static_cast<std::size_t>(width(sums))) {
    require_cell((sums.input_bias == nullptr) == (sums.hidden_bias == nullptr));
    if (sums.input_bias == nullptr) {
      biases_[0].resize(width_);
      biases_[1].resize(width_);
      return;
    }
    biases_ = {numbers_of(*sums.input_bias), numbers_of(*sums.hidden_bias)};
    require_cell(biases_[0].size() == width_ && biases_[1].size() == width_);
  }
  float all(std::size_t row, std::size_t at) const {
    return ((input_[row * width_ + at] + hidden_[row * width_ + at]) + biases_[0][at]) +
           biases_[1][at];
  }
  float of_input(std::size_t row, std::size_t at) const {
    return input_[row * width_ + at] + biases_[0][at];
  }
  float of_hidden(std::size_t row, std::size_t at) const {
    return hidden_[row * width_ + at] + biases_[1][at];
  }

 private:
  static std::int64_t width(const GateSums& sums) {
    require_cell(sums.input.rank() == 2 && sums.input.shape == sums.hidden.shape &&
                 sums.input.type == sums.hidden.type);
    return sums.input.shape[1];
  }

  NumberView input_, hidden_;
  std::size_t width_;
  std::array<std::vector<float>, 2> biases_;
};

Tensor stored(const Tensor& like, std::int64_t columns, const std::vector<float>& numbers) {
  return tensor_of_numbers(like.type, {like.shape[0], columns}, numbers);
}

}  // namespace

LstmCell lstm_cell(const GateSums& sums, const Tensor& cell) {
  const std::size_t size = size_of(cell, sums.input, 4);
  const Sums of(sums);
  const NumberView before(cell);
  // One of the two products is rounded, in 16 bits another one.
  const bool is_single = cell.type == formats::fp32;
  std::vector<float> hidden(before.size()), after(before.size()), gates(before.size() * 4);
  for (std::size_t at = 0; at < before.size(); ++at) {
    const std::size_t row = at / size, i = at % size;
    const float enter = logistic_of(of.all(row, i)), keep = logistic_of(of.all(row, size + i));
    const float candidate = tanh_of(of.all(row, 2 * size + i));
    const float leave = logistic_of(of.all(row, 3 * size + i));
    after[at] = is_single ? std::fma(keep, before[at], enter * candidate)
                          : std::fma(enter, candidate, keep * before[at]);
    hidden[at] = leave * tanh_of(after[at]);
    const std::array all = {enter, keep, candidate, leave};
    for (std::size_t g = 0; g < all.size(); ++g) gates[row * 4 * size + g * size + i] = all[g];
  }
  const std::int64_t columns = cell.shape[1];
  return {stored(cell, columns, hidden), stored(cell, columns, after),
          stored(cell, 4 * columns, gates)};
}

LstmGradients lstm_cell_gradients(const Tensor* of_hidden, const Tensor* of_cell,
                                  const Tensor& cell_before, const Tensor& cell_after,
                                  const Tensor& gates) {
  const std::size_t size = size_of(cell_before, gates, 4);
  require_cell(cell_after.shape == cell_before.shape);
  const NumberView before(cell_before), after(cell_after), all(gates);
  const auto numbers_or_zeros = [&](const Tensor* tensor) {
    require_cell(tensor == nullptr || tensor->shape == cell_before.shape);
    return tensor == nullptr ? std::vector<float>(before.size()) : numbers_of(*tensor);
  };
  const std::vector<float> hidden = numbers_or_zeros(of_hidden), cell = numbers_or_zeros(of_cell);
  std::vector<float> of_gates(all.size()), of_before(before.size());
  for (std::size_t at = 0; at < before.size(); ++at) {
    const std::size_t first = at / size * 4 * size + at % size;
    const float enter = all[first], keep = all[first + size], candidate = all[first + 2 * size],
                leave = all[first + 3 * size];
    const float t = tanh_of(after[at]);
    const float of_after = std::fma(hidden[at] * leave, std::fma(-t, t, 1.0F), cell[at]);
    of_before[at] = of_after * keep;
    of_gates[first] = ((of_after * candidate) * (1 - enter)) * enter;
    of_gates[first + size] = ((of_after * before[at]) * (1 - keep)) * keep;
    of_gates[first + 2 * size] = (of_after * enter) * std::fma(-candidate, candidate, 1.0F);
    of_gates[first + 3 * size] = ((hidden[at] * t) * (1 - leave)) * leave;
  }
  return {stored(gates, gates.shape[1], of_gates),
          stored(cell_before, cell_before.shape[1], of_before)};
}

GruCell gru_cell(const GateSums& sums, const Tensor& hidden) {
  const std::size_t size = size_of(hidden, sums.input, 3);
  const Sums of(sums);
  const NumberView before(hidden);
  std::vector<float> after(before.size()), kept(before.size() * 5);
  for (std::size_t at = 0; at < before.size(); ++at) {
    const std::size_t row = at / size, i = at % size;
    const float reset = logistic_of(of.all(row, i)), keep = logistic_of(of.all(row, size + i));
    const float share = of.of_hidden(row, 2 * size + i);
    const float candidate = tanh_of(std::fma(reset, share, of.of_input(row, 2 * size + i)));
    after[at] = std::fma(keep, before[at] - candidate, candidate);
    const std::array all = {reset, keep, candidate, before[at], share};
    for (std::size_t g = 0; g < all.size(); ++g) kept[row * 5 * size + g * size + i] = all[g];
  }
  return {stored(hidden, hidden.shape[1], after), stored(hidden, 5 * hidden.shape[1], kept)};
}

GruGradients gru_cell_gradients(const Tensor& of_hidden, const Tensor& kept) {
  const std::size_t size = size_of(of_hidden, kept, 5);
  const NumberView gradients(of_hidden), all(kept);
  const std::size_t count = gradients.size();
  std::vector<float> input(count * 3), hidden(count * 3), state(count);
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t from = at / size * 5 * size + at % size;
    const std::size_t to = at / size * 3 * size + at % size;
    const float reset = all[from], keep = all[from + size], candidate = all[from + 2 * size],
                before = all[from + 3 * size], share = all[from + 4 * size], g = gradients[at];
    const float of_keep = ((g * (before - candidate)) * (1 - keep)) * keep;
    const float of_candidate = (g * (1 - keep)) * std::fma(-candidate, candidate, 1.0F);
    const float of_reset = ((of_candidate * share) * (1 - reset)) * reset;
    state[at] = g * keep;
    input[to] = hidden[to] = of_reset;
    input[to + size] = hidden[to + size] = of_keep;
    input[to + 2 * size] = of_candidate;
    hidden[to + 2 * size] = of_candidate * reset;
  }
  const std::int64_t columns = of_hidden.shape[1];
  return {stored(of_hidden, 3 * columns, input), stored(of_hidden, 3 * columns, hidden),
          stored(of_hidden, columns, state)};
}

}  // namespace guardbit::emulator::operators
