#include "experiments/training/data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/training_arithmetic.hpp"
#include "formats/files/idx.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::experiments::training {

Examples examples_of(const ByteImages& images, float mean, float deviation) {
  Examples x;
  x.inputs = zeros({images.count, images.height, images.width, 1});
  for (std::int64_t i = 0; i < x.inputs.size(); ++i)
    x.inputs[i] = (static_cast<float>(images.pixels[static_cast<std::size_t>(i)]) / 255.0F - mean) /
                  deviation;
  x.labels.assign(images.labels.begin(), images.labels.end());
  return x;
}

ByteImages read_images(const std::string& images, const std::string& labels) {
  const formats::Tensor pixels = formats::read_idx(images), numbers = formats::read_idx(labels);
  if (pixels.shape.size() != 3)
    throw formats::Error(formats::printable(images), "has no three dimensions: no images");
  if (numbers.shape.size() != 1 || numbers.shape[0] != pixels.shape[0])
    throw formats::Error(formats::printable(labels),
                         "does not hold one label for each of the images");
  ByteImages all{pixels.shape[0], pixels.shape[1], pixels.shape[2], {}, {}};
  const auto copy = [](const formats::Tensor& from, std::vector<std::uint8_t>& to) {
    to.resize(from.bytes.size());
    std::transform(from.bytes.begin(), from.bytes.end(), to.begin(),
                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  };
  copy(pixels, all.pixels);
  copy(numbers, all.labels);
  return all;
}

namespace {

/// Cosine and sine from basic operations, since libraries' differ: series of a 64th of the angle,
/// doubled six times.
std::pair<double, double> direction(double angle) {
  const double x = angle / 64, z = x * x;
  double sine = x * (1 - z / 6 * (1 - z / 20 * (1 - z / 42)));
  double cosine = 1 - z / 2 * (1 - z / 12 * (1 - z / 30 * (1 - z / 56)));
  for (int doubling = 0; doubling < 6; ++doubling) {
    const double next = cosine * cosine - sine * sine;
    sine = 2 * sine * cosine;
    cosine = next;
  }
  return {cosine, sine};
}

}  // namespace

Examples draw_spiral(std::int64_t count, std::int64_t classes, std::uint64_t seed, bool test) {
  const Draws draws(seed, test ? "spiral test" : "spiral");
  Examples x;
  x.inputs = zeros({count, 2});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i) * 8;
    const auto label = static_cast<std::int32_t>(i % classes);
    const double radius = draws.uniform(at);
    const auto [cosine, sine] =
        direction(4.0 * radius + 6.283185307179586 * label / static_cast<double>(classes) +
                  0.15 * draws.draw(Distribution::normal, at + 1));
    x.inputs[2 * i] = static_cast<float>(2 * radius * cosine);
    x.inputs[2 * i + 1] = static_cast<float>(2 * radius * sine);
    x.labels.push_back(label);
  }
  return x;
}

Examples draw_teacher(std::int64_t count, std::int64_t inputs, std::int64_t classes,
                      std::uint64_t seed, bool test) {
  constexpr std::int64_t hidden = 32;
  const Draws drawn(seed, "teacher"), numbers(seed, test ? "teacher test" : "teacher inputs");
  std::vector<double> weights(static_cast<std::size_t>(hidden * (inputs + classes)));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = drawn.draw(Distribution::normal, i);
  const auto weight = [&](std::int64_t i) { return weights[static_cast<std::size_t>(i)]; };
  Examples x;
  x.inputs = zeros({count, inputs});
  numbers.fill(Distribution::normal, x.inputs.values);
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<double, hidden> h{};
    for (std::int64_t j = 0; j < hidden; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < inputs; ++k)
        sum += weight(j * inputs + k) * static_cast<double>(x.inputs[i * inputs + k]);
      h.at(static_cast<std::size_t>(j)) = std::max(0.0, sum);
    }
    double best = 0;
    std::int32_t label = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < hidden; ++j)
        sum += weight(hidden * inputs + c * hidden + j) * h.at(static_cast<std::size_t>(j));
      if (c == 0 || sum > best) {
        best = sum;
        label = static_cast<std::int32_t>(c);
      }
    }
    x.labels.push_back(label);
  }
  return x;
}

Dataset read_text(const std::string& path, std::int64_t time) {
  const formats::MappedFile file = formats::map_file(path);
  const auto size = static_cast<std::int64_t>(file.bytes.size());
  const std::int64_t windows = (size - 1) / time;
  if (windows < 10)
    throw formats::Error(
        formats::printable(path),
        "is too short: at least " + std::to_string(10 * time + 1) + " characters are needed");
  std::array<std::int32_t, 256> code{};
  code.fill(-1);
  for (const std::byte b : file.bytes) code.at(std::to_integer<std::size_t>(b)) = 0;
  Dataset data;
  for (std::int32_t& c : code)
    if (c == 0) c = static_cast<std::int32_t>(data.classes++);
  const auto token = [&](std::int64_t i) {
    return code.at(std::to_integer<std::size_t>(file.bytes[static_cast<std::size_t>(i)]));
  };
  const auto take = [&](std::int64_t begin, std::int64_t end) {
    Examples x;
    x.inputs = zeros({end - begin, time});
    for (std::int64_t i = 0; i < x.inputs.size(); ++i) {
      x.inputs[i] = static_cast<float>(token(begin * time + i));
      x.labels.push_back(token(begin * time + i + 1));
    }
    return x;
  };
  const std::int64_t training = windows - windows / 10;
  data.training = take(0, training);
  data.test = take(training, windows);
  return data;
}

namespace {

Examples gathered(const Examples& from, const std::int64_t* indices, std::int64_t count) {
  Examples x;
  Dimensions shape = from.inputs.shape;
  const std::int64_t width = from.inputs.size() / shape[0];
  const std::int64_t labels = std::ssize(from.labels) / shape[0];
  shape[0] = count;
  x.inputs = zeros(shape, from.inputs.format);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(from.inputs.values.begin() + indices[i] * width, width,
                x.inputs.values.begin() + i * width);
    x.labels.insert(x.labels.end(), from.labels.begin() + indices[i] * labels,
                    from.labels.begin() + (indices[i] + 1) * labels);
  }
  return x;
}

}  // namespace

Examples part_of(const Examples& examples, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), begin);
  return gathered(examples, indices.data(), count);
}

Batches::Batches(const Examples& examples, std::int64_t size, std::uint64_t seed,
                 std::string_view where)
    : examples_(examples), size_(size), per_epoch_(examples.count() / size), seed_(seed) {
  if (per_epoch_ == 0)
    throw formats::Error(std::string(where), "a batch of " + std::to_string(size) +
                                                 " is more than the " +
                                                 std::to_string(examples.count()) + " examples");
}

Examples Batches::at(std::int64_t step) {
  const std::int64_t epoch = step / per_epoch_;
  if (epoch != epoch_) {
    epoch_ = epoch;
    order_.resize(static_cast<std::size_t>(examples_.count()));
    std::iota(order_.begin(), order_.end(), 0);
    // Fisher and Yates, with numbers that depend on the seed and the epoch alone.
    const Draws draws(seed_, "epoch " + std::to_string(epoch));
    for (std::size_t i = order_.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>(draws.uniform(static_cast<std::uint64_t>(i)) *
                                              static_cast<double>(i));
      std::swap(order_[i - 1], order_[j]);
    }
  }
  return gathered(examples_, order_.data() + step % per_epoch_ * size_, size_);
}

}  // namespace guardbit::experiments::training
