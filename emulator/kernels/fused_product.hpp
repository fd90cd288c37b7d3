#pragma once

// A whole matrix product by tiles: operands are packed a range of K at a time, then every tile runs
// its blocks of that range, D holding the sums between ranges.

#include <functional>
#include <optional>

#include "emulator/kernels/default_environment.hpp"
#include "emulator/kernels/fused_tile.hpp"
#include "formats/parallel.hpp"

namespace guardbit::emulator::fused {

/// The tile functions of a row; `wide` null where no tile is wide: no product can leave the calm
/// range, no addend is too large for the lanes.
struct TileFunctions {
  TileFunction calm = nullptr, wide = nullptr;
};

template <class Lanes, int BlockK>
TileFunctions chain_functions(const FusedRow& row) {
  if constexpr (sizeof(typename Lanes::Value) == 4) {
    if (row.result == Result::e8m13)
      return {sum_tile<Lanes, BlockK, Result::e8m13, Composition::chain, false>,
              sum_tile<Lanes, BlockK, Result::e8m13, Composition::chain, true>};
    return {sum_tile<Lanes, BlockK, Result::fp16, Composition::chain, false>};
  } else {
    if (row.result == Result::fp16)
      return {sum_tile<Lanes, BlockK, Result::fp16, Composition::chain, false>};
    return {sum_tile<Lanes, BlockK, Result::fp32, Composition::chain, false>,
            sum_tile<Lanes, BlockK, Result::fp32, Composition::chain, true>};
  }
}

template <class Lanes, int BlockK, Composition Blocks>
TileFunctions halves_functions(const FusedRow& row) {
  if (row.result == Result::fp16) return {sum_tile<Lanes, BlockK, Result::fp16, Blocks, false>};
  return {sum_tile<Lanes, BlockK, Result::fp32, Blocks, false>};
}

template <class Lanes, Composition Blocks>
TileFunctions halves_functions(const FusedRow& row) {
  switch (row.block_k) {
    case 8: return halves_functions<Lanes, 8, Blocks>(row);
    case 16: return halves_functions<Lanes, 16, Blocks>(row);
    default: return {};
  }
}

/// No function where the lanes have no kernel for the row.
template <class Lanes>
TileFunctions tile_functions(const FusedRow& row) {
  if (row.composition != Composition::chain) {
    if constexpr (sizeof(typename Lanes::Value) == 8) {
      if (row.wide_exponents) return {};
      return row.composition == Composition::chained_halves
                 ? halves_functions<Lanes, Composition::chained_halves>(row)
                 : halves_functions<Lanes, Composition::separate_halves>(row);
    }
    return {};
  }
  switch (row.block_k) {
    case 4: return chain_functions<Lanes, 4>(row);
    case 8: return chain_functions<Lanes, 8>(row);
    case 16: return chain_functions<Lanes, 16>(row);
    case 32: return chain_functions<Lanes, 32>(row);
    case 64: return chain_functions<Lanes, 64>(row);
    default: return {};
  }
}

/// A's rows; `group` factors' signs stand together.
inline UnitSource a_source(const FusedRow& row, const MatrixProduct& x, int group) {
  const std::int64_t stored = row.sparsity.group_elements == 0 ? x.k
                                                               : x.k / row.sparsity.group_elements *
                                                                     row.sparsity.stored_per_group;
  UnitSource a{row,
               row.a,
               {x.a.codes, x.a.column_stride, x.a.row_stride, x.m, stored},
               {row.a, x.modifiers.negate_a},
               group};
  if (row.sparsity.group_elements != 0) a.places = x.e;
  if (row.scale_k != 0)
    a.scales = {x.a_scale.codes, x.a_scale.column_stride, x.a_scale.row_stride, x.m,
                (x.k + row.scale_k - 1) / row.scale_k};
  return a;
}
/// B's columns.
inline UnitSource b_source(const FusedRow& row, const MatrixProduct& x, int group) {
  UnitSource b{row,
               row.b,
               {x.b.codes, x.b.row_stride, x.b.column_stride, x.n, x.k},
               {row.b, x.modifiers.negate_b},
               group};
  if (row.scale_k != 0)
    b.scales = {x.b_scale.codes, x.b_scale.row_stride, x.b_scale.column_stride, x.n,
                (x.k + row.scale_k - 1) / row.scale_k};
  return b;
}

/// Can A be spread out over K with zeros between its stored values? Not where B has an infinity or
/// a NaN that those would meet, nor where two values of a group claim one place.
inline bool can_spread(const FusedRow& row, const MatrixProduct& x) {
  const Sparsity& sparsity = row.sparsity;
  if (sparsity.group_elements == 0) return true;
  const UnitSource b = b_source(row, x, 1);
  for (std::int64_t line = 0; line < x.n; line += unit_lines)
    if (b.any_special(line)) return false;
  const std::int64_t groups = x.k / sparsity.group_elements;
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t g = 0; g < groups; ++g) {
      std::uint32_t taken = 0;
      for (int s = 0; s < sparsity.stored_per_group; s += sparsity.chunk) {
        const std::uint32_t place = 1U << x.e(i, g * sparsity.stored_per_group + s);
        if ((taken & place) != 0) return false;
        taken |= place;
      }
    }
  }
  return true;
}

