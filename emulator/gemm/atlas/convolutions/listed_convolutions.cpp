#include "emulator/gemm/atlas/convolutions/listed_convolutions.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "emulator/gemm/atlas/between.hpp"
#include "emulator/gemm/atlas/convolutions/convolution_segments.hpp"
#include "emulator/gemm/atlas/packed_boxes.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {
namespace {

// By tools/scripts/atlas/fit_listed_convolutions.py.

/// A filter with the runs of pairs (channels, outputs) and of sides that it is listed with.
struct Kind {
  std::int64_t filter, stride, padding;
  std::size_t first_pair, pairs, first_side, sides;
};
constexpr auto kinds = std::to_array<Kind>({
#include "emulator/gemm/atlas/convolutions/listed_kinds.inc"
});
constexpr auto pairs_of_channels = std::to_array<std::pair<std::int16_t, std::int16_t>>({
#include "emulator/gemm/atlas/convolutions/listed_channels.inc"
});
constexpr auto sides = std::to_array<std::int16_t>({
#include "emulator/gemm/atlas/convolutions/listed_sides.inc"
});
constexpr auto images = std::to_array<std::int16_t>({
#include "emulator/gemm/atlas/convolutions/listed_images.inc"
});

/// What an engine does.
struct Label {
  std::uint8_t form;
  /// 0: tensor cores, 1: CUDA cores, 2: tensor cores that take 8 elements of K at once
  std::uint8_t unit;
  std::uint8_t tile, input;
  /// K is cut into parts of so many channels, if any; where lanes share K it is their restart.
  std::int16_t parts, channels_of_part;
  /// of kernels that cut K into segments; no rows: it is none
  std::int16_t rows, columns, cluster_rows, cluster_columns;
};
constexpr auto labels = std::to_array<Label>({
#include "emulator/gemm/atlas/convolutions/listed_labels.inc"
});

/// Boxes of f16, bf16 and tf32, each without and with channels together, and of f32 without; of
/// each the three passes of all kinds, with numbers of labels (from 2 on; 1: not known), as
/// cudnn.deterministic has them; then the gradients of all kinds again, where 1 says that else the
/// sums are added by atomics.
constexpr char boxes[] =
#include "emulator/gemm/atlas/convolutions/listed_boxes.inc"
    ;
constexpr auto box_ends = std::to_array<std::uint32_t>({
#include "emulator/gemm/atlas/convolutions/listed_box_ends.inc"
});
constexpr std::size_t slabs_of_box = 32, groups_of_variant = 5, variants = 7;

// What was recorded: calls of no more than so many multiplications and elements.
constexpr std::int64_t most_products = std::int64_t{1} << 32, most_elements = std::int64_t{1} << 23;

/// Boxes of a pass before those of a kind.
constexpr std::size_t boxes_before(std::size_t kind) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kind; ++i) count += box_count(kinds.at(i).pairs, slabs_of_box);
  return count;
}

/// Where a value stands in a sorted list; its end: nowhere.
template <class Values, class Value>
std::size_t place_of(const Values& values, const Value& value) {
  const auto at = std::lower_bound(values.begin(), values.end(), value);
  return at != values.end() && *at == value ? static_cast<std::size_t>(at - values.begin())
                                            : values.size();
}

/// Of a listed call.
bool was_recorded(const ConvolutionShape& x) {
  if (x.rows + 2 * x.padding < x.filter) return false;
  const std::int64_t side = output_side(x.rows, x), pixels = x.images * side * side;
  return pixels * x.channels * x.outputs * x.filter * x.filter <= most_products &&
         x.images * x.channels * x.rows * x.rows <= most_elements &&
         pixels * x.outputs <= most_elements;
}

/// Where a listed call stands: the first box of its kind, counted from that of its group.
struct Place {
  std::size_t first_box = 0;
  Extent extent;
  Cell cell;
};

/// A kind of the lists that has a call's filter and channels.
struct KindOfCall {
  std::size_t number = 0, pair = 0;

  const Kind& kind() const { return kinds.at(number); }
  std::span<const std::int16_t> sides_of() const {
    return std::span(sides).subspan(kind().first_side, kind().sides);
  }
  Place place(std::size_t side, std::size_t image) const {
    return {boxes_before(number), {kind().pairs, kind().sides, images.size()}, {pair, side, image}};
  }
};

