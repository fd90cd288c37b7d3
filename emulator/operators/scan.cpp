#include "emulator/operators/scan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/rows.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

/// One step of a scan, rounded to the tensor's type.
template <class Number>
struct Step {
  Running operation;
  InType stored;

  Number identity() const {
    if (operation == Running::sum) return 0;
    return operation == Running::product ? 1 : -std::numeric_limits<Number>::infinity();
  }
  Number operator()(Number a, Number b) const {
    switch (operation) {
      case Running::sum: return stored(a + b);
      case Running::product: return stored(a * b);
      case Running::log_sum_exp: return stored(log_added(a, b));
    }
    return 0;
  }

 private:
  static Number log_added(Number a, Number b) {
    if (a != a || b != b) return a != a ? a : b;
    const Number least = std::min(a, b), greatest = std::max(a, b);
    if (least == greatest && !std::isfinite(least)) return a;
    return log_of_next(exp_of(least - greatest)) + greatest;
  }
  static float log_of_next(float x) { return cuda_math::log1pf(HostNumber(x)).number(); }
  static double log_of_next(double x) { return cuda_math::log1p(x); }
};

/// Binary logarithm of the least power of two that is not below n.
std::uint32_t log_of_size(std::int64_t n) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

/// Logarithm of the threads of a row. Of more rows than 2^9 n the difference wraps, as it does in
/// the library, and gives the most.
std::uint32_t log_of_threads(std::int64_t size, std::int64_t rows) {
  const std::uint32_t difference = 9U + log_of_size(size) - log_of_size(rows);
  return std::clamp(difference / 2, 4U, 9U);
}

/// A row in chunks of twice as many elements as threads, each by Sklansky's tree; the first element
/// of a chunk takes the total of those before it.
template <class Number>
void scan_row(const Step<Number>& step, std::uint32_t log_threads, std::span<Number> row) {
  const std::size_t threads = std::size_t{1} << log_threads;
  std::vector<Number> chunk(2 * threads);
  Number total = step.identity();
  for (std::size_t begin = 0; begin < row.size(); begin += chunk.size()) {
    const std::size_t count = std::min(chunk.size(), row.size() - begin);
    std::ranges::fill(chunk, step.identity());
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(begin), count, chunk.begin());
    chunk[0] = step(chunk[0], total);
    for (std::uint32_t level = 0; level <= log_threads; ++level) {
      const std::size_t half = std::size_t{1} << level;
      for (std::size_t t = 0; t < threads; ++t) {
        const std::size_t middle = ((t >> level) << (level + 1)) | half;
        Number& later = chunk[middle + t % half];
        later = step(later, chunk[middle - 1]);
      }
    }
    std::copy_n(chunk.begin(), count, row.begin() + static_cast<std::ptrdiff_t>(begin));
    total = chunk.back();
  }
}

/// A tile of a scan over blocks: 128 threads with some elements each. `before` is the sum of the
/// tiles before it. Gives the tile's own sum.
template <class Number>
Number scan_tile(const Step<Number>& step, std::size_t items, std::optional<Number> before,
                 std::span<Number> row) {
  constexpr std::size_t threads = 128, lanes = 32;
  std::vector<Number> totals(threads, step.identity());
  const std::size_t used = (row.size() + items - 1) / items;
  for (std::size_t t = 0; t < used; ++t) {
    const auto own = row.subspan(t * items, std::min(items, row.size() - t * items));
    totals[t] = own[0];
    for (std::size_t i = 1; i < own.size(); ++i) totals[t] = step(totals[t], own[i]);
  }
  std::vector<Number> inclusive = totals;
  for (std::size_t distance = 1; distance < lanes; distance *= 2) {
    const std::vector<Number> last = inclusive;
    for (std::size_t t = 0; t < threads; ++t) {
      if (t % lanes >= distance) inclusive[t] = step(last[t - distance], last[t]);
    }
  }
  Number of_warps = 0;
  for (std::size_t t = 0; t < used; ++t) {
    const std::size_t warp = t / lanes, lane = t % lanes;
    if (lane == 0 && warp > 0) {
      const Number last = inclusive[t - 1];
      of_warps = warp == 1 ? last : step(of_warps, last);
    }
    const auto own = row.subspan(t * items, std::min(items, row.size() - t * items));
    Number prefix = 0;
    if (lane > 0) prefix = warp > 0 ? step(of_warps, inclusive[t - 1]) : inclusive[t - 1];
    if (lane == 0) prefix = of_warps;
    if (before) prefix = t > 0 ? step(*before, prefix) : *before;
    if (t > 0 || before) own[0] = step(prefix, own[0]);
    for (std::size_t i = 1; i < own.size(); ++i) own[i] = step(own[i - 1], own[i]);
  }
  Number total = inclusive[lanes - 1];
  for (std::size_t last = 2 * lanes - 1; last < threads; last += lanes)
    total = step(total, inclusive[last]);
  return total;
}

