#include "emulator/operators/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/functions/cuda/cuda_doubles.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/random.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t draw_threads = 256, words_of_block = 4;

using Words = std::array<std::uint32_t, 4>;

/// The block of four words number `block` after the state, of one thread.
Words words_of(const GeneratorState& state, std::int64_t thread, std::int64_t block) {
  const std::uint64_t place = state.offset / 4 + static_cast<std::uint64_t>(block);
  const auto subsequence = static_cast<std::uint64_t>(thread);
  return formats::philox4x32(
      {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
       static_cast<std::uint32_t>(subsequence), static_cast<std::uint32_t>(subsequence >> 32)},
      {static_cast<std::uint32_t>(state.seed), static_cast<std::uint32_t>(state.seed >> 32)});
}

std::int64_t threads_of(std::int64_t count, const Machine& machine) {
  const std::int64_t most =
      std::int64_t{machine.multiprocessors} * (machine.threads_per_multiprocessor / draw_threads);
  return draw_threads * std::min(formats::divided_up(count, draw_threads), most);
}

/// (word + 1/2) 2^-32, in (0, 1].
float unit_of(std::uint32_t word) { return std::fma(static_cast<float>(word), 0x1p-32F, 0x1p-33F); }

/// (z + 1/2) 2^-53 of 53 bits, as cuRAND mixes them from two words, in (0, 1].
double wide_unit_of(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t mixed = std::uint64_t{low} ^ std::uint64_t{high} << 21;
  return std::fma(static_cast<double>(mixed), 0x1p-53, 0x1p-54);
}

/// Element (n l + i) T + t takes number i of the n that block l of thread t gives, of T threads in
/// all.
template <class FromWords>
auto drawn(const Dimensions& shape, const Draws& draws, const FromWords& from_words) {
  using Numbers = std::invoke_result_t<FromWords, Words>;
  constexpr auto numbers_of_block = static_cast<std::int64_t>(std::tuple_size_v<Numbers>);
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<typename Numbers::value_type> all(static_cast<std::size_t>(count));
  if (count == 0) return all;
  const std::int64_t threads = threads_of(count, draws.machine);
  for (std::int64_t block = 0; block * numbers_of_block * threads < count; ++block) {
    for (std::int64_t t = 0; t < threads; ++t) {
      const std::int64_t first = block * numbers_of_block * threads + t;
      if (first >= count) break;
      const Numbers numbers = from_words(words_of(draws.state, t, block));
      for (std::int64_t i = 0; i < numbers_of_block && first + i * threads < count; ++i)
        all[static_cast<std::size_t>(first + i * threads)] = numbers[static_cast<std::size_t>(i)];
    }
  }
  return all;
}

/// What a block of four words gives: four numbers of FP32 or two of FP64, in (0, 1].
template <class Number>
auto units_of(const Words& words) {
  if constexpr (std::is_same_v<Number, double>) {
    return std::array{wide_unit_of(words[0], words[1]), wide_unit_of(words[2], words[3])};
  } else {
    return std::array{unit_of(words[0]), unit_of(words[1]), unit_of(words[2]), unit_of(words[3])};
  }
}

/// Numbers in (0, 1] that become others one by one.
template <class Number, class Change>
Tensor changed_units(const formats::Format& type, const Dimensions& shape, const Draws& draws,
                     const Change& change) {
  std::vector<Number> all = drawn(shape, draws, units_of<Number>);
  for (Number& x : all) x = change(x);
  return tensor_of_numbers(type, shape, all);
}

/// The same in the arithmetic of the type: FP64 or FP32.
template <class Change>
Tensor changed_units(const formats::Format& type, const Dimensions& shape, const Draws& draws,
                     const Change& change) {
  return type == formats::fp64 ? changed_units<double>(type, shape, draws, change)
                               : changed_units<float>(type, shape, draws, change);
}

