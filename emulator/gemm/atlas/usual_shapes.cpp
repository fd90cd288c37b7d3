#include "emulator/gemm/atlas/usual_shapes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "emulator/gemm/atlas/packed_boxes.hpp"
#include "emulator/gemm/atlas/packed_trees.hpp"

namespace guardbit::emulator::atlas {

namespace {

// By tools/scripts/atlas/fit_shapes.py from what record_shapes.py recorded.

/// The sizes of all lists, one list after the other.
constexpr auto sizes = std::to_array<std::int32_t>({
#include "emulator/gemm/atlas/usual_shapes.inc"
});
constexpr auto sizes_of_list = std::to_array<std::size_t>({
#include "emulator/gemm/atlas/usual_shape_lists.inc"
});

/// An operator with its numbers and layouts, the lists that batch, M, N and K are of, and in which
/// order, from the slowest on, its shapes run over batch (0), M, N and K (3).
struct Kind {
  int numbers, op, a_transposed, b_transposed;
  std::array<std::size_t, 4> lists, order;
};
constexpr auto kinds = std::to_array<Kind>({
#include "emulator/gemm/atlas/usual_shape_kinds.inc"
});

/// Of kind 0, then of kind 1, ... boxes of so many slabs: of each shape 0, where the trees are
/// right, 1, where its launches do not tell a plan, or the number of its label, from 2 on. Where
/// the trees do not guess it is any number.
constexpr char boxes[] =
#include "emulator/gemm/atlas/shape_boxes.inc"
    ;
constexpr auto box_ends = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/shape_box_ends.inc"
});
constexpr std::size_t slabs_of_box = 8;
constexpr char shape_labels[] =
#include "emulator/gemm/atlas/shape_labels.inc"
    ;

std::span<const std::int32_t> list(std::size_t number) {
  const std::size_t begin =
      std::accumulate(sizes_of_list.begin(),
                      sizes_of_list.begin() + static_cast<std::ptrdiff_t>(number), std::size_t{0});
  return std::span(sizes).subspan(begin, sizes_of_list.at(number));
}

/// How many shapes a kind has.
Extent extent_of(const Kind& kind) {
  const auto along = [&](std::size_t i) {
    return sizes_of_list.at(kind.lists.at(kind.order.at(i)));
  };
  return {along(0), along(1) * along(2), along(3)};
}

/// The first box of a kind.
std::size_t first_box(std::size_t kind) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kind; ++i)
    count += box_count(extent_of(kinds.at(i)).slabs, slabs_of_box);
  return count;
}

bool has_no_gaps(const ProductCall& call) {
  return call.whole_batches && call.leading_of_a() == (call.a_transposed ? call.m : call.k) &&
         call.leading_of_b() == (call.b_transposed ? call.k : call.n);
}

/// The place of each size of a call in a kind's lists; nothing: one is not of them.
std::optional<std::array<std::size_t, 4>> place_in(const Kind& kind, const ProductCall& call) {
  const std::array<std::int64_t, 4> size = {call.batch, call.m, call.n, call.k};
  std::array<std::size_t, 4> place{};
  for (std::size_t axis = 0; axis < size.size(); ++axis) {
    const std::span<const std::int32_t> values = list(kind.lists.at(axis));
    const auto at = std::find(values.begin(), values.end(), size.at(axis));
    if (at == values.end()) return std::nullopt;
    place.at(axis) = static_cast<std::size_t>(at - values.begin());
  }
  return place;
}

/// Of a usual shape what the boxes of the first kind that has it say; nothing: none has.
std::optional<std::uint16_t> number_of(const ProductCall& call) {
  if (call.k == 1 || !has_no_gaps(call)) return std::nullopt;
  for (std::size_t number = 0; number < kinds.size(); ++number) {
    const Kind& kind = kinds.at(number);
    if (kind.numbers != static_cast<int>(call.numbers) || kind.op != static_cast<int>(call.op) ||
        (kind.a_transposed != 0) != call.a_transposed ||
        (kind.b_transposed != 0) != call.b_transposed)
      continue;
    const std::optional<std::array<std::size_t, 4>> place = place_in(kind, call);
    if (!place) continue;
    const auto along = [&](std::size_t i) { return place->at(kind.order.at(i)); };
    const std::size_t row = along(1) * sizes_of_list.at(kind.lists.at(kind.order[2])) + along(2);
    static const PackedBoxes packed(boxes, box_ends, slabs_of_box);
    return packed.number(first_box(number), extent_of(kind), {along(0), row, along(3)});
  }
  return std::nullopt;
}

}  // namespace

std::optional<Leaf> recorded_leaf(const ProductCall& call, const Leaf& told) {
  const std::optional<std::uint16_t> number = number_of(call);
  if (!number || *number == 1) return std::nullopt;
  if (*number == 0) return told;
  static const std::vector<PackedLabel> labels = unpacked_labels(shape_labels);
  return leaf_of(call, labels.at(*number - 2u));
}

}  // namespace guardbit::emulator::atlas
