#include "experiments/suite/digit_training.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/harness/run.hpp"

namespace guardbit::experiments {

Digits digits_for(Run& run, std::int64_t images, std::int64_t test_images) {
  // Mean and deviation that MNIST is usually normalised with; any would do.
  constexpr float mean = 0.1307F, deviation = 0.3081F;
  const auto part = [&](std::int64_t count, std::uint64_t seed) {
    const training::ByteImages drawn = training::draw_digits(count, seed);
    run.uses(std::as_bytes(std::span(drawn.pixels)));
    return training::examples_of(drawn, mean, deviation);
  };
  // Image i depends on the seed and i, so the test images have a seed of their own.
  return {part(images, run.seed()), part(test_images, run.seed() + 0x7e57)};
}

std::vector<double> correct_examples(const training::Tensor& logits,
                                     const std::vector<std::int32_t>& labels) {
  const std::int64_t classes = logits.columns();
  std::vector<double> correct;
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    const float* const row = logits.values.data() + i * classes;
    const bool is_right =
        std::max_element(row, row + classes) - row == labels[static_cast<std::size_t>(i)];
    correct.push_back(is_right ? 1 : 0);
  }
  return correct;
}

PairedDifference paired_difference(std::span<const double> first, std::span<const double> second) {
  const auto n = static_cast<double>(first.size());
  double difference = 0, apart = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    difference += first[i] - second[i];
    apart += first[i] == second[i] ? 0 : 1;
  }
  return {difference / n, std::sqrt(apart - difference * difference / n) / n};
}

}  // namespace guardbit::experiments