/// Two normal numbers of two words, by Box and Muller.
std::array<float, 2> normal_pair(std::uint32_t x, std::uint32_t y) {
  const float u = unit_of(x);
  const float v = std::fma(static_cast<float>(y), 0x1.921fb6p-30F, 0x1.921fb6p-31F);
  const float radius = std::sqrt(-2.0F * log_of(u));
  return {mufu::sin_approx(HostNumber(v)).number() * radius,
          mufu::cos_approx(HostNumber(v)).number() * radius};
}

/// The same of FP64.
std::array<double, 2> wide_normal_pair(const Words& words) {
  const std::uint64_t mixed = std::uint64_t{words[2]} ^ std::uint64_t{words[3]} << 21;
  const double turns = std::fma(static_cast<double>(mixed), 0x1p-52, 0x1p-53);
  const double radius = std::sqrt(-2.0 * cuda_math::log(wide_unit_of(words[0], words[1])));
  const auto [sine, cosine] = cuda_math::sin_cos_pi(turns);
  return {sine * radius, cosine * radius};
}

/// Elements whose keys are equal, by the words of the thread of the first of them: from the last
/// one on each changes places with one of those up to it.
void shuffle(std::span<std::int64_t> equal, std::int64_t thread, const GeneratorState& state) {
  std::int64_t drawn_words = 0;
  for (std::size_t i = equal.size() - 1; i > 0; --i, ++drawn_words) {
    const Words words = words_of(state, thread, drawn_words / words_of_block);
    const std::uint32_t word = words[static_cast<std::size_t>(drawn_words % words_of_block)];
    std::swap(equal[i], equal[word % (i + 1)]);
  }
}

}  // namespace

std::uint64_t increment_of_draws(std::int64_t count, const Machine& machine,
                                 std::int64_t numbers_of_block) {
  const std::int64_t threads = threads_of(count, machine);
  return count == 0
             ? 0
             : static_cast<std::uint64_t>(((count - 1) / (threads * numbers_of_block) + 1) * 4);
}

std::uint64_t increment_of_dropout(std::int64_t count, const Machine& machine) {
  return increment_of_draws(count, machine);
}

Tensor uniform(const formats::Format& type, const Dimensions& shape, double from, double to,
               const Draws& draws) {
  return changed_units(type, shape, draws, [&]<class Number>(Number unit) {
    const InType in_type{type};
    const Number low = in_type(static_cast<Number>(from)), high = in_type(static_cast<Number>(to));
    // What rounds to the upper end becomes the lower one.
    const Number number = in_type(std::fma(unit, in_type(high - low), low));
    return number == high ? low : number;
  });
}

Tensor normal(const formats::Format& type, const Dimensions& shape, double mean, double deviation,
              const Draws& draws) {
  const auto scaled = [&]<class Number>(std::vector<Number> all) {
    for (Number& x : all)
      x = std::fma(x, static_cast<Number>(deviation), static_cast<Number>(mean));
    return tensor_of_numbers(type, shape, all);
  };
  if (type == formats::fp64) return scaled(drawn(shape, draws, wide_normal_pair));
  return scaled(drawn(shape, draws, [](const Words& words) -> std::array<float, 4> {
    const auto [a, b] = normal_pair(words[0], words[1]);
    const auto [c, d] = normal_pair(words[2], words[3]);
    return {a, b, c, d};
  }));
}

namespace {

/// Integers up to this one are all there in a floating type.
std::int64_t most_exact(const formats::Format& type) {
  if (type == formats::fp16) return 1 << 11;
  if (type == formats::bf16) return 1 << 8;
  return type == formats::fp32 ? 1 << 24 : std::int64_t{1} << 53;
}

Tensor tensor_of_whole(const formats::Format& type, const Dimensions& shape,
                       std::span<const std::int64_t> numbers) {
  if (type == formats::fp64)
    return tensor_of_doubles(shape, std::vector<double>(numbers.begin(), numbers.end()));
  if (is_working_type(type))
    return tensor_of_numbers(type, shape, std::vector<float>(numbers.begin(), numbers.end()));
  return tensor_of_integers(type, shape, numbers);
}

}  // namespace

