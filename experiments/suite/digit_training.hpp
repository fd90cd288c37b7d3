#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/training/data.hpp"

namespace guardbit::experiments {

class Run;

/// Generated digits of 28x28 for the training experiments, scaled as MNIST's usually are.
struct Digits {
  training::Examples training, test;
};
Digits digits_for(Run& run, std::int64_t images, std::int64_t test_images);

/// For each example 1 where its largest output is the label's, else 0.
std::vector<double> correct_examples(const training::Tensor& logits,
                                     const std::vector<std::int32_t>& labels);

/// Which share more of the same examples one network got right than another, and the standard error
/// of that: only examples that one of them alone got right tell them apart.
struct PairedDifference {
  double share = 0, error = 0;
};
PairedDifference paired_difference(std::span<const double> first, std::span<const double> second);

}  // namespace guardbit::experiments
