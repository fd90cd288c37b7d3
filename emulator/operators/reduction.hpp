#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reduction_shape.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/parallel.hpp"

// The one interpreter of reductions: any operation, over any shape of them.
namespace guardbit::emulator::operators {

/// a + b; -0 becomes +0, because every accumulator starts from +0.
struct Sum {
  using State = float;
  static State identity() { return 0; }
  static State reduced(State a, float x, std::int64_t) { return a + x; }
  static State combined(State a, State b) { return a + b; }
};
struct Product {
  using State = float;
  static State identity() { return 1; }
  static State reduced(State a, float x, std::int64_t) { return a * x; }
  static State combined(State a, State b) { return a * b; }
};
struct SumOfSquares {
  using State = float;
  static State identity() { return 0; }
  static State reduced(State a, float x, std::int64_t) { return std::fma(x, x, a); }
  static State combined(State a, State b) { return a + b; }
};
struct SumOfMagnitudes {
  using State = float;
  static State identity() { return 0; }
  static State reduced(State a, float x, std::int64_t) { return a + std::fabs(x); }
  static State combined(State a, State b) { return a + b; }
};

/// Mean and squared deviations by Welford; `count` is an exact number, kept as FP32.
struct Moments {
  float mean = 0, squares = 0, count = 0;
};
struct Welford {
  using State = Moments;
  static State identity() { return {}; }
  static State reduced(State a, float x, std::int64_t) {
    const float count = a.count + 1, delta = x - a.mean;
    const float mean = a.mean + delta / count;
    return {mean, std::fma(delta, x - mean, a.squares), count};
  }
  static State combined(State a, State b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const float delta = b.mean - a.mean, count = a.count + b.count, share = b.count / count;
    return {std::fma(delta, share, a.mean),
            std::fma((delta * delta) * a.count, share, a.squares + b.squares), count};
  }
};

/// The greatest (or least) number with its index; NaNs win, then lower indices.
struct Extreme {
  float number = 0;
  std::int64_t index = std::numeric_limits<std::int64_t>::max();
};
template <bool is_greatest>
struct ExtremeOf {
  using State = Extreme;
  static State identity() { return {}; }
  static bool wins(State a, State b) {
    if (b.index == identity().index) return true;
    if (a.index == identity().index) return false;
    const bool a_is_nan = a.number != a.number, b_is_nan = b.number != b.number;
    if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || a.index < b.index);
    if (a.number == b.number) return a.index < b.index;
    return is_greatest ? a.number > b.number : a.number < b.number;
  }
  static State reduced(State a, float x, std::int64_t index) {
    const State b{x, index};
    return wins(a, b) ? a : b;
  }
  static State combined(State a, State b) { return wins(a, b) ? a : b; }
};

namespace detail {

/// The value of one output from its accumulators: `slots` in the order thread, accumulator (of
/// vectors) or accumulator, thread.
template <class Op>
typename Op::State brought_together(const Op& op, const ReductionShape& shape,
                                    std::span<const typename Op::State> slots) {
  using State = typename Op::State;
  const auto combine = [&](State a, State b) { return op.combined(a, b); };
  const auto threads = static_cast<std::size_t>(shape.threads());
  const auto own = static_cast<std::size_t>(shape.vector > 1 ? shape.vector : shape.accumulators);
  const std::size_t by_thread = shape.vector > 1 ? own : 1;
  const std::size_t by_slot = shape.vector > 1 ? 1 : threads;
  std::vector<State> values(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    State value = slots[t * by_thread];
    for (std::size_t k = 1; k < own; ++k)
      value = combine(value, slots[t * by_thread + k * by_slot]);
    values[t] = value;
  }
  const std::size_t width = shape.is_split_over_lanes ? static_cast<std::size_t>(shape.width) : 1;
  const std::size_t height = shape.is_split_over_rows ? static_cast<std::size_t>(shape.height) : 1;
  const std::size_t blocks =
      shape.is_split_over_blocks ? static_cast<std::size_t>(shape.blocks) : 1;
  // Whole warps meet first, by descending distances; then the lanes of one.
  const auto of_lanes = [&](std::span<State> lanes) {
    if (shape.lane_order == LaneOrder::descending) return halved(lanes, combine);
    const std::size_t warp = std::min(lanes.size(), warp_lanes);
    for (std::size_t distance = lanes.size() / 2; distance >= warp_lanes; distance /= 2) {
      for (std::size_t t = 0; t < distance; ++t) lanes[t] = combine(lanes[t], lanes[t + distance]);
    }
    return paired(lanes.first(warp), combine);
  };
  const auto lanes_first = [&](std::span<State> block) {
    std::vector<State> rows(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = of_lanes(block.subspan(y * width, width));
    return halved(std::span(rows), combine);
  };
  std::vector<State> of_blocks(blocks);
  for (std::size_t b = 0; b < blocks; ++b)
    of_blocks[b] = lanes_first(std::span(values).subspan(b * width * height, width * height));
  if (blocks == 1) return of_blocks[0];
  // The last block to finish brings the blocks' values together: rows first, then lanes.
  std::vector<State> last(width * height, op.identity());
  for (std::size_t b = 0; b < blocks; ++b) {
    State& value = last[b % last.size()];
    value = combine(value, of_blocks[b]);
  }
  std::vector<State> lanes(width);
  for (std::size_t x = 0; x < width; ++x) {
    std::vector<State> column(height);
    for (std::size_t y = 0; y < height; ++y) column[y] = last[y * width + x];
    lanes[x] = halved(std::span(column), combine);
  }
  return of_lanes(lanes);
}

/// Adds elements to slots in turn. `numbers` has `lanes` outputs side by side.
template <class Op>
void take_in_turn(const Op& op, std::span<const float> numbers, std::int64_t first_index,
                  std::size_t lanes, std::span<typename Op::State> slots) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += slots.size()) {
    const std::size_t count = std::min(slots.size(), numbers.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = first_index + static_cast<std::int64_t>((begin + i) / lanes);
      slots[i] = op.reduced(slots[i], numbers[begin + i], index);
    }
  }
}