std::optional<Tensor> integers(const formats::Format& type, const Dimensions& shape,
                               std::int64_t low, std::int64_t high, const Draws& draws) {
  const std::int64_t range = high - low;
  if (range < 1 || range >= std::int64_t{1} << 28) return std::nullopt;
  const bool is_floating = type == formats::fp64 || is_working_type(type);
  if (is_floating && (low < -most_exact(type) || high > most_exact(type))) return std::nullopt;
  const std::vector<std::int64_t> all =
      drawn(shape, draws, [&](const Words& words) -> std::array<std::int64_t, 4> {
        const auto number = [&](std::uint32_t word) {
          return static_cast<std::int64_t>(word % static_cast<std::uint32_t>(range)) + low;
        };
        return {number(words[0]), number(words[1]), number(words[2]), number(words[3])};
      });
  return tensor_of_whole(type, shape, all);
}

std::uint64_t increment_of_permutation(std::int64_t count, const Machine& machine) {
  if (count == 0) return 0;
  // The keys, then a word for each element, in fours.
  return increment_of_draws(count, machine) +
         static_cast<std::uint64_t>(formats::divided_up(count, words_of_block) * words_of_block);
}

std::optional<Tensor> permutation(const formats::Format& type, std::int64_t count,
                                  const Draws& draws) {
  // Keys are wide enough for all to differ with a probability of 0.9.
  const auto n = static_cast<double>(count);
  const int bits =
      static_cast<int>(std::ceil(std::log2(n - (6 * n * n + 1) / (std::log(0.9) * 12))));
  if (count < 0 || bits > 32 || count > threads_of(count, draws.machine)) return std::nullopt;
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const Words words = words_of(draws.state, i, 0);
    const std::uint64_t word = std::uint64_t{words[0]} << 32 | words[1];
    keys[static_cast<std::size_t>(i)] = word % 0xFFFFFFFFU & ((std::uint64_t{1} << bits) - 1);
  }
  std::vector<std::int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int64_t i) { return keys[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, {}, key);
  const GeneratorState next = {draws.state.seed,
                               draws.state.offset + increment_of_draws(count, draws.machine)};
  for (std::size_t at = 0; at < order.size();) {
    std::size_t end = at + 1;
    while (end < order.size() && key(order[end]) == key(order[at])) ++end;
    shuffle(std::span(order).subspan(at, end - at), static_cast<std::int64_t>(at), next);
    at = end;
  }
  return tensor_of_integers(type, {count}, order);
}

namespace {

template <class Number>
Tensor bernoulli_in(const Tensor& input, const Draws& draws) {
  const ViewOf<Number> probabilities(input);
  std::vector<Number> all(probabilities.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Words words = words_of(draws.state, static_cast<std::int64_t>(i) / words_of_block, 0);
    all[i] = unit_of(words[i % 4]) <= probabilities[i] ? 1 : 0;
  }
  return tensor_of_numbers(input.type, input.shape, all);
}

}  // namespace

Tensor bernoulli(const Tensor& input, const Draws& draws) {
  return input.type == formats::fp64 ? bernoulli_in<double>(input, draws)
                                     : bernoulli_in<float>(input, draws);
}

Tensor bernoulli(const formats::Format& type, const Dimensions& shape, double probability,
                 const Draws& draws) {
  return changed_units(type, shape, draws, [&]<class Number>(Number unit) -> Number {
    return unit < static_cast<Number>(probability) ? 1 : 0;
  });
}

Tensor exponential(const formats::Format& type, const Dimensions& shape, double rate,
                   const Draws& draws) {
  return changed_units(type, shape, draws, [&]<class Number>(Number unit) {
    // Numbers near 1 have a logarithm that is not 0.
    constexpr Number least = std::numeric_limits<Number>::epsilon() / 2;
    const Number factor = -1 / static_cast<Number>(rate);
    if (unit >= 1 - least) return factor * -least;
    if constexpr (std::is_same_v<Number, double>) {
      return factor * cuda_math::log(unit);
    } else {
      return factor * cuda_math::intrinsic_logf(HostNumber(unit)).number();
    }
  });
}

