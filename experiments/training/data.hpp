#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/training_tensor.hpp"

namespace guardbit::experiments::training {

/// Inputs [examples, ...] and a label for each row that the network gives: one for each example,
/// or for texts one for each of its places.
struct Examples {
  Tensor inputs;
  std::vector<std::int32_t> labels;

  std::int64_t count() const { return inputs.shape.empty() ? 0 : inputs.shape[0]; }
};

struct Dataset {
  Examples training, test;
  std::int64_t classes = 0;
};

/// Grey images and labels in bytes, as MNIST's files hold them.
struct ByteImages {
  std::int64_t count = 0, height = 28, width = 28;
  std::vector<std::uint8_t> pixels, labels;
};

/// Digits 0 to 9 as bitmaps, stretched, sheared, moved and blurred at random, with noise: image i
/// depends on the seed and i alone.
ByteImages draw_digits(std::int64_t count, std::uint64_t seed);

/// The four files of MNIST's names (train-images-idx3-ubyte, ...) in a folder: 28x28 digits.
void write_digits(const std::string& folder, std::int64_t training, std::int64_t test,
                  std::uint64_t seed);

/// Images [n, height, width, 1] as (byte / 255 - mean) / deviation, each operation rounded to FP32.
Examples examples_of(const ByteImages& images, float mean, float deviation);

/// Two IDX files. formats::Error when they do not belong together.
ByteImages read_images(const std::string& images, const std::string& labels);

/// Points (x, y) on `classes` arms of a spiral, with noise.
Examples draw_spiral(std::int64_t count, std::int64_t classes, std::uint64_t seed, bool test);

/// Random inputs, labelled by the largest output of a random network with one hidden layer, in
/// FP64.
Examples draw_teacher(std::int64_t count, std::int64_t inputs, std::int64_t classes,
                      std::uint64_t seed, bool test);

/// A text in bytes, as windows of `time` characters that do not overlap, each labelled by the
/// character that follows; the last tenth is the test part.
Dataset read_text(const std::string& path, std::int64_t time);

/// The examples of a step: each epoch goes through all of them in an order of its own, which the
/// seed gives; what does not fill a batch is left out.
class Batches {
 public:
  /// formats::Error, beginning with `where`, when there are fewer examples than a batch has.
  Batches(const Examples& examples, std::int64_t size, std::uint64_t seed, std::string_view where);

  std::int64_t per_epoch() const { return per_epoch_; }
  Examples at(std::int64_t step);

 private:
  const Examples& examples_;
  std::int64_t size_, per_epoch_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

/// Consecutive examples [begin, begin + count).
Examples part_of(const Examples& examples, std::int64_t begin, std::int64_t count);

}  // namespace guardbit::experiments::training
