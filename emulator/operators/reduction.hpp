#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "emulator/operators/kernels/vectorised.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reduction_shape.hpp"
#include "emulator/operators/trees.hpp"
#include "formats/support/parallel.hpp"

// The one interpreter of reductions: any operation, over any shape of them.
namespace guardbit::emulator::operators {

// Operations, over FP32 or FP64 numbers.

/// a + b; -0 becomes +0, because every accumulator starts from +0.
template <class N>
struct SumOf {
  using Number = N;
  using State = N;
  static State identity() { return 0; }
  static State reduced(State a, N x, std::int64_t) { return a + x; }
  static State combined(State a, State b) { return a + b; }
};
using Sum = SumOf<float>;

template <class N>
struct SumWithoutNanOf : SumOf<N> {
  static N reduced(N a, N x, std::int64_t) { return std::isnan(x) ? a : a + x; }
};

template <class N>
struct ProductOf {
  using Number = N;
  using State = N;
  static State identity() { return 1; }
  static State reduced(State a, N x, std::int64_t) { return a * x; }
  static State combined(State a, State b) { return a * b; }
};

template <class N>
struct SumOfSquaresOf : SumOf<N> {
  static N reduced(N a, N x, std::int64_t) { return std::fma(x, x, a); }
};
using SumOfSquares = SumOfSquaresOf<float>;

template <class N>
struct SumOfMagnitudesOf : SumOf<N> {
  static N reduced(N a, N x, std::int64_t) { return a + std::fabs(x); }
};

/// Mean and squared deviations by Welford; `count` is an exact number, kept as one of the others.
template <class N>
struct MomentsOf {
  N mean = 0, squares = 0, count = 0;
};
using Moments = MomentsOf<float>;
template <class N>
struct WelfordOf {
  using Number = N;
  using State = MomentsOf<N>;
  static State identity() { return {}; }
  static State reduced(State a, N x, std::int64_t) {
    const N count = a.count + 1, delta = x - a.mean;
    const N mean = a.mean + delta / count;
    return {mean, std::fma(delta, x - mean, a.squares), count};
  }
  static State combined(State a, State b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const N delta = b.mean - a.mean, count = a.count + b.count, share = b.count / count;
    return {std::fma(delta, share, a.mean),
            std::fma((delta * delta) * a.count, share, a.squares + b.squares), count};
  }
};
using Welford = WelfordOf<float>;

/// The greatest (or least) number with its index; NaNs win, then lower indices.
template <class N>
struct ExtremeOf {
  N number = 0;
  std::int64_t index = std::numeric_limits<std::int64_t>::max();
};
template <bool is_greatest, class N>
struct Extremum {
  using Number = N;
  using State = ExtremeOf<N>;
  static State identity() { return {}; }
  static bool wins(State a, State b) {
    if (b.index == identity().index) return true;
    if (a.index == identity().index) return false;
    const bool a_is_nan = a.number != a.number, b_is_nan = b.number != b.number;
    if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || a.index < b.index);
    if (a.number == b.number) return a.index < b.index;
    return is_greatest ? a.number > b.number : a.number < b.number;
  }
  static State reduced(State a, N x, std::int64_t index) {
    const State b{x, index};
    return wins(a, b) ? a : b;
  }
  static State combined(State a, State b) { return wins(a, b) ? a : b; }
};

namespace detail {

/// Threads of a row, rows and blocks that share one output.
struct Sharing {
  std::size_t width, height, blocks;