Tensor log_normal(const formats::Format& type, const Dimensions& shape, double mean,
                  double deviation, const Draws& draws) {
  std::vector<float> all = numbers_of(normal(formats::fp32, shape, mean, deviation, draws));
  for (float& x : all) x = cuda_math::intrinsic_expf(HostNumber(x)).number();
  return tensor_of_numbers(type, shape, all);
}

Tensor cauchy(const formats::Format& type, const Dimensions& shape, double median, double width,
              const Draws& draws) {
  return changed_units<float>(type, shape, draws, [&](float unit) {
    constexpr float least = std::numeric_limits<float>::epsilon();
    const float angle = std::numbers::pi_v<float> * (std::clamp(unit, least, 1 - least) - 0.5F);
    return std::fma(static_cast<float>(width),
                    cuda_math::intrinsic_tanf(HostNumber(angle)).number(),
                    static_cast<float>(median));
  });
}

Tensor geometric(const formats::Format& type, const Dimensions& shape, double probability,
                 const Draws& draws) {
  const auto logarithm = [](float x) { return cuda_math::intrinsic_logf(HostNumber(x)).number(); };
  const float of_failure = logarithm(1.0F - static_cast<float>(probability));
  return changed_units<float>(type, shape, draws,
                              [&](float unit) { return std::ceil(logarithm(unit) / of_failure); });
}

Tensor shares_of_rows(const Tensor& weights) {
  constexpr std::size_t most_threads = 1024;
  std::vector<float> all = numbers_of(weights);
  const auto size = static_cast<std::size_t>(weights.shape.back());
  const std::size_t threads =
      std::min(most_threads, (size + warp_lanes - 1) / warp_lanes * warp_lanes);
  for (std::size_t begin = 0; begin < all.size(); begin += size) {
    const std::span<float> row = std::span(all).subspan(begin, size);
    std::vector<float> sums(threads);
    for (std::size_t i = 0; i < size; ++i) sums[i % threads] += row[i];
    const float sum = sum_of_two_stages(sums);
    if (sum > 0) {
      for (float& x : row) x /= sum;
    }
  }
  return tensor_of_numbers(weights.type, weights.shape, all);
}

Tensor places_with_replacement(const Tensor& shares, const Tensor& sums, std::int64_t samples,
                               const Draws& draws) {
  constexpr std::int64_t threads = 128;
  const std::vector<float> parts = numbers_of(shares), running = numbers_of(sums);
  const std::int64_t size = shares.shape.back(), rows = shares.count() / size;
  const std::int64_t of_row = formats::rounded_up(samples, threads);
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = static_cast<std::size_t>(row * size), count = static_cast<std::size_t>(size);
    const std::span own = std::span(running).subspan(begin, count);
    for (std::int64_t k = 0; k < samples; ++k) {
      const float unit = unit_of(words_of(draws.state, row * of_row + k, 0)[0]);
      auto place =
          std::min<std::int64_t>(std::ranges::lower_bound(own, unit) - own.begin(), size - 1);
      while (place > 0 && parts[begin + static_cast<std::size_t>(place)] == 0) --place;
      places.push_back(place);
    }
  }
  Dimensions shape = shares.shape;
  shape.back() = samples;
  return tensor_of_integers(formats::int64, shape, places);
}