/// Both operands over one range of places, packed strip by strip: of a strip, B's part of a panel
/// stays in the first-level cache while A's panels stream past.
template <class Lanes>
class PackedRange {
 public:
  using Value = typename Lanes::Value;
  static constexpr int columns = Lanes::columns;
  static constexpr std::int64_t units_per_panel = columns / unit_lines;
  using Rows = RowWriter<Value>;
  using Columns = ColumnWriter<Value, columns>;

  /// For products of m rows and n columns, at most `longest` places at a time.
  PackedRange(const FusedRow& row, std::int64_t m, std::int64_t n, std::int64_t longest)
      : row_(row),
        group_(std::min(row.block_k, Lanes::sign_group)),
        a_units_((m + unit_lines - 1) / unit_lines),
        b_units_((n + columns - 1) / columns * units_per_panel) {
    const auto places = static_cast<std::size_t>(std::min(longest, strip));
    const auto strips = static_cast<std::size_t>((longest + strip - 1) / strip);
    const auto groups = places / static_cast<std::size_t>(group_);
    a_layout_ = Rows::layout(places, groups, row.wide_exponents);
    b_layout_ = Columns::layout(places, groups, row.wide_exponents);
    a_ranges_.resize(strips * static_cast<std::size_t>(a_units_));
    b_ranges_.resize(strips * static_cast<std::size_t>(b_units_));
    a_memory_.resize(a_layout_.size * Rows::panels * a_ranges_.size());
    b_memory_.resize(b_layout_.size * b_ranges_.size() / units_per_panel);
  }

  static constexpr std::int64_t strip = piece;

  void pack(const MatrixProduct& x, std::int64_t begin, std::int64_t count, int threads) {
    const UnitSource a = a_source(row_, x, group_), b = b_source(row_, x, group_);
    count_ = count;
    each_unit(threads, [&](std::int64_t s, std::int64_t u) {
      const std::int64_t at = begin + s * strip;
      if (u < a_units_) {
        a_range(s, u) = a.pack(u * unit_lines, at, places(s), a_writer(s, u));
      } else {
        u -= a_units_;
        b_range(s, u) = b.pack(u * unit_lines, at, places(s), b_writer(s, u));
      }
    });
    if (!row_.wide_exponents || is_calm(all_of(a_ranges_), all_of(b_ranges_))) return;
    each_unit(threads, [&](std::int64_t s, std::int64_t u) {
      const std::int64_t at = begin + s * strip;
      if (u < a_units_) {
        a.pack_exponents(u * unit_lines, at, places(s), a_writer(s, u));
      } else {
        u -= a_units_;
        b.pack_exponents(u * unit_lines, at, places(s), b_writer(s, u));
      }
    });
  }

  std::int64_t strips() const { return (count_ + strip - 1) / strip; }

  /// Brings part `part` of `parts` of panel `j`'s strip towards the caches.
  void prefetch(std::int64_t s, std::int64_t j, std::int64_t part, std::int64_t parts) const {
    if (j >= b_units_ / units_per_panel) return;
    const std::byte* const b = b_panel(s, j);
    const auto size = static_cast<std::int64_t>(b_layout_.size);
    for (std::int64_t at = size * part / parts / 64 * 64; at < size * (part + 1) / parts; at += 64)
      __builtin_prefetch(b + at, 0, 2);
  }

