#include "emulator/engine/kernels/group/group_gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "emulator/engine/executions.hpp"
#include "emulator/engine/kernels/group/group_tile.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/byte_panels.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/mma.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::group_gemm {

namespace {

using groups::ExponentRange;
using groups::groups_of_block;
using groups::tile_columns;
using groups::tile_rows;

constexpr int group_products = 16;

/// What packing needs to know of a scale format.
struct Scales {
  /// NaN where the code is one
  std::array<double, 256> values{};
  std::array<std::int32_t, 256> exponents{};
  groups::ScaleRule rule;

  explicit Scales(const Format& f) {
    rule.fraction_bits = 2 * f.fraction_bits - groups::scale_of_b_exponent;
    for (std::size_t code = 0; code < values.size(); ++code) {
      const formats::Value v = formats::decode(f, code);
      if (v.kind == formats::Kind::nan) values[code] = std::numeric_limits<double>::quiet_NaN();
      if (v.kind != formats::Kind::finite) continue;
      values[code] = std::ldexp(static_cast<double>(v.significand), v.exponent);
      exponents[code] = aligned_exponent(v, f);
    }
  }
};

const Scales& scales_of(const Format& f) {
  static const Scales e8m0(formats::e8m0), ue4m3(formats::ue4m3);
  return f == formats::e8m0 ? e8m0 : ue4m3;
}

/// Twice the value of each code, plus an offset, as bytes.
std::array<std::byte, 16> doubled_values(const Format& f, bool negate, int offset) {
  std::array<std::byte, 16> bytes{};
  for (std::size_t code = 0; code < bytes.size(); ++code) {
    const formats::Value v = formats::decode(f, negated(f, code, negate));
    const int twice = static_cast<int>(v.significand) << (v.exponent + 1);
    bytes[code] = static_cast<std::byte>((v.negative ? -twice : twice) + offset);
  }
  return bytes;
}

/// How the lines of an operand become a panel.
struct Side {
  /// of codes
  std::array<std::byte, 16> bytes{};
  /// of the bytes
  int offset = 0;
  /// lines of a panel
  int width = 0;
  ConstMatrix scales{};
  /// element (index, line) instead of (line, index)
  bool scales_by_columns = false;
};

/// Where the parts of a panel begin, in bytes, for so many groups.
struct Layout {
  std::int64_t scales = 0, starts = 0, nonzero = 0, exponents = 0, ranges = 0, size = 0;

  Layout(std::int64_t group_count, std::int64_t places, bool is_b, int width) {
    const std::int64_t lines = group_count * width;
    scales = lines * places;
    starts = scales + lines * (is_b ? 16 : 8);
    nonzero = starts + (is_b ? 0 : lines * lane_bytes);
    exponents = nonzero + lines * lane_bytes;
    ranges = exponents + lines * lane_bytes;
    size = round_up(
        ranges + group_count / groups_of_block * static_cast<std::int64_t>(sizeof(ExponentRange)),
        64);
  }
};

/// The place of a line among the scales of its panel, so many of B's together.
std::int64_t place_of(std::int64_t line, bool is_b, int together) {
  if (!is_b) return line;
  return line / together * together + line % 2 * (together / 2) + line % together / 2;
}

groups::Functions functions_of(std::int64_t places_of_group, VectorSet set) {
  [[maybe_unused]] const auto places = static_cast<int>(places_of_group);
  if constexpr (compiles_x86) {
    if (set == VectorSet::avx512) return groups::functions_avx512(places);
    if (set == VectorSet::avx2) return groups::functions_avx2(places);
  }
  if constexpr (compiles_arm) {
    if (set == VectorSet::neon) return groups::functions_neon(places);
  }
  return {};
}

class Kernel {
 public:
  struct Environment : DefaultEnvironment {
    explicit Environment(const Kernel&) {}
  };

  /// `scales`: of each line that count.
  Kernel(const MatrixInstruction& instruction, const MatrixProduct& product, std::int64_t scales,
         VectorSet set)
      : instruction_(instruction),
        product_(product),
        scale_count_(scales),
        scales_(scales_of(instruction.scale.format)),
        places_(places_of_group(instruction)),
        functions_(functions_of(places_, set)) {
    a_.bytes = doubled_values(instruction.a, product.modifiers.negate_a, 0);
    a_.width = tile_rows;
    a_.scales = product.a_scale;
    b_.offset = 12;
    b_.bytes = doubled_values(instruction.b, product.modifiers.negate_b, b_.offset);
    b_.width = tile_columns;
    b_.scales = product.b_scale;
    b_.scales_by_columns = true;
  }