/// Tiles of which each adds what comes before it. From the fourth one on what that is depends on
/// how far the tiles before have come: nothing then.
template <class Number>
bool scan_tiles(const Step<Number>& step, std::size_t items, std::span<Number> row) {
  constexpr std::size_t threads = 128, most_tiles = 3;
  const std::size_t tile = threads * items;
  if (row.size() > most_tiles * tile) return false;
  std::optional<Number> before;
  for (std::size_t begin = 0; begin < row.size(); begin += tile) {
    const Number total =
        scan_tile(step, items, before, row.subspan(begin, std::min(tile, row.size() - begin)));
    before = before ? step(*before, total) : total;
  }
  return true;
}

Scanned integer_scan(const Tensor& input, std::int64_t size, std::int64_t inner,
                     Running operation) {
  std::vector<std::int64_t> numbers = integers_of(input);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    if (index / inner % size == 0) continue;
    const auto before =
        static_cast<std::uint64_t>(numbers[static_cast<std::size_t>(index - inner)]);
    const auto own = static_cast<std::uint64_t>(numbers[i]);
    numbers[i] = static_cast<std::int64_t>(operation == Running::sum ? before + own : before * own);
  }
  return {tensor_of_integers(formats::int64, input.shape, numbers), "integers"};
}

/// `numbers` are those of the input. Along its last dimension a block takes each row; along another
/// one, though only dimensions of one element follow, a thread each column.
template <class Number>
Scanned scan_of(const Tensor& input, std::vector<Number> numbers, std::size_t dimension,
                Running operation, int threads) {
  const Rows along = rows_along(input, dimension);
  const std::int64_t size = along.size, inner = along.inner;
  const Step<Number> step{operation, {input.type}};
  const auto count = static_cast<std::int64_t>(numbers.size());
  Scanned scanned;
  if (count == size) {
    const std::size_t items = 60 / static_cast<std::size_t>(input.element_bytes());
    scanned.plan = "tiles of 128 threads with " + std::to_string(items) + " elements";
    scanned.is_ordered = scan_tiles(step, items, std::span<Number>(numbers));
    if (!scanned.is_ordered) {
      scanned.plan = "a look-back scan in more than three " + scanned.plan +
                     ", whose order depends on which tile finishes first";
      return scanned;
    }
  } else if (dimension + 1 == input.shape.size()) {
    const std::int64_t rows = count / size;
    const std::uint32_t log_threads = log_of_threads(size, rows);
    formats::parallel_for(
        static_cast<std::size_t>(rows), 1, threads, [&](std::size_t begin, std::size_t end) {
          for (std::size_t r = begin; r < end; ++r)
            scan_row(step, log_threads,
                     std::span<Number>(numbers).subspan(r * static_cast<std::size_t>(size),
                                                        static_cast<std::size_t>(size)));
        });
    scanned.plan = "chunks of " + std::to_string(2 << log_threads) + " by Sklansky's tree";
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      Number& own = numbers[static_cast<std::size_t>(i)];
      own = step(
          i / inner % size == 0 ? step.identity() : numbers[static_cast<std::size_t>(i - inner)],
          own);
    }
    scanned.plan = "one thread a column";
  }
  scanned.result = tensor_of_numbers(input.type, input.shape, numbers);
  return scanned;
}

}  // namespace

Scanned scan(const Tensor& input, std::int64_t dimension, Running operation, int threads) {
  if (input.rank() == 0) return {input, "one element"};
  const auto d = dimension_of(input, dimension);
  if (formats::is_integer(input.type)) {
    const Rows along = rows_along(input, d);
    return integer_scan(input, along.size, along.inner, operation);
  }
  Scanned scanned = input.type == formats::fp64
                        ? scan_of(input, doubles_of(input), d, operation, threads)
                        : scan_of(input, numbers_of(input), d, operation, threads);
  if (scanned.is_ordered) scanned.result.stride = dense_stride_like(input);
  return scanned;
}

}  // namespace guardbit::emulator::operators