  /// Sets all of A and B for strip `s` of the tile at row 8 * `i` and panel `j`; says whether it is
  /// calm.
  bool find(std::int64_t s, std::int64_t i, std::int64_t j, TileOperands& x) const {
    const std::int64_t a_panels = a_units_ * static_cast<std::int64_t>(Rows::panels);
    const std::byte* const a =
        a_memory_.data() + a_layout_.size * static_cast<std::size_t>(s * a_panels + i);
    const std::byte* const b = b_panel(s, j);
    x.a_values = a + a_layout_.values;
    x.a_codes = a + a_layout_.codes;
    x.a_exponents = a + a_layout_.exponents;
    x.a_signs = a + a_layout_.signs;
    x.b_values = b + b_layout_.values;
    x.b_codes = b + b_layout_.codes;
    x.b_exponents = b + b_layout_.exponents;
    x.b_signs = b + b_layout_.signs;
    x.blocks = static_cast<int>(places(s) / row_.block_k);
    const UnitRange& rows = a_range(s, i * tile_rows / unit_lines);
    bool calm = true;
    for (std::int64_t u = 0; u < units_per_panel; ++u) {
      const UnitRange& of_b = b_range(s, j * units_per_panel + u);
      x.lowest[static_cast<std::size_t>(u)] = rows.lowest + of_b.lowest;
      calm = calm && (!row_.wide_exponents || is_calm(rows, of_b));
    }
    return calm;
  }

 private:
  /// Do all products of the two stay calm?
  static bool is_calm(const UnitRange& a, const UnitRange& b) {
    return a.lowest + b.lowest >= lowest_calm_exponent &&
           a.highest + b.highest <= highest_calm_exponent && a.highest - a.lowest <= widest_span &&
           b.highest - b.lowest <= widest_span;
  }
  static UnitRange all_of(const std::vector<UnitRange>& units) {
    UnitRange all = units.front();
    for (const UnitRange& u : units) {
      all.lowest = std::min(all.lowest, u.lowest);
      all.highest = std::max(all.highest, u.highest);
    }
    return all;
  }

  /// Calls visit(strip, unit) for every unit of A and, counted on, of B.
  template <class Visit>
  void each_unit(int threads, const Visit& visit) const {
    formats::parallel_for(static_cast<std::size_t>(a_units_ + b_units_), 8, threads,
                          [&](std::size_t first, std::size_t last) {
                            const DefaultEnvironment environment;
                            for (auto u = static_cast<std::int64_t>(first);
                                 u < static_cast<std::int64_t>(last); ++u)
                              for (std::int64_t s = 0; s < strips(); ++s) visit(s, u);
                          });
  }

  const std::byte* b_panel(std::int64_t s, std::int64_t j) const {
    const std::int64_t panels = b_units_ / units_per_panel;
    return b_memory_.data() + b_layout_.size * static_cast<std::size_t>(s * panels + j);
  }
  std::int64_t places(std::int64_t s) const { return std::min(strip, count_ - s * strip); }
  UnitRange& a_range(std::int64_t s, std::int64_t u) {
    return a_ranges_[static_cast<std::size_t>(s * a_units_ + u)];
  }
  const UnitRange& a_range(std::int64_t s, std::int64_t u) const {
    return a_ranges_[static_cast<std::size_t>(s * a_units_ + u)];
  }
  UnitRange& b_range(std::int64_t s, std::int64_t u) {
    return b_ranges_[static_cast<std::size_t>(s * b_units_ + u)];
  }
  const UnitRange& b_range(std::int64_t s, std::int64_t u) const {
    return b_ranges_[static_cast<std::size_t>(s * b_units_ + u)];
  }
  Rows a_writer(std::int64_t s, std::int64_t u) {
    return {a_layout_, a_memory_.data() + a_layout_.size * Rows::panels *
                                              static_cast<std::size_t>(s * a_units_ + u)};
  }
  Columns b_writer(std::int64_t s, std::int64_t u) {
    const std::int64_t unit = s * b_units_ + u;
    return {b_layout_,
            b_memory_.data() + b_layout_.size * static_cast<std::size_t>(unit / units_per_panel),
            static_cast<std::size_t>(u % units_per_panel) * unit_lines};
  }

  const FusedRow& row_;
  int group_;
  std::int64_t a_units_, b_units_, count_ = 0;
  std::vector<UnitRange> a_ranges_, b_ranges_;
  PanelLayout a_layout_, b_layout_;
  Buffer a_memory_, b_memory_;
};

/// Tiles that hang over D's edges, and matrices that are not rows of neighbours, go through a copy.
struct TileCopy {
  static constexpr int widest = 64;
  alignas(64) std::array<std::byte, std::size_t{4} * tile_rows * widest> bytes{};