/// The first kind with a call's filter and channels that `is_wanted`.
template <class Wanted>
std::optional<KindOfCall> kind_of_call(const ConvolutionShape& x, const Wanted& is_wanted) {
  constexpr std::int64_t longest = 2048;
  if (x.rows != x.columns || std::max({x.images, x.rows, x.channels, x.outputs}) > longest)
    return std::nullopt;
  const std::pair channels(static_cast<std::int16_t>(x.channels),
                           static_cast<std::int16_t>(x.outputs));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds.at(i);
    if (kind.filter != x.filter || kind.stride != x.stride || kind.padding != x.padding) continue;
    const std::size_t pair =
        place_of(std::span(pairs_of_channels).subspan(kind.first_pair, kind.pairs), channels);
    const KindOfCall found{i, pair};
    if (pair != kind.pairs && is_wanted(found)) return found;
  }
  return std::nullopt;
}

std::optional<Place> place_of_call(const ConvolutionShape& x) {
  const std::size_t image = place_of(images, static_cast<std::int16_t>(x.images));
  if (image == images.size() || !was_recorded(x)) return std::nullopt;
  const auto side_in = [&](const KindOfCall& kind) {
    return place_of(kind.sides_of(), static_cast<std::int16_t>(x.rows));
  };
  const auto kind = kind_of_call(
      x, [&](const KindOfCall& found) { return side_in(found) != found.kind().sides; });
  if (!kind) return std::nullopt;
  return kind->place(side_in(*kind), image);
}

/// Filters of 2 x 2 of stride 2, which have no pixel in common: each gets one sum.
bool has_apart_pixels(const ConvolutionShape& x) {
  const bool is_fp32 = x.numbers == Numbers::tf32 || x.numbers == Numbers::f32;
  return is_fp32 && x.filter == 2 && x.stride == 2 && x.padding == 0;
}

/// What `dgrad_engine` gives there, each of four times: 43 of 43 calls.
ConvolutionLeaf one_chain_of_atomics() {
  ConvolutionLeaf leaf;
  leaf.form = ConvolutionForm::outermost;
  leaf.fma = true;
  leaf.agree = 1000;
  return leaf;
}

/// The form of a segmented kernel that leaves K whole.
ConvolutionForm whole_form(ConvolutionPass pass) {
  if (pass == ConvolutionPass::forward) return ConvolutionForm::blocks;
  return pass == ConvolutionPass::data ? ConvolutionForm::blocks_descending
                                       : ConvolutionForm::chain;
}

std::optional<ConvolutionLeaf> leaf_of(const Label& label, const ConvolutionShape& shape,
                                       ConvolutionPass pass) {
  constexpr int recorded = 1000;
  ConvolutionLeaf leaf;
  leaf.form = static_cast<ConvolutionForm>(label.form);
  leaf.fma = label.unit == 1;
  leaf.eights = label.unit == 2;
  leaf.tile = label.tile;
  leaf.input = static_cast<TensorCoreInput>(label.input);
  leaf.parts = label.parts;
  leaf.agree = recorded;
  if (is_shared(leaf.form))
    leaf.restart = label.channels_of_part;
  else if (label.channels_of_part != 0)
    leaf.parts = formats::divided_up(shape.channels, label.channels_of_part);
  if (label.rows == 0) return leaf;
  const auto segments = segments_of(
      {label.rows, label.columns, label.tile, label.cluster_rows, label.cluster_columns}, shape,
      pass);
  if (!segments) return std::nullopt;
  leaf.parts = segments->count;
  leaf.form = segments->count == 1         ? whole_form(pass)
              : segments->by_second_kernel ? ConvolutionForm::segments_descending
                                           : ConvolutionForm::segments;
  if (leaf.form == ConvolutionForm::chain) leaf.tile = 0;
  return leaf;
}

/// What cells of the table say: so many are no labels.
constexpr std::uint16_t not_recorded = 0, by_atomics = 1, first_label = 2;