  explicit Sharing(const ReductionShape& shape)
      : width(shape.is_split_over_lanes ? static_cast<std::size_t>(shape.width) : 1),
        height(shape.is_split_over_rows ? static_cast<std::size_t>(shape.height) : 1),
        blocks(shape.is_split_over_blocks ? static_cast<std::size_t>(shape.blocks) : 1) {}
  std::size_t threads() const { return width * height; }
};

/// Whole warps meet first, by descending distances; then the lanes of one.
template <class Op>
typename Op::State value_of_lanes(const Op& op, LaneOrder order,
                                  std::span<typename Op::State> lanes) {
  using State = typename Op::State;
  const auto combine = [&](State a, State b) { return op.combined(a, b); };
  if (order == LaneOrder::descending) return halved(lanes, combine);
  const std::size_t warp = std::min(lanes.size(), warp_lanes);
  for (std::size_t distance = lanes.size() / 2; distance >= warp_lanes; distance /= 2) {
    for (std::size_t t = 0; t < distance; ++t) lanes[t] = combine(lanes[t], lanes[t + distance]);
  }
  return paired(lanes.first(warp), combine);
}

/// The accumulators of a block's threads, and room for a value of each thread.
template <class State>
struct BlockMemory {
  std::vector<State> slots, values;
};

/// The value of a block from accumulators that lie `by_thread` apart from thread to thread and
/// `by_slot` within a thread, `own` of them.
template <class Op>
typename Op::State value_of_block(const Op& op, const ReductionShape& shape,
                                  const typename Op::State* slots, std::size_t by_thread,
                                  std::size_t by_slot, std::size_t own,
                                  typename Op::State* values) {
  using State = typename Op::State;
  const auto combine = [&](State a, State b) { return op.combined(a, b); };
  const Sharing sharing(shape);
  for (std::size_t t = 0; t < sharing.threads(); ++t) {
    State value = slots[t * by_thread];
    for (std::size_t k = 1; k < own; ++k)
      value = combine(value, slots[t * by_thread + k * by_slot]);
    values[t] = value;
  }
  // The lanes of each row; its value takes a place that no later row needs.
  for (std::size_t y = 0; y < sharing.height; ++y)
    values[y] =
        value_of_lanes(op, shape.lane_order, std::span(values + y * sharing.width, sharing.width));
  return halved(std::span(values, sharing.height), combine);
}

/// The last block to finish brings the blocks' values together: rows first, then lanes.
template <class Op>
typename Op::State value_of_blocks(const Op& op, const ReductionShape& shape,
                                   std::span<const typename Op::State> of_blocks) {
  using State = typename Op::State;
  const auto combine = [&](State a, State b) { return op.combined(a, b); };
  if (of_blocks.size() == 1) return of_blocks[0];
  const Sharing sharing(shape);
  std::vector<State> last(sharing.threads(), op.identity());
  for (std::size_t b = 0; b < of_blocks.size(); ++b) {
    State& value = last[b % last.size()];
    value = combine(value, of_blocks[b]);
  }
  std::vector<State> lanes(sharing.width), column(sharing.height);
  for (std::size_t x = 0; x < sharing.width; ++x) {
    for (std::size_t y = 0; y < sharing.height; ++y) column[y] = last[y * sharing.width + x];
    lanes[x] = halved(std::span(column), combine);
  }
  return value_of_lanes(op, shape.lane_order, std::span(lanes));
}

/// The value of one output from its accumulators: `slots` in the order thread, accumulator (of
/// vectors) or accumulator, thread.
template <class Op>
typename Op::State brought_together(const Op& op, const ReductionShape& shape,
                                    std::span<const typename Op::State> slots) {
  using State = typename Op::State;
  const Sharing sharing(shape);
  const bool is_of_vectors = shape.vector > 1;
  const auto own = static_cast<std::size_t>(is_of_vectors ? shape.vector : shape.accumulators);
  const std::size_t by_thread = is_of_vectors ? own : 1;
  const std::size_t by_slot = is_of_vectors ? 1 : static_cast<std::size_t>(shape.threads());
  std::vector<State> values(sharing.threads()), of_blocks(sharing.blocks);
  for (std::size_t b = 0; b < sharing.blocks; ++b)
    of_blocks[b] = value_of_block(op, shape, slots.data() + b * sharing.threads() * by_thread,
                                  by_thread, by_slot, own, values.data());
  return value_of_blocks(op, shape, std::span<const State>(of_blocks));
}

/// Adds elements to slots in turn. `numbers` has `lanes` outputs side by side.
template <class Op>
void take_each_in_turn(const Op& op, std::span<const typename Op::Number> numbers,
                       std::int64_t first_index, std::size_t lanes,
                       std::span<typename Op::State> slots) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += slots.size()) {
    const std::size_t count = std::min(slots.size(), numbers.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = first_index + static_cast<std::int64_t>((begin + i) / lanes);
      slots[i] = op.reduced(slots[i], numbers[begin + i], index);
    }
  }
}