  void read(const ConstMatrix& from, std::int64_t rows, std::int64_t columns) {
    const auto width = static_cast<std::size_t>(from.codes.container_bytes);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        std::memcpy(at(i, j, width), from.from(i, j).codes.data, width);
  }
  void write(const Matrix& to, std::int64_t rows, std::int64_t columns) {
    const auto width = static_cast<std::size_t>(to.codes.container_bytes);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        std::memcpy(to.from(i, j).codes.data, at(i, j, width), width);
  }
  std::byte* at(std::int64_t i, std::int64_t j, std::size_t width) {
    return bytes.data() +
           (static_cast<std::size_t>(i) * widest + static_cast<std::size_t>(j)) * width;
  }
};

/// The part of a product that one range of K adds.
template <class Lanes>
class Tiles {
 public:
  Tiles(const FusedRow& row, const TileFunctions& functions, const MatrixProduct& product,
        const PackedRange<Lanes>& packed)
      : row_(row),
        rule_{row.kept_fraction_bits, row.zero_exponent},
        functions_(functions),
        product_(product),
        packed_(packed) {}

  /// To be called before the first range.
  void read_addends() {
    large_addends_ = !Lanes::wide_exponents && functions_.wide != nullptr && any_large_addend();
  }

  /// The tiles of rows [first_row, last_row) (by eights) and panels [first, last). `from_c`: the
  /// first range, whose addend is C.
  void run(std::int64_t first_row, std::int64_t last_row, std::int64_t first, std::int64_t last,
           bool from_c) const {
    for (std::int64_t s = 0; s < packed_.strips(); ++s) {
      for (std::int64_t j = first; j < last; ++j) {
        run_column(s, first_row, last_row, j, from_c && s == 0);
      }
    }
  }

 private:
  void run_column(std::int64_t s, std::int64_t first, std::int64_t last, std::int64_t j,
                  bool from_c) const {
    alignas(64) std::array<std::byte, 512> largest;
    TileOperands coming;
    bool coming_is_wide = find(s, first, j, coming);
    for (std::int64_t i = first; i < last; ++i) {
      TileOperands x = coming;
      const bool is_wide = coming_is_wide;
      x.largest = largest.data();
      if (i + 1 < last) {
        coming_is_wide = find(s, i + 1, j, coming);
        coming.largest_is_known = coming_is_wide == is_wide;
        prefetch_sums(i + 1, j);
      }
      packed_.prefetch(s, j + 1, i - first, last - first);
      x.next_a_codes = is_wide && packs_exponents() ? coming.a_exponents : coming.a_codes;
      x.next_b_codes = is_wide && packs_exponents() ? coming.b_exponents : coming.b_codes;
      run_tile(x, i, j, from_c, is_wide ? functions_.wide : functions_.calm);
    }
  }

  bool packs_exponents() const { return row_.wide_exponents; }
  bool find(std::int64_t s, std::int64_t i, std::int64_t j, TileOperands& x) const {
    return !packed_.find(s, i, j, x) || large_addends_;
  }

  /// Rows of D often lie at strides that collide in the caches.
  void prefetch_sums(std::int64_t i, std::int64_t j) const {
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, product_.m - i * tile_rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      const Matrix d = product_.d.from(i * tile_rows + r, j * Lanes::columns);
      for (int at = 0; at < Lanes::columns * d.codes.container_bytes; at += 64)
        __builtin_prefetch(d.codes.data + at, 1);
    }
  }

  void run_tile(TileOperands& x, std::int64_t i, std::int64_t j, bool from_c,
                TileFunction function) const {
    const std::int64_t row = i * tile_rows, column = j * Lanes::columns;
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, product_.m - row);
    const std::int64_t columns = std::min<std::int64_t>(Lanes::columns, product_.n - column);
    const Matrix d = product_.d.from(row, column);
    const int width = d.codes.container_bytes;
    const bool none = from_c && product_.modifiers.zero_addend;
    ConstMatrix c{{d.codes.data, width, 0}, d.row_stride, d.column_stride};
    if (from_c && !none) c = product_.c.from(row, column);
    const bool whole = rows == tile_rows && columns == Lanes::columns && d.column_stride == 1 &&
                       c.column_stride == 1;
    if (whole) {
      x.c = none ? nullptr : c.codes.data;
      x.c_stride = c.row_stride * width;
      x.d = d.codes.data;
      x.d_stride = d.row_stride * width;
      return function(rule_, x);
    }
    TileCopy copy;
    if (!none) copy.read(c, rows, columns);
    x.c = x.d = copy.bytes.data();
    x.c_stride = x.d_stride = TileCopy::widest * width;
    function(rule_, x);
    copy.write(d, rows, columns);
  }

  /// Is any addend finite and beyond what FP32's lanes take?
  bool any_large_addend() const {
    if (product_.modifiers.zero_addend) return false;
    const std::uint64_t infinity = formats::infinity_code(formats::fp32);
    const auto limit = __builtin_bit_cast(std::uint32_t, largest_fp32_addend);
    for (std::int64_t i = 0; i < product_.m; ++i) {
      for (std::int64_t j = 0; j < product_.n; ++j) {
        const std::uint64_t magnitude = product_.c(i, j) & formats::magnitude_mask(formats::fp32);
        if (magnitude >= limit && magnitude < infinity) return true;
      }
    }
    return false;
  }

  const FusedRow& row_;
  TileRule rule_;
  TileFunctions functions_;
  const MatrixProduct& product_;
  const PackedRange<Lanes>& packed_;
  bool large_addends_ = false;
};

