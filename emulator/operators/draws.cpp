#include "emulator/operators/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "emulator/functions/unit/special_function_forms.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reductions.hpp"
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

std::array<float, 4> units_of(const Words& words) {
  return {unit_of(words[0]), unit_of(words[1]), unit_of(words[2]), unit_of(words[3])};
}

/// Two normal numbers of two words, by Box and Muller.
std::array<float, 2> normal_pair(std::uint32_t x, std::uint32_t y) {
  const float u = unit_of(x);
  const float v = std::fma(static_cast<float>(y), 0x1.921fb6p-30F, 0x1.921fb6p-31F);
  const float radius = std::sqrt(-2.0F * log_of(u));
  return {mufu::sin_approx(HostNumber(v)).number() * radius,
          mufu::cos_approx(HostNumber(v)).number() * radius};
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
  if (type == formats::fp64) {
    std::vector<double> all = drawn(shape, draws, [](const Words& words) -> std::array<double, 2> {
      return {wide_unit_of(words[0], words[1]), wide_unit_of(words[2], words[3])};
    });
    for (double& x : all) {
      const double number = std::fma(x == 1 ? 0 : x, to - from, from);
      x = number == to ? from : number;
    }
    return tensor_of_doubles(shape, all);
  }
  const auto low = rounded_to(type, static_cast<float>(from));
  const float range = rounded_to(type, static_cast<float>(to)) - low;
  std::vector<float> all = drawn(shape, draws, units_of);
  for (float& x : all) {
    // What rounds to the upper end becomes the lower one.
    const float unit = x == 1.0F ? 0.0F : x;
    const float number = rounded_to(type, std::fma(unit, range, low));
    x = number == low + range ? low : number;
  }
  return tensor_of_numbers(type, shape, all);
}

Tensor normal(const formats::Format& type, const Dimensions& shape, double mean, double deviation,
              const Draws& draws) {
  std::vector<float> all = drawn(shape, draws, [](const Words& words) -> std::array<float, 4> {
    const auto [a, b] = normal_pair(words[0], words[1]);
    const auto [c, d] = normal_pair(words[2], words[3]);
    return {a, b, c, d};
  });
  const auto scale = static_cast<float>(deviation), shift = static_cast<float>(mean);
  for (float& x : all) x = std::fma(x, scale, shift);
  return tensor_of_numbers(type, shape, all);
}

std::optional<Tensor> integers(const formats::Format& type, const Dimensions& shape,
                               std::int64_t low, std::int64_t high, const Draws& draws) {
  const std::int64_t range = high - low;
  if (range < 1 || range >= std::int64_t{1} << 28) return std::nullopt;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  const std::int64_t threads = threads_of(std::max<std::int64_t>(count, 1), draws.machine);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t step = i / threads;
    const Words words = words_of(draws.state, i % threads, step / words_of_block);
    const std::uint32_t word = words[static_cast<std::size_t>(step % words_of_block)];
    all[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>(word % static_cast<std::uint32_t>(range)) + low;
  }
  return tensor_of_integers(type, shape, all);
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

Tensor bernoulli(const Tensor& input, const Draws& draws) {
  const NumberView probabilities(input);
  std::vector<float> all(probabilities.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Words words = words_of(draws.state, static_cast<std::int64_t>(i) / words_of_block, 0);
    all[i] = unit_of(words[i % 4]) <= probabilities[i] ? 1.0F : 0.0F;
  }
  return tensor_of_numbers(input.type, input.shape, all);
}

Tensor bernoulli(const formats::Format& type, const Dimensions& shape, double probability,
                 const Draws& draws) {
  std::vector<float> all = drawn(shape, draws, units_of);
  const auto bound = static_cast<float>(probability);
  for (float& x : all) x = x < bound ? 1.0F : 0.0F;
  return tensor_of_numbers(type, shape, all);
}

Tensor exponential(const formats::Format& type, const Dimensions& shape, double rate,
                   const Draws& draws) {
  std::vector<float> all = drawn(shape, draws, units_of);
  const float factor = -1.0F / static_cast<float>(rate);
  // Numbers near 1 have a logarithm that is not 0.
  constexpr float least = 0x1p-24F;
  for (float& x : all) {
    const float logarithm =
        x >= 1.0F - least ? -least : cuda_math::intrinsic_logf(HostNumber(x)).number();
    x = factor * logarithm;
  }
  return tensor_of_numbers(type, shape, all);
}

Dropped dropout(const Tensor& input, double probability, const Draws& draws) {
  const NumberView numbers(input);
  const std::int64_t count = input.count();
  const auto kept = static_cast<float>(1.0 - probability);
  const float scale = 1.0F / kept;
  // A thread takes 16 bytes of neighbours where those begin at such addresses.
  std::int64_t vector = 16 / input.element_bytes();
  while (vector > 1 && (count % vector != 0 ||
                        !is_aligned(input, static_cast<int>(vector) * input.element_bytes())))
    vector /= 2;
  if (vector < 2) vector = 1;
  const std::int64_t blocks_of_vector = formats::divided_up(vector, words_of_block);
  const std::int64_t threads = threads_of(count, draws.machine);
  std::vector<float> results(numbers.size());
  std::vector<std::int64_t> mask(numbers.size());
  const std::vector<std::int64_t> places = places_in_memory(input);
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
    results[at] = numbers[at] * (is_kept ? 1.0F : 0.0F) * scale;
  }
  return {tensor_of_numbers(input.type, input.shape, stride_of_result(input), results),
          tensor_of_integers(formats::b1, input.shape, mask)};
}

Tensor dropout_gradient(const Tensor& gradient, const Tensor& mask, double scale) {
  if (mask.shape != gradient.shape) throw UnknownShape{"a mask of another shape"};
  const NumberView gradients(gradient);
  const std::vector<std::int64_t> kept = integers_of(mask);
  std::vector<float> results(gradients.size());
  const auto factor = static_cast<float>(scale);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = ((kept[i] != 0 ? 1.0F : 0.0F) * gradients[i]) * factor;
  return tensor_of_numbers(gradient.type, gradient.shape, stride_of_result(gradient), results);
}

}  // namespace guardbit::emulator::operators