template <class Op>
void take_in_turn(const Op& op, std::span<const typename Op::Number> numbers,
                  std::int64_t first_index, std::size_t lanes,
                  std::span<typename Op::State> slots) {
  vectorised<take_each_in_turn<Op>>(op, numbers, first_index, lanes, slots);
}

/// The same of some of the slots, from `first_slot` of `slot_count` on.
template <class Op>
void take_slots_in_turn(const Op& op, std::span<const typename Op::Number> numbers,
                        std::int64_t first_index, std::size_t first_slot, std::size_t slot_count,
                        std::span<typename Op::State> slots) {
  for (std::size_t begin = first_slot; begin < numbers.size(); begin += slot_count) {
    const std::size_t count = std::min(slots.size(), numbers.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = first_index + static_cast<std::int64_t>(begin + i);
      slots[i] = op.reduced(slots[i], numbers[begin + i], index);
    }
  }
}

/// A row that is read in vectors, which begins `shift` elements after a multiple of them. On
/// `threads` threads, which share the blocks.
template <class Op>
typename Op::State reduced_row(const Op& op, const ReductionShape& shape,
                               std::span<const typename Op::Number> row, std::int64_t shift,
                               int threads, BlockMemory<typename Op::State>& memory) {
  using State = typename Op::State;
  const Sharing sharing(shape);
  const auto vector = static_cast<std::size_t>(shape.vector);
  const std::size_t each = sharing.threads() * vector, all = sharing.blocks * each;
  const std::size_t head =
      shift > 0 ? std::min(vector - static_cast<std::size_t>(shift), row.size()) : 0;
  const std::size_t whole = (row.size() - head) / vector * vector;
  const auto block = [&](std::size_t b, BlockMemory<State>& own) {
    own.slots.assign(each, op.identity());
    own.values.resize(sharing.threads());
    const auto single = [&](std::size_t t, std::size_t i) {
      own.slots[t * vector] =
          op.reduced(own.slots[t * vector], row[i], static_cast<std::int64_t>(i));
    };
    for (std::size_t i = 0; b == 0 && i < head; ++i) single(static_cast<std::size_t>(shift) + i, i);
    vectorised<take_slots_in_turn<Op>>(op, row.subspan(head, whole),
                                       static_cast<std::int64_t>(head), b * each, all,
                                       std::span(own.slots));
    for (std::size_t i = head + whole; b == 0 && i < row.size(); ++i) single(i - head - whole, i);
    const State* slots = own.slots.data();
    return vectorised<value_of_block<Op>>(op, shape, slots, vector, std::size_t{1}, vector,
                                          own.values.data());
  };
  if (sharing.blocks == 1) return block(0, memory);
  std::vector<State> of_blocks(sharing.blocks);
  formats::parallel_for(sharing.blocks, 32, threads, [&](std::size_t begin, std::size_t end) {
    BlockMemory<State> own;
    for (std::size_t b = begin; b < end; ++b) of_blocks[b] = block(b, own);
  });
  return value_of_blocks(op, shape, std::span<const State>(of_blocks));
}

