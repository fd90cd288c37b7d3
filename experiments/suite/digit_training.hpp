#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/settings.hpp"
#include "experiments/training/data.hpp"

namespace guardbit::experiments {

class Run;

/// Generated digits of 28x28 for the training experiments, scaled as MNIST's usually are.
struct Digits {
  training::Examples training, test;
};
Digits digits_for(Run& run, std::int64_t images, std::int64_t test_images);

/// Standard error of the difference between two shares of n examples each.
double difference_error(double first, double second, std::int64_t n);

}  // namespace guardbit::experiments