/// A row that is read in vectors, which begins `shift` elements after a multiple of them.
template <class Op>
typename Op::State reduced_row(const Op& op, const ReductionShape& shape,
                               std::span<const float> row, std::int64_t shift) {
  const auto vector = static_cast<std::size_t>(shape.vector);
  std::vector<typename Op::State> slots(static_cast<std::size_t>(shape.threads()) * vector,
                                        op.identity());
  std::size_t begin = 0;
  for (auto t = static_cast<std::size_t>(shift); shift > 0 && t < vector && begin < row.size();
       ++t, ++begin)
    slots[t * vector] = op.reduced(slots[t * vector], row[begin], static_cast<std::int64_t>(begin));
  const std::size_t whole = (row.size() - begin) / vector * vector;
  take_in_turn(op, row.subspan(begin, whole), static_cast<std::int64_t>(begin), 1, slots);
  for (std::size_t i = begin + whole, t = 0; i < row.size(); ++i, ++t)
    slots[t * vector] = op.reduced(slots[t * vector], row[i], static_cast<std::int64_t>(i));
  return brought_together(op, shape, slots);
}

/// Copies the inputs of outputs [first, first + lanes) side by side.
inline void gather(const ReductionWalk& walk, std::span<const float> numbers, std::int64_t first,
                   std::size_t lanes, std::vector<float>& rows) {
  rows.resize(static_cast<std::size_t>(walk.inputs) * lanes);
  std::vector<std::int64_t> starts(lanes);
  bool is_together = true;
  for (std::size_t l = 0; l < lanes; ++l) {
    starts[l] = place_of(walk.kept, first + static_cast<std::int64_t>(l));
    is_together = is_together && starts[l] == starts[0] + static_cast<std::int64_t>(l);
  }
  std::vector<std::int64_t> digits(walk.reduced.size());
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < walk.inputs; ++i) {
    float* row = rows.data() + static_cast<std::size_t>(i) * lanes;
    if (is_together) {
      std::copy_n(numbers.data() + starts[0] + place, lanes, row);
    } else {
      for (std::size_t l = 0; l < lanes; ++l)
        row[l] = numbers[static_cast<std::size_t>(starts[l] + place)];
    }
    for (std::size_t d = 0; d < digits.size(); ++d) {
      place += walk.reduced[d].place;
      if (++digits[d] < walk.reduced[d].size) break;
      place -= digits[d] * walk.reduced[d].place;
      digits[d] = 0;
    }
  }
}

}  // namespace detail

/// The state of each output, at its place in the result.
template <class Op>
std::vector<typename Op::State> reduced(const Op& op, const Tensor& input,
                                        const ReductionWalk& walk, const ReductionShape& shape,
                                        int threads) {
  using State = typename Op::State;
  std::vector<State> results(static_cast<std::size_t>(walk.outputs), op.identity());
  if (walk.inputs == 0 || walk.outputs == 0) return results;
  const NumberView numbers(input);
  // Outputs side by side are computed together: a cache line of them, more where inputs are few.
  const std::int64_t together =
      shape.vector > 1 || shape.is_split_over_lanes ? 1 : std::min<std::int64_t>(walk.outputs, 64);
  const bool is_row = walk.reduced.size() == 1 && walk.reduced[0].place == 1;
  const std::int64_t batches = (walk.outputs + together - 1) / together;
  const auto grain = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, walk.inputs * together)));
  formats::parallel_for(
      static_cast<std::size_t>(batches), grain, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<float> rows;
        std::vector<State> slots, of_output;
        for (auto batch = static_cast<std::int64_t>(begin); batch < static_cast<std::int64_t>(end);
             ++batch) {
          const std::int64_t first = batch * together;
          const auto lanes = static_cast<std::size_t>(std::min(together, walk.outputs - first));
          std::span<const float> inputs;
          if (lanes == 1 && is_row) {
            inputs = numbers.part(static_cast<std::size_t>(place_of(walk.kept, first)),
                                  static_cast<std::size_t>(walk.inputs));
          } else {
            detail::gather(walk, numbers.all(), first, lanes, rows);
            inputs = rows;
          }
          if (shape.vector > 1) {
            const std::int64_t address = input.offset + address_of(walk.kept, first);
            results[static_cast<std::size_t>(result_of(walk.kept, first))] =
                detail::reduced_row(op, shape, inputs, address % shape.vector);
            continue;
          }
          const auto count = static_cast<std::size_t>(shape.threads() * shape.accumulators);
          slots.assign(count * lanes, op.identity());
          detail::take_in_turn(op, inputs, 0, lanes, slots);
          of_output.resize(count);
          for (std::size_t l = 0; l < lanes; ++l) {
            for (std::size_t s = 0; s < count; ++s) of_output[s] = slots[s * lanes + l];
            const auto output = first + static_cast<std::int64_t>(l);
            results[static_cast<std::size_t>(result_of(walk.kept, output))] =
                detail::brought_together(op, shape, of_output);
          }
        }
      });
  return results;
}

}  // namespace guardbit::emulator::operators