/// Outputs side by side, whose inputs lie `pitch` apart: the same as take_in_turn of what gather
/// copies.
template <class Op>
void take_columns_in_turn(const Op& op, const typename Op::Number* numbers, std::int64_t inputs,
                          std::int64_t pitch, std::size_t lanes,
                          std::span<typename Op::State> slots) {
  const std::size_t rows = slots.size() / lanes;
  std::size_t slot = 0;
  for (std::int64_t i = 0; i < inputs; ++i) {
    typename Op::State* __restrict own = slots.data() + slot * lanes;
    const typename Op::Number* __restrict row = numbers + i * pitch;
    for (std::size_t l = 0; l < lanes; ++l) own[l] = op.reduced(own[l], row[l], i);
    if (++slot == rows) slot = 0;
  }
}

/// Do the inputs of an output lie one after another?
inline bool is_row(const ReductionWalk& walk) {
  std::int64_t next = 1;
  for (const ReducedDimension& d : walk.reduced) {
    if (d.place != next) return false;
    next *= d.size;
  }
  return true;
}

/// Do the first inputs of outputs [first, first + lanes) lie side by side?
inline bool are_together(const ReductionWalk& walk, std::int64_t first, std::size_t lanes) {
  const std::int64_t start = place_of(walk.kept, first);
  for (std::size_t l = 1; l < lanes; ++l) {
    const auto beside = static_cast<std::int64_t>(l);
    if (place_of(walk.kept, first + beside) != start + beside) return false;
  }
  return true;
}

/// Copies the inputs of outputs [first, first + lanes) side by side.
template <class Number>
void gather(const ReductionWalk& walk, std::span<const Number> numbers, std::int64_t first,
            std::size_t lanes, std::vector<Number>& rows) {
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
    Number* row = rows.data() + static_cast<std::size_t>(i) * lanes;
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
  using Number = typename Op::Number;
  const ViewOf<Number> numbers(input);
  // Outputs side by side are computed together, more where their inputs are read in place.
  const std::int64_t most_together = walk.reduced.size() == 1 ? 256 : 64;
  const std::int64_t together = shape.vector > 1 || shape.is_split_over_lanes
                                    ? 1
                                    : std::min<std::int64_t>(walk.outputs, most_together);
  const bool is_row = detail::is_row(walk);
  const std::int64_t batches = (walk.outputs + together - 1) / together;
  const auto grain = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, walk.inputs * together)));
  formats::parallel_for(
      static_cast<std::size_t>(batches), grain, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<Number> rows;
        std::vector<State> slots, of_output;
        detail::BlockMemory<State> memory;
        for (auto batch = static_cast<std::int64_t>(begin); batch < static_cast<std::int64_t>(end);
             ++batch) {
          const std::int64_t first = batch * together;
          const auto lanes = static_cast<std::size_t>(std::min(together, walk.outputs - first));
          std::span<const Number> inputs;
          const bool are_columns =
              lanes > 1 && walk.reduced.size() == 1 && detail::are_together(walk, first, lanes);
          if (are_columns) {
            // They are read where they lie.
          } else if (lanes == 1 && is_row) {
            inputs = numbers.part(static_cast<std::size_t>(place_of(walk.kept, first)),
                                  static_cast<std::size_t>(walk.inputs));
          } else {
            detail::gather(walk, numbers.all(), first, lanes, rows);
            inputs = rows;
          }
          if (shape.vector > 1) {
            const std::int64_t address = input.offset + address_of(walk.kept, first);
            results[static_cast<std::size_t>(result_of(walk.kept, first))] = detail::reduced_row(
                op, shape, inputs, address % shape.vector, walk.outputs == 1 ? threads : 1, memory);
            continue;
          }
          const auto count = static_cast<std::size_t>(shape.threads() * shape.accumulators);
          slots.assign(count * lanes, op.identity());
          if (are_columns) {
            const Number* from = numbers.data() + place_of(walk.kept, first);
            vectorised<detail::take_columns_in_turn<Op>>(
                op, from, walk.inputs, walk.reduced[0].place, lanes, std::span(slots));
          } else {
            detail::take_in_turn(op, inputs, 0, lanes, slots);
          }
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
