#include <algorithm>

#include "experiments/training/layers.hpp"
#include "experiments/training/training_arithmetic.hpp"

namespace guardbit::experiments::training {

Loss cross_entropy_loss(Context& context, const Tensor& logits,
                        const std::vector<std::int32_t>& labels, float loss_scale,
                        bool with_gradient) {
  const Format format = context.format_for(Operation::cross_entropy, logits.format);
  const Tensor x = context.cast(logits, format, Role::activation);
  const std::int64_t rows = x.rows(), classes = x.columns();
  const float factor = loss_scale / static_cast<float>(rows);
  Loss result;
  result.gradient = zeros(with_gradient ? logits.shape : Dimensions{0}, logits.format);
  Values losses(static_cast<std::size_t>(rows));
  std::vector<std::uint8_t> correct(static_cast<std::size_t>(rows));
  context.for_ranges(
      rows,
      [&](std::int64_t begin, std::int64_t end) {
        Values exponentials(static_cast<std::size_t>(classes));
        for (std::int64_t i = begin; i < end; ++i) {
          const float* const row = x.values.data() + i * classes;
          const auto at = static_cast<std::size_t>(i);
          const std::int32_t label = labels[at];
          float maximum = 0;
          const float sum = softmax_sum(
              classes, maximum, [&](std::int64_t j) { return row[j]; },
              [&](std::int64_t j, float e) { exponentials[static_cast<std::size_t>(j)] = e; });
          losses[at] = cross_entropy(sum, maximum, row[label]);
          correct[at] = std::max_element(row, row + classes) == row + label ? 1 : 0;
          for (std::int64_t j = 0; with_gradient && j < classes; ++j)
            result.gradient[i * classes + j] = cross_entropy_gradient(
                exponentials[static_cast<std::size_t>(j)], sum, j == label, factor);
        }
      },
      64);
  result.loss = run_sum(rows, [&](std::int64_t i) { return losses[static_cast<std::size_t>(i)]; }) /
                static_cast<float>(rows);
  result.correct = std::count(correct.begin(), correct.end(), 1);
  if (with_gradient) context.store(result.gradient, Role::gradient);
  return result;
}

}  // namespace guardbit::experiments::training