/// Places of K's products: whole blocks, or whole executions where those are more than a chain of
/// blocks.
inline std::int64_t places_of(const FusedRow& row, std::int64_t k) {
  const std::int64_t step = row.composition == Composition::chain ? row.block_k : row.execution_k;
  return (k + step - 1) / step * step;
}

template <class Lanes>
void multiply(const FusedRow& row, const MatrixProduct& product, int threads) {
  const TileFunctions functions = tile_functions<Lanes>(row);
  const std::int64_t all = places_of(row, product.k);
  constexpr std::int64_t range = 512;
  PackedRange<Lanes> packed(row, product.m, product.n, std::min(range, all));
  Tiles<Lanes> tiles(row, functions, product, packed);
  tiles.read_addends();
  // A task's part of a strip of A, and of D, stays in the second-level cache.
  constexpr std::int64_t rows_of_task = 64;
  const std::int64_t rows = (product.m + tile_rows - 1) / tile_rows;
  const std::int64_t panels = (product.n + Lanes::columns - 1) / Lanes::columns;
  const std::int64_t down = (rows + rows_of_task - 1) / rows_of_task;
  const std::int64_t tasks = std::int64_t{4} * formats::thread_count(threads);
  const std::int64_t panels_of_task = std::clamp<std::int64_t>(panels * down / tasks, 1, 32);
  const std::int64_t across = (panels + panels_of_task - 1) / panels_of_task;
  for (std::int64_t begin = 0; begin < all; begin += range) {
    packed.pack(product, begin, std::min(range, all - begin), threads);
    formats::parallel_for(static_cast<std::size_t>(down * across), 1, threads,
                          [&](std::size_t first, std::size_t last) {
                            const DefaultEnvironment environment;
                            for (auto t = static_cast<std::int64_t>(first);
                                 t < static_cast<std::int64_t>(last); ++t) {
                              const std::int64_t i = t % down * rows_of_task,
                                                 j = t / down * panels_of_task;
                              tiles.run(i, std::min(rows, i + rows_of_task), j,
                                        std::min(panels, j + panels_of_task), begin == 0);
                            }
                          });
  }
}

/// Too few outputs to an execution for tiles to pay.
inline bool is_small(const Shape& shape) { return shape.m * shape.n < 64; }

template <class Lanes>
void run_batch(const FusedRow& row, const MatrixBatch& batch, std::int64_t begin,
               std::int64_t end) {
  const DefaultEnvironment environment;
  const TileFunctions functions = tile_functions<Lanes>(row);
  const Shape& s = batch.shape;
  const std::int64_t all = places_of(row, s.k);
  PackedRange<Lanes> packed(row, s.m, s.n, all);
  MatrixProduct x;
  x.m = s.m;
  x.n = s.n;
  x.k = s.k;
  x.modifiers = batch.modifiers;
  Tiles<Lanes> tiles(row, functions, x, packed);
  const std::int64_t stored =
      x.k / std::max(1, row.sparsity.group_elements) * std::max(1, row.sparsity.stored_per_group);
  for (std::int64_t t = begin; t < end; ++t) {
    x.a = ConstMatrix{batch.a, stored}.from(t * s.m, 0);
    x.b = ConstMatrix{batch.b, s.n}.from(t * s.k, 0);
    x.c = ConstMatrix{batch.c, s.n}.from(t * s.m, 0);
    x.d = Matrix{batch.d, s.n}.from(t * s.m, 0);
    packed.pack(x, 0, all, 1);
    tiles.read_addends();
    tiles.run(0, (x.m + tile_rows - 1) / tile_rows, 0, (x.n + Lanes::columns - 1) / Lanes::columns,
              true);
  }
}

}  // namespace guardbit::emulator::fused