namespace {

/// How many neighbours a thread takes at once: as many as lie together from such an address on,
/// where the input has no gaps.
std::int64_t vector_of_dropout(const Tensor& input) {
  if (!has_no_gaps(input)) return 1;
  std::int64_t vector = 16 / input.element_bytes();
  while (!is_aligned(input, static_cast<int>(vector) * input.element_bytes())) vector /= 2;
  while (input.count() % vector != 0) vector /= 2;
  return vector;
}

template <class Number>
Dropped dropout_in(const Tensor& input, double probability, const Draws& draws) {
  const ViewOf<Number> numbers(input);
  const std::int64_t count = input.count(), vector = vector_of_dropout(input);
  const auto kept = static_cast<Number>(1.0 - probability);
  const Number scale = 1 / kept;
  const std::int64_t blocks_of_vector = formats::divided_up(vector, words_of_block);
  const std::int64_t threads = threads_of(count, draws.machine);
  std::vector<Number> results(numbers.size());
  std::vector<std::int64_t> mask(numbers.size());
  // Vectors are taken in the order of memory, single elements in that of the dimensions.
  const std::vector<std::int64_t> places =
      vector > 1 ? places_in_memory(input) : std::vector<std::int64_t>();
  for (std::int64_t element = 0; element < count; ++element) {
    const auto at = static_cast<std::size_t>(element);
    const std::int64_t i = places.empty() ? element : places[at];
    std::int64_t thread = 0, block = 0, word = 0;
    if (vector > 1) {
      const std::int64_t group = i / vector;
      thread = group % threads;
      block = group / threads * blocks_of_vector + i % vector / words_of_block;
      word = i % vector % words_of_block;
    } else {
      thread = i % threads;
      block = i / threads / words_of_block;
      word = i / threads % words_of_block;
    }
    const float drawn =
        unit_of(words_of(draws.state, thread, block)[static_cast<std::size_t>(word)]);
    const bool is_kept = drawn < kept;
    mask[at] = is_kept ? 1 : 0;
    results[at] = numbers[at] * static_cast<Number>(is_kept ? 1 : 0) * scale;
  }
  Tensor output = tensor_of_numbers(input.type, input.shape, results);
  Tensor of_mask = tensor_of_integers(formats::b1, input.shape, mask);
  output.stride = of_mask.stride = dense_stride_like(input);
  return {std::move(output), std::move(of_mask)};
}

template <class Number>
Tensor dropout_gradient_in(const Tensor& gradient, const Tensor& mask, double scale) {
  const ViewOf<Number> gradients(gradient);
  const std::vector<std::int64_t> kept = integers_of(mask);
  std::vector<Number> results(gradients.size());
  const auto factor = static_cast<Number>(scale);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = (static_cast<Number>(kept[i] != 0 ? 1 : 0) * gradients[i]) * factor;
  Tensor result = tensor_of_numbers(gradient.type, gradient.shape, results);
  result.stride = dense_stride_like(gradient);
  return result;
}

}  // namespace

NoisyRelu noisy_relu(const Tensor& input, double lower, double upper, const Draws& draws) {
  const double range = upper - lower;
  const auto noisy = [&]<class Number>(Number) -> NoisyRelu {
    const ViewOf<Number> numbers(input);
    std::vector<Number> factors = drawn(input.shape, draws, units_of<Number>);
    std::vector<Number> results(factors.size());
    for (std::size_t i = 0; i < factors.size(); ++i) {
      // The factor is computed in FP64 and stored in the type.
      if constexpr (std::is_same_v<Number, double>) {
        factors[i] = std::fma(factors[i], range, lower);
      } else {
        const double unit = rounded_to(input.type, factors[i]);
        factors[i] = rounded_to(input.type, static_cast<float>(std::fma(unit, range, lower)));
      }
      const bool is_above = !(numbers[i] <= 0);
      if (is_above) factors[i] = 1;
      results[i] = is_above ? numbers[i] : numbers[i] * factors[i];
    }
    return {tensor_of_numbers(input.type, input.shape, results),
            tensor_of_numbers(input.type, input.shape, factors)};
  };
  return input.type == formats::fp64 ? noisy(double{}) : noisy(float{});
}

Dropped dropout(const Tensor& input, double probability, const Draws& draws) {
  return input.type == formats::fp64 ? dropout_in<double>(input, probability, draws)
                                     : dropout_in<float>(input, probability, draws);
}

Tensor dropout_gradient(const Tensor& gradient, const Tensor& mask, double scale) {
  if (mask.shape != gradient.shape) throw UnknownShape{"a mask of another shape"};
  return gradient.type == formats::fp64 ? dropout_gradient_in<double>(gradient, mask, scale)
                                        : dropout_gradient_in<float>(gradient, mask, scale);
}

}  // namespace guardbit::emulator::operators
