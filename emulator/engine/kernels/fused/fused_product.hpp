#pragma once

// A whole matrix product by tiles: operands are packed a range of K at a time, then every tile runs
// its blocks of that range.

#include <cfenv>

#include "emulator/engine/kernels/fused/band_source.hpp"
#include "emulator/engine/kernels/fused/packed_operand.hpp"
#include "emulator/engine/kernels/fused/tile_functions.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/engine/kernels/shared/panel_memory.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::fused {

/// Tiles that hang over D's edges, and matrices that are not rows of neighbours, go through a copy.
template <class Isa>
struct TileCopy {
  static constexpr int widest = 64, most_rows = 8;
  alignas(64) std::array<std::byte, std::size_t{4} * most_rows * widest> bytes;

  void read(const ConstMatrix& from, std::int64_t rows, std::int64_t columns) {
    bytes.fill({});
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

/// A product in parts (blocked_product.hpp). A part's columns of B stay in the third-level cache. A
/// task packs its rows of A just before it takes every panel of B past them, so that they never
/// leave the second. Sums wait for the next part of K as the lanes hold them, tile by tile, and
/// become D after the last.
template <class Lanes>
class Product {
 public:
  using Rows = PackedOperand<RowWriter<Lanes>>;
  using Columns = PackedOperand<ColumnWriter<Lanes>>;

  /// Kept from one product to the next.
  struct Memory {
    Columns columns;
    PanelMemory sums;
  };

  Product(const FusedInstruction& instruction, const TileFunctions& functions,
          const MatrixProduct& x, Memory& memory)
      : instruction_(instruction),
        rule_{instruction.kept_fraction_bits, instruction.zero_exponent},
        functions_(functions),
        x_(x),
        group_(std::min(instruction.block_k, Lanes::sign_group)),
        strip_(std::clamp(4 * instruction.block_k, Lanes::strip, piece)),
        places_(places_of(instruction, x.k)),
        b_(memory.columns),
        sums_(memory.sums) {}

  void run(int threads) {
    large_addends_ = !Lanes::any_exponents && functions_.general != nullptr && any_large_addend();
    // 32 MiB of sums
    constexpr std::int64_t part_rows = 4096, part_columns = 1024;
    // Panels of A come in bands of 2 tiles.
    const Blocking blocking{tile_rows,    Lanes::columns, Lanes::part_places,     task_rows,
                            part_columns, part_rows,      band_lines / tile_rows, panels_together};
    multiply_in_parts(*this, blocking, x_, places_, threads);
  }

  /// Packs B, and its exponents if those of the part may leave the normal range.
  void pack_columns(const Part& part, int threads) {
    if (waits())
      sums_.resize(sum_bytes * static_cast<std::size_t>(tiles_of(part) * panels_of(part)));
    const BandRange of_rows =
        instruction_.any_exponents ? range_of_rows(part, threads) : BandRange{};
    b_.prepare(instruction_, group_, part.columns, part.length, strip_);
    const Source from = b_source<typename Lanes::Set>(instruction_, x_, group_);
    pack_values(from, part.column, part, b_, threads);
    has_exponents_ = instruction_.any_exponents && !fused::stays_normal(of_rows, b_.whole_range());
    if (has_exponents_) pack_exponents(from, part.column, part, b_, threads);
  }

  void multiply(const Part& part, const Task& task) const {
    const DefaultEnvironment environment;
    static thread_local PanelMemory memory;
    static thread_local Rows rows;
    if (!waits())
      memory.resize(sum_bytes * static_cast<std::size_t>(task.tiles() * panels_together));
    const bool begins = part.k == 0, ends = part.k + part.length == places_;
    pack_rows(part, task, rows);
    alignas(64) std::array<std::byte, 512> largest;
    Place at{task.tile_begin, task.panel_begin, 0};
    TileOperands coming;
    bool coming_is_general = find(rows, task, at, coming);
    for (std::int64_t first = task.panel_begin; first < task.panel_end; first += panels_together) {
      const std::int64_t last = std::min(first + panels_together, task.panel_end);
      const auto sums_of = [&](std::int64_t tile, std::int64_t panel) {
        if (waits())
          return sums_.data() + sum_bytes * static_cast<std::size_t>(panel * tiles_of(part) + tile);
        const std::int64_t index = (panel - first) * task.tiles() + tile - task.tile_begin;
        return memory.data() + sum_bytes * static_cast<std::size_t>(index);
      };
      // Panels side by side, since the rows of D often lie at strides that collide in the caches.
      const auto convert = [&](bool begin) {
        for (std::int64_t i = task.tile_begin; i < task.tile_end; ++i)
          for (std::int64_t j = first; j < last; ++j)
            convert_sums(part, i, j, sums_of(i, j), begin);
      };
      if (begins) convert(true);
      {
        const TileRounding rounding(FE_TOWARDZERO);
        while (at.panel < last) {
          TileOperands x = coming;
          const bool is_general = coming_is_general;
          x.sums = sums_of(at.tile, at.panel);
          if (begins && at.panel == last - 1 && at.strip == b_.strips() - 1 &&
              last < task.panel_end)
            prefetch_sums(part, at.tile, last, task.panel_end);
          if (advance(task, at)) {
            if (waits()) prefetch_lines(sums_of(at.tile, at.panel), sum_bytes);
            coming_is_general = find(rows, task, at, coming);
            coming.largest_is_known = coming_is_general == is_general;
          }
          const bool by_exponents = is_general && instruction_.any_exponents;
          x.next_a_codes = by_exponents ? coming.a_exponents : coming.a_codes;
          x.next_b_codes = by_exponents ? coming.b_exponents : coming.b_codes;
          x.largest = largest.data();
          (is_general ? functions_.general : functions_.normal)(rule_, x);
        }
      }
      if (ends) convert(false);
    }
  }

 private:
  using Source = BandSource<typename Lanes::Set>;
  static constexpr int tile_rows = Lanes::rows;
  static constexpr std::int64_t task_rows = 192;
  /// whose sums wait at a time
  static constexpr std::int64_t panels_together = 4;
  static constexpr std::size_t sum_bytes =
      sizeof(typename Lanes::Vector) * Lanes::vectors * tile_rows;

  static std::int64_t tiles_of(const Part& part) { return pieces(part.rows, tile_rows); }
  static std::int64_t panels_of(const Part& part) { return pieces(part.columns, Lanes::columns); }

  /// Do sums wait for another part?
  bool waits() const { return places_ > Lanes::part_places; }

  /// Calls visit(band) for every band of so many.
  template <class Visit>
  static void each_band(std::int64_t bands, int threads, const Visit& visit) {
    formats::parallel_for(static_cast<std::size_t>(bands), 4, threads,
                          [&](std::size_t first, std::size_t last) {
                            const DefaultEnvironment environment;
                            for (std::size_t u = first; u < last; ++u)
                              visit(static_cast<std::int64_t>(u));
                          });
  }

  /// Exponents of the part's rows of A at its places.
  BandRange range_of_rows(const Part& part, int threads) const {
    const Source from = a_source<typename Lanes::Set>(instruction_, x_, group_);
    const std::int64_t bands = pieces(part.rows, band_lines);
    std::vector<BandRange> ranges(static_cast<std::size_t>(bands));
    each_band(bands, threads, [&](std::int64_t u) {
      ranges[static_cast<std::size_t>(u)] =
          from.range(part.row + u * band_lines, part.k, part.length);
    });
    BandRange all = ranges.front();
    for (const BandRange& range : ranges) all.include(range);
    return all;
  }
  void pack_rows(const Part& part, const Task& task, Rows& a) const {
    const std::int64_t row = part.row + task.tile_begin * tile_rows;
    a.prepare(instruction_, group_, std::min(x_.m - row, task.tiles() * tile_rows), part.length,
              strip_);
    const Source from = a_source<typename Lanes::Set>(instruction_, x_, group_);
    pack_values(from, row, part, a, 1);
    if (has_exponents_) pack_exponents(from, row, part, a, 1);
  }
  template <class Operand>
  void pack_values(const Source& from, std::int64_t line, const Part& part, Operand& to,
                   int threads) const {
    each_band(to.bands(), threads, [&](std::int64_t u) {
      for (std::int64_t s = 0; s < to.strips(); ++s)
        to.range(s, u) =
            from.pack(line + u * band_lines, part.k + s * strip_, to.places(s), to.writer(s, u));
    });
  }
  template <class Operand>
  void pack_exponents(const Source& from, std::int64_t line, const Part& part, Operand& to,
                      int threads) const {
    each_band(to.bands(), threads, [&](std::int64_t u) {
      for (std::int64_t s = 0; s < to.strips(); ++s)
        from.pack_exponents(line + u * band_lines, part.k + s * strip_, to.places(s),
                            to.writer(s, u));
    });
  }

  /// A tile and one of its strips.
  struct Place {
    std::int64_t tile, panel, strip;
  };

  /// Rows go by first, then strips. False at the end.
  bool advance(const Task& task, Place& at) const {
    if (++at.tile < task.tile_end) return true;
    at.tile = task.tile_begin;
    if (++at.strip < b_.strips()) return true;
    at.strip = 0;
    return ++at.panel < task.panel_end;
  }

  /// Brings memory to the first-level cache.
  static void prefetch_lines(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 3);
  }
  /// Brings what the sums of the next panels begin from there.
  void prefetch_sums(const Part& part, std::int64_t tile, std::int64_t panel,
                     std::int64_t panel_end) const {
    if (x_.modifiers.zero_addend) return;
    const ConstMatrix& from = x_.c;
    const std::int64_t column = part.column + panel * Lanes::columns;
    const std::int64_t columns =
        std::min(std::min(panel_end - panel, panels_together) * Lanes::columns, x_.n - column);
    if (from.column_stride != 1) return;
    for (std::int64_t r = 0; r < tile_rows; ++r) {
      const std::int64_t row = part.row + tile * tile_rows + r;
      if (row >= x_.m) return;
      const std::byte* const line = from.from(row, column).codes.data;
      prefetch_lines(line, static_cast<std::size_t>(columns * from.codes.container_bytes));
    }
  }

  /// Sets all of A and B for a tile; true if it is general.
  bool find(const Rows& rows, const Task& task, const Place& at, TileOperands& x) const {
    const std::int64_t tile = at.tile - task.tile_begin;
    const std::byte* const panel = rows.panel(at.strip, tile);
    const std::byte* const columns = b_.panel(at.strip, at.panel);
    const PanelLayout &of_a = rows.layout(), &of_b = b_.layout();
    x.a_values = panel + of_a.values;
    x.a_codes = panel + of_a.codes;
    x.a_exponents = panel + of_a.exponents;
    x.a_signs = panel + of_a.signs;
    x.b_values = columns + of_b.values;
    x.b_codes = columns + of_b.codes;
    x.b_exponents = columns + of_b.exponents;
    x.b_signs = columns + of_b.signs;
    x.blocks = static_cast<int>(b_.places(at.strip) / instruction_.block_k);
    constexpr std::int64_t bands = std::max(1, Lanes::columns / band_lines);
    const BandRange& a_range = rows.range(at.strip, tile * tile_rows / band_lines);
    bool normal = true;
    x.plain = !a_range.has_specials;
    for (std::int64_t u = 0; u < bands; ++u) {
      const BandRange& b_range = b_.range(at.strip, at.panel * Lanes::columns / band_lines + u);
      x.lowest[static_cast<std::size_t>(u)] = a_range.lowest + b_range.lowest;
      x.plain = x.plain && !b_range.has_specials &&
                a_range.highest + b_range.highest <= highest_integer_product;
      normal = normal && (!instruction_.any_exponents || fused::stays_normal(a_range, b_range));
    }
    return !normal || large_addends_;
  }

  /// The sums of a tile: from C if they begin, else to D.
  void convert_sums(const Part& part, std::int64_t tile, std::int64_t panel, std::byte* sums,
                    bool begin) const {
    const SumFunctions& functions = large_addends_ ? functions_.large_sums : functions_.sums;
    const std::int64_t row = part.row + tile * tile_rows;
    const std::int64_t column = part.column + panel * Lanes::columns;
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, x_.m - row);
    const std::int64_t columns = std::min<std::int64_t>(Lanes::columns, x_.n - column);
    const Matrix d = x_.d.from(row, column);
    const int width = d.codes.container_bytes;
    const bool none = x_.modifiers.zero_addend;
    ConstMatrix c{{d.codes.data, width, 0}, d.row_stride, d.column_stride};
    if (!none) c = x_.c.from(row, column);
    TileRows at{none ? nullptr : c.codes.data, d.codes.data, c.row_stride * width,
                d.row_stride * width};
    const bool is_whole = rows == tile_rows && columns == Lanes::columns && d.column_stride == 1 &&
                          c.column_stride == 1;
    if (is_whole) return begin ? functions.begin(at, sums) : functions.end(at, sums);
    using Copy = TileCopy<typename Lanes::Set>;
    Copy copy;
    if (!none) {
      copy.read(c, rows, columns);
      at.c = copy.bytes.data();
    }
    at.d = copy.bytes.data();
    at.c_stride = at.d_stride = Copy::widest * width;
    if (begin) return functions.begin(at, sums);
    functions.end(at, sums);
    copy.write(d, rows, columns);
  }