  /// Places of K that 16 products of A take: those themselves, or, of sparse instructions, more.
  static std::int64_t places_of_group(const MatrixInstruction& instruction) {
    return std::int64_t{group_products} * instruction.shape.k /
           stored_k(instruction, instruction.shape.k);
  }

  /// A panel of B stays in the first cache, a block of A in the second.
  PanelBlocking blocking() const {
    const std::int64_t block = places_ * groups_of_block;
    const std::int64_t depth = std::min<std::int64_t>(round_up(product_.k, block), 512);
    return {{tile_rows, tile_columns, depth, 512, round_up(4096, tile_columns)},
            static_cast<std::size_t>(layout(depth, false).size),
            static_cast<std::size_t>(layout(depth, true).size)};
  }

  void pack_a(std::byte* to, std::int64_t i, std::int64_t k, std::int64_t length) const {
    const RowsOfA rows(instruction_, product_, tile_rows, i, k, length);
    pack(rows.lines(), a_, i, k, to);
  }

  void pack_b(std::byte* to, std::int64_t j, std::int64_t k, std::int64_t length) const {
    const Lines columns = columns_of_b(product_, tile_columns, j, k, length);
    pack(columns, b_, j, k, to);
  }

  void tile(const std::byte* a, const std::byte* b, std::int64_t i, std::int64_t j, std::int64_t k,
            std::int64_t length) const {
    const std::int64_t blocks = groups_of(length) / groups_of_block;
    const groups::Panel rows = panel(a, layout(length, false));
    const groups::Panel columns = panel(b, layout(length, true));
    visit_tile<std::uint32_t, tile_rows, tile_columns>(
        product_, i, j, k == 0,
        [&](const std::byte* from, std::int64_t from_stride, std::byte* to,
            std::int64_t to_stride) {
          functions_.tile(scales_.rule, rows, columns, blocks, from, from_stride, to, to_stride);
        });
  }

 private:
  /// In whole blocks.
  std::int64_t groups_of(std::int64_t length) const {
    const std::int64_t block = places_ * groups_of_block;
    return (length + block - 1) / block * groups_of_block;
  }
  Layout layout(std::int64_t length, bool is_b) const {
    return {groups_of(length), places_, is_b, is_b ? tile_columns : tile_rows};
  }
  static groups::Panel panel(const std::byte* from, const Layout& at) {
    return {from,
            from + at.scales,
            from + at.starts,
            from + at.nonzero,
            from + at.exponents,
            reinterpret_cast<const ExponentRange*>(from + at.ranges)};
  }

  void pack(const Lines& lines, const Side& side, std::int64_t first_line, std::int64_t k,
            std::byte* to) const {
    const bool is_b = side.scales_by_columns;
    const std::int64_t count = groups_of(lines.length), width = side.width;
    const Layout at = layout(lines.length, is_b);
    const std::int64_t quads = places_ / 4;
    for (std::int64_t q = gather_by_lines(lines, width, to); q < count * quads; ++q)
      gather_group(lines, q, width, to + q * width * lane_bytes);
    ExponentRange range;
    for (std::int64_t g = 0; g < count; ++g) {
      if (g % groups_of_block == 0) range = {};
      Group group = {to + g * quads * width * lane_bytes,
                     to + at.scales + g * width * (is_b ? 16 : 8),
                     {},
                     {},
                     {}};
      for (std::int64_t part = 0; part < width; part += 4)
        functions_.convert(
            {group.elements + part * lane_bytes, width * lane_bytes, static_cast<int>(quads)},
            side.bytes.data(), group.nonzero.data() + part, group.sums.data() + part);
      write_scales(lines, side, first_line, k / places_ + g, group, range);
      const auto write = [&](std::int64_t where, const auto& words) {
        std::memcpy(to + where + g * width * lane_bytes, words.data(),
                    static_cast<std::size_t>(width * lane_bytes));
      };
      if (!is_b) {
        for (std::int32_t& sum : group.sums) sum = groups::first_sum - b_.offset * sum;
        write(at.starts, group.sums);
      }
      write(at.nonzero, group.nonzero);
      write(at.exponents, group.exponents);
      std::memcpy(
          to + at.ranges + g / groups_of_block * static_cast<std::int64_t>(sizeof(ExponentRange)),
          &range, sizeof range);
    }
  }