/// The number of the label of a recorded call, or that its sums are added by atomics. Nothing: it
/// is not told.
std::optional<std::uint16_t> number_of(const ConvolutionShape& shape, ConvolutionPass pass,
                                       const Place& place) {
  const auto variant = 2 * static_cast<std::size_t>(shape.numbers) + (shape.channels_last ? 1 : 0);
  if (variant >= variants) return std::nullopt;
  static const PackedBoxes packed(boxes, box_ends, slabs_of_box);
  constexpr std::size_t boxes_of_group = boxes_before(kinds.size());
  static_assert(box_ends.size() == variants * groups_of_variant * boxes_of_group + 1);
  const auto number = [&](std::size_t group) {
    return packed.number((variant * groups_of_variant + group) * boxes_of_group + place.first_box,
                         place.extent, place.cell);
  };
  const auto of_pass = static_cast<std::size_t>(pass);
  constexpr std::size_t passes = 3;
  if (!shape.deterministic && pass != ConvolutionPass::forward &&
      number(passes + of_pass - 1) == by_atomics)
    return by_atomics;
  const std::uint16_t label = number(of_pass);
  return label < first_label ? std::nullopt : std::optional(label);
}

/// What a recorded call's number stands for, of a call like it.
std::optional<ConvolutionLeaf> leaf_of_number(std::uint16_t number, const ConvolutionShape& shape,
                                              ConvolutionPass pass) {
  if (number != by_atomics) return leaf_of(labels.at(number - first_label), shape, pass);
  return pass == ConvolutionPass::data && has_apart_pixels(shape) ? one_chain_of_atomics()
                                                                  : ConvolutionLeaf{};
}

/// More steps would make no answer surer.
constexpr std::size_t most_steps = 8;

}  // namespace

std::optional<ConvolutionLeaf> listed_leaf(const ConvolutionShape& shape, ConvolutionPass pass) {
  const std::optional<Place> place = place_of_call(shape);
  if (!place) return std::nullopt;
  const std::optional<std::uint16_t> number = number_of(shape, pass, *place);
  return number ? leaf_of_number(*number, shape, pass) : std::nullopt;
}

std::optional<SurroundedLeaf> leaf_between_listed(const ConvolutionShape& shape,
                                                  ConvolutionPass pass) {
  const std::optional<Between> image = between(images, shape.images);
  if (!image) return std::nullopt;
  std::optional<Between> side;
  const auto kind = kind_of_call(shape, [&](const KindOfCall& found) {
    side = between(found.sides_of(), shape.rows);
    return side.has_value();
  });
  if (!kind || (image->is_listed() && side->is_listed())) return std::nullopt;
  const auto number_at = [&](std::size_t at_side, std::size_t at_image) {
    ConvolutionShape neighbour = shape;
    neighbour.images = images.at(at_image);
    neighbour.rows = neighbour.columns = kind->sides_of()[at_side];
    return was_recorded(neighbour) ? number_of(shape, pass, kind->place(at_side, at_image))
                                   : std::optional(not_recorded);
  };
  const std::optional<std::uint16_t> number = number_at(side->low, image->low);
  if (!number || *number == not_recorded) return std::nullopt;
  // The calls of a window that are not in the one before.
  const auto all_agree = [&](Between rows, Between columns, auto&& is_known) {
    for (std::size_t i = rows.low; i <= rows.high; ++i) {
      for (std::size_t j = columns.low; j <= columns.high; ++j) {
        if (is_known(i, j)) continue;
        const std::optional<std::uint16_t> other = number_at(i, j);
        if (other != number && other != not_recorded) return false;
      }
    }
    return true;
  };
  if (!all_agree(*side, *image, [](std::size_t, std::size_t) { return false; }))
    return std::nullopt;
  const std::optional<ConvolutionLeaf> leaf = leaf_of_number(*number, shape, pass);
  if (!leaf) return std::nullopt;
  SurroundedLeaf result{*leaf, 0, !image->is_listed(), !side->is_listed()};
  Between rows = *side, columns = *image;
  while (result.steps < most_steps) {
    const Between more_rows = rows.wider(1, kind->kind().sides);
    const Between more_columns = columns.wider(1, images.size());
    const auto is_known = [&](std::size_t i, std::size_t j) {
      return rows.has(i) && columns.has(j);
    };
    if (!all_agree(more_rows, more_columns, is_known)) break;
    rows = more_rows;
    columns = more_columns;
    ++result.steps;
  }
  return result;
}

}  // namespace guardbit::emulator::atlas