  /// Is any addend finite and beyond what FP32's lanes take?
  bool any_large_addend() const {
    using Vectors = LineVectors<typename Lanes::Set>;
    if (x_.modifiers.zero_addend) return false;
    const auto infinity = static_cast<std::uint32_t>(formats::infinity_code(formats::fp32));
    const auto limit = __builtin_bit_cast(std::uint32_t, largest_fp32_addend);
    const auto is_large = [&](const auto& codes) {
      return (codes & 0x7FFFFFFFU) - limit < infinity - limit;
    };
    for (std::int64_t i = 0; i < x_.m; ++i) {
      const ConstMatrix row = x_.c.from(i, 0);
      std::int64_t j = 0;
      if (row.column_stride == 1) {
        typename Vectors::Integers large{};
        for (; j + Vectors::lanes <= x_.n; j += Vectors::lanes)
          large |= is_large(load<typename Vectors::Words>(row.codes.data + 4 * j));
        for (int lane = 0; lane < Vectors::lanes; ++lane)
          if (large[lane] != 0) return true;
      }
      for (; j < x_.n; ++j)
        if (is_large(static_cast<std::uint32_t>(x_.c(i, j)))) return true;
    }
    return false;
  }

  const FusedInstruction& instruction_;
  TileRule rule_;
  TileFunctions functions_;
  const MatrixProduct& x_;
  /// places whose signs stand together
  int group_;
  /// places of one
  std::int64_t strip_;
  /// of K
  std::int64_t places_;
  Columns& b_;
  PanelMemory& sums_;
  /// every tile is general for their sake
  bool large_addends_ = false;
  /// the part, of both operands
  bool has_exponents_ = false;
};

template <class Lanes>
void multiply(const FusedInstruction& instruction, const MatrixProduct& product, int threads) {
  static thread_local typename Product<Lanes>::Memory memory;
  Product<Lanes>(instruction, tile_functions<Lanes>(instruction), product, memory).run(threads);
}

}  // namespace guardbit::emulator::fused