  /// A group of a panel while it is packed, line by line.
  struct Group {
    std::byte *elements = nullptr, *scales = nullptr;
    std::array<std::uint32_t, tile_columns> nonzero;
    std::array<std::int32_t, tile_columns> exponents, sums;
  };

  /// The scales of a group, which is group `index` of K. Lines whose scale is zero become zeros;
  /// the exponents of those that count enter the range.
  void write_scales(const Lines& lines, const Side& side, std::int64_t first_line,
                    std::int64_t index, Group& group, ExponentRange& range) const {
    const bool is_b = side.scales_by_columns;
    const std::int64_t scale = index * instruction_.scale.count * places_ / instruction_.shape.k;
    for (std::int64_t line = 0; line < side.width; ++line) {
      const auto i = static_cast<std::size_t>(line);
      const bool there = line < lines.lines && scale < scale_count_;
      double value = 0;
      if (there) {
        const std::int64_t at = first_line + line;
        const auto code =
            static_cast<std::size_t>(is_b ? side.scales(scale, at) : side.scales(at, scale)) & 0xFF;
        value = scales_.values[code];
        group.exponents[i] = scales_.exponents[code] + (is_b ? 0 : groups::exponent_bias);
        if (value == 0) clear(side, line, group);
        if (group.nonzero[i] != 0 && value == value) {
          range.lowest = std::min(range.lowest, scales_.exponents[code]);
          range.highest = std::max(range.highest, scales_.exponents[code]);
        }
      }
      std::byte* const place = group.scales + place_of(line, is_b, functions_.columns_together) * 8;
      if (is_b) {
        value /= 4;
        const double start = -groups::first_sum_value * value;
        std::memcpy(place + std::int64_t{8} * tile_columns, &start, sizeof start);
      }
      std::memcpy(place, &value, sizeof value);
    }
  }

  void clear(const Side& side, std::int64_t line, Group& group) const {
    group.nonzero[static_cast<std::size_t>(line)] = 0;
    group.sums[static_cast<std::size_t>(line)] = 0;
    for (std::int64_t q = 0; q < places_ / 4; ++q)
      std::memset(group.elements + (q * side.width + line) * lane_bytes,
                  std::to_integer<int>(side.bytes[0]), lane_bytes);
  }

  const MatrixInstruction& instruction_;
  const MatrixProduct& product_;
  std::int64_t scale_count_;
  const Scales& scales_;
  /// of a group
  std::int64_t places_;
  groups::Functions functions_;
  Side a_, b_;
};

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
              std::int64_t scales, int threads, VectorSet set) {
  const Kernel kernel(instruction, product, scales, set);
  multiply_by_panels(kernel, product, threads);
}

bool has_fp4_sums(const AccumulatorSpec& x) {
  AccumulatorSpec expected;
  expected.terms = groups_of_block * group_products;
  expected.exact_group = group_products;
  expected.kept_fraction_bits = groups::kept_fraction_bits;
  expected.min_exponent = groups::zero_exponent;
  return x == expected;
}

}  // namespace

bool accepts(const MatrixInstruction& instruction, VectorSet set) {
  const Step& step = instruction.steps.list[0];
  const bool is_one_dot = instruction.steps.count == 1 && step.operation == Operation::dot &&
                          step.selection == Selection{} && step.addend == Source::c &&
                          !step.widened;
  const bool has_scales =
      instruction.scale.format == formats::e8m0 || instruction.scale.format == formats::ue4m3;
  if (!is_one_dot || !has_scales || !has_fp4_sums(step.spec) || instruction.a != formats::e2m1 ||
      instruction.b != formats::e2m1 || instruction.c != formats::fp32 ||
      instruction.d != formats::fp32 || step.result != formats::fp32)
    return false;
  const std::int64_t places = Kernel::places_of_group(instruction);
  return instruction.scale.count != 0 && instruction.shape.k % (places * groups_of_block) == 0 &&
         instruction.shape.k / instruction.scale.count % places == 0 &&
         functions_of(places, set).tile != nullptr;
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set) {
  if (has_shared_places(instruction, product))
    return multiply_by_executions(execute, instruction, product, threads);
  multiply(instruction, product, scales_along(instruction, product.k), threads, set);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set) {
  for (std::int64_t t = begin; t < end; ++t) {
    const MatrixProduct product = product_of(instruction, batch, t);
    if (has_shared_places(instruction, product)) {
      execute(instruction, batch, t, t + 1);
    } else {
      multiply(instruction, product, instruction.scale.count, 1, set);
    }
  }
}

}  // namespace guardbit::emulator::group_gemm
