#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/machine.hpp"
#include "emulator/operators/operator_tensor.hpp"

// Numbers that the CUDA generator gives: Philox 4x32-10, a stream for each thread.
namespace guardbit::emulator::operators {

/// A generator before a call.
struct GeneratorState {
  std::uint64_t seed = 0;
  /// as PyTorch counts it: words of each thread, a multiple of 4
  std::uint64_t offset = 0;
};

struct Draws {
  GeneratorState state;
  Machine machine = {};
};

/// Uniform in [from, to) and normal numbers, rounded to a type; FP64 has numbers of its own.
Tensor uniform(const formats::Format& type, const Dimensions& shape, double from, double to,
               const Draws& draws);
Tensor normal(const formats::Format& type, const Dimensions& shape, double mean, double deviation,
              const Draws& draws);
/// Integers in [low, high), for ranges below 2^28; nothing for others, nor where a floating type
/// has not all of them.
std::optional<Tensor> integers(const formats::Format& type, const Dimensions& shape,
                               std::int64_t low, std::int64_t high, const Draws& draws);
/// The integers below `count` in random order: sorted by random keys of 32 bits, as PyTorch does
/// for up to about 30,000, equal ones shuffled. Nothing for more.
std::optional<Tensor> permutation(const formats::Format& type, std::int64_t count,
                                  const Draws& draws);
/// 1 with the probability that each element of `input` says.
Tensor bernoulli(const Tensor& input, const Draws& draws);

/// 1 with one probability for all.
Tensor bernoulli(const formats::Format& type, const Dimensions& shape, double probability,
                 const Draws& draws);
/// Exponentially distributed numbers above 0.
Tensor exponential(const formats::Format& type, const Dimensions& shape, double rate,
                   const Draws& draws);

/// Powers of e to a normal number's; FP32 and 16 bits.
Tensor log_normal(const formats::Format& type, const Dimensions& shape, double mean,
                  double deviation, const Draws& draws);
Tensor cauchy(const formats::Format& type, const Dimensions& shape, double median, double width,
              const Draws& draws);
/// How many trials until one succeeds.
Tensor geometric(const formats::Format& type, const Dimensions& shape, double probability,
                 const Draws& draws);
/// Weights in rows, each divided by its row's sum: threads of a block, 32 lanes by descending
/// distances.
Tensor shares_of_rows(const Tensor& weights);
/// `samples` places of each row with replacement. `shares` add up to 1, `sums` are their running
/// sums.
Tensor places_with_replacement(const Tensor& shares, const Tensor& sums, std::int64_t samples,
                               const Draws& draws);
/// By how much such a call moves the offset on.
inline constexpr std::uint64_t drawn_with_replacement = 4;

struct Dropped {
  Tensor output, mask;
};
/// Threads take vectors in the order of memory where that has no gaps; single elements in the order
/// of the dimensions.
Dropped dropout(const Tensor& input, double probability, const Draws& draws);
Tensor dropout_gradient(const Tensor& gradient, const Tensor& mask, double scale);

struct NoisyRelu {
  Tensor output, noise;
};
/// What is not above 0 times a number that is uniform in [lower, upper): rrelu in training.
NoisyRelu noisy_relu(const Tensor& input, double lower, double upper, const Draws& draws);

/// By how much a call moves the generator's offset on. Four words give four numbers, or two of
/// FP64.
std::uint64_t increment_of_draws(std::int64_t count, const Machine& machine,
                                 std::int64_t numbers_of_block = 4);
std::uint64_t increment_of_dropout(std::int64_t count, const Machine& machine);
std::uint64_t increment_of_permutation(std::int64_t count, const Machine& machine);

}  // namespace guardbit::emulator::operators
