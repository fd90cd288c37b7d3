#include "experiments/suite/digit_training.hpp"

#include <cmath>

#include "experiments/run.hpp"

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

double difference_error(double first, double second, std::int64_t n) {
  return std::sqrt((first * (1 - first) + second * (1 - second)) / static_cast<double>(n));
}

}  // namespace guardbit::experiments
