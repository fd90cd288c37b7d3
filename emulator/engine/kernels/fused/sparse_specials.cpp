#include "emulator/engine/kernels/fused/sparse_specials.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/model/mma.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::sparse_specials {

namespace {

enum class Special : std::uint8_t { nan, positive, negative };

struct Place {
  std::int32_t k;
  Special special;
};

/// Codes from this magnitude on are infinities and NaNs.
std::uint64_t first_special(const Format& f) {
  if (formats::has_infinity(f)) return formats::infinity_code(f);
  return formats::has_nan(f) ? formats::magnitude_mask(f) : formats::magnitude_mask(f) + 1;
}

/// A copy of B without specials, and where they were, column by column.
struct FiniteB {
  std::vector<std::byte> codes;
  std::vector<std::vector<Place>> specials;

  FiniteB(const MatrixInstruction& instruction, const MatrixProduct& x)
      : codes(static_cast<std::size_t>(x.k * x.n * x.b.codes.container_bytes)),
        specials(static_cast<std::size_t>(x.n)) {
    const Format& f = instruction.b;
    const std::uint64_t magnitude = formats::magnitude_mask(f), special = first_special(f);
    const std::uint64_t one =
        formats::encode(f, formats::Value{formats::Kind::finite, false, 0, 1});
    const Codes to{codes.data(), x.b.codes.container_bytes};
    for (std::int64_t k = 0; k < x.k; ++k) {
      for (std::int64_t j = 0; j < x.n; ++j) {
        const std::uint64_t code = x.b(k, j);
        const bool is_special = (code & magnitude) >= special;
        const std::uint64_t kept = is_special ? one | (code & formats::sign_mask(f)) : code;
        to.set(k * x.n + j, kept << x.b.codes.shift);
        if (!is_special) continue;
        const bool is_infinity = formats::has_infinity(f) && (code & magnitude) == special;
        const bool negative = ((code & formats::sign_mask(f)) != 0) != x.modifiers.negate_b;
        specials[static_cast<std::size_t>(j)].push_back(
            {static_cast<std::int32_t>(k), !is_infinity ? Special::nan
                                           : negative   ? Special::negative
                                                        : Special::positive});
      }
    }
  }
};

constexpr std::int64_t band_rows = 256;
/// Of a band's rows.
using Bits = std::array<std::uint64_t, band_rows / 64>;

void include(Bits& to, const Bits& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] |= more[i];
}

/// For each k, the rows of a band that store a zero, a positive or a negative number there.
struct StoredSigns {
  struct At {
    Bits zero{}, positive{}, negative{};
  };
  std::vector<At> of;

  StoredSigns(const MatrixInstruction& instruction, const MatrixProduct& x, std::int64_t first,
              std::int64_t rows)
      : of(static_cast<std::size_t>(x.k)) {
    const std::uint64_t magnitude = formats::magnitude_mask(instruction.a);
    const std::int64_t stored =
        x.k / instruction.sparsity.group_elements * instruction.sparsity.stored_per_group;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto word = static_cast<std::size_t>(i / 64);
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      for (std::int64_t s = 0; s < stored; ++s) {
        const std::uint64_t code = negated(instruction.a, x.a(first + i, s), x.modifiers.negate_a);
        const int k =
            dense_k(instruction.sparsity, static_cast<int>(s), static_cast<int>(x.e(first + i, s)));
        At& at = of[static_cast<std::size_t>(k)];
        const bool negative = (code & formats::sign_mask(instruction.a)) != 0;
        ((code & magnitude) == 0 ? at.zero : negative ? at.negative : at.positive)[word] |= bit;
      }
    }
  }
};

/// What touched products of a column come to, row by row of a band.
struct Touched {
  Bits nan{}, positive{}, negative{};

  Touched(const StoredSigns& stored, const std::vector<Place>& specials, const Bits& all) {
    for (const Place& place : specials) {
      if (is_nan_everywhere(all)) break;
      const StoredSigns::At& at = stored.of[static_cast<std::size_t>(place.k)];
      include(nan, at.zero);
      const bool is_nan = place.special == Special::nan;
      const bool flips = place.special == Special::negative;
      include(is_nan ? nan : flips ? negative : positive, at.positive);
      include(is_nan ? nan : flips ? positive : negative, at.negative);
    }
  }

 private:
  /// Further products change nothing.
  bool is_nan_everywhere(const Bits& all) const {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      others |= all[i] & ~(nan[i] | (positive[i] & negative[i]));
    return others == 0;
  }
};

/// The largest finite number of a matrix; scales may be NaN.
double largest(const Format& f, const ConstMatrix& x, std::int64_t rows, std::int64_t columns) {
  const std::uint64_t magnitude = formats::magnitude_mask(f), special = first_special(f);
  std::uint64_t found = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::uint64_t code = x(i, j) & magnitude;
      if (code < special) found = std::max(found, code);
    }
  }
  const formats::Value v = formats::decode(f, found);
  return std::ldexp(static_cast<double>(v.significand), v.exponent);
}

/// Might a sum of finite terms round to an infinity? Twice their magnitudes allow for what up to
/// 1024 roundings of 11 bits add.
bool can_overflow(const MatrixInstruction& instruction, const MatrixProduct& x) {
  const std::int64_t stored =
      x.k / instruction.sparsity.group_elements * instruction.sparsity.stored_per_group;
  double products =
      largest(instruction.a, x.a, x.m, stored) * largest(instruction.b, x.b, x.k, x.n);
  if (instruction.scale.count != 0) {
    const std::int64_t scales = scales_along(instruction, x.k);
    products *= largest(instruction.scale.format, x.a_scale, x.m, scales) *
                largest(instruction.scale.format, x.b_scale, scales, x.n);
  }
  const double addend = x.modifiers.zero_addend ? 0 : largest(instruction.c, x.c, x.m, x.n);
  const formats::Value most =
      formats::decode(instruction.d, formats::max_finite_code(instruction.d));
  const double limit = std::ldexp(static_cast<double>(most.significand), most.exponent);
  const std::int64_t blocks = stored / std::max(1, instruction.steps.list[0].spec.terms) + 1;
  return blocks > 1024 || 2 * (products * static_cast<double>(stored) + addend) >= limit;
}

/// Replaces what tiles made of a touched output; false where only an execution can say.
bool settle(const MatrixInstruction& instruction, const Matrix& d, std::int64_t i, std::int64_t j,
            bool nan, bool positive, bool negative, bool may_overflow) {
  const ConstCodes codes{d.codes.data, d.codes.container_bytes, 0};
  const std::uint64_t tile = codes[i * d.row_stride + j * d.column_stride];
  const std::uint64_t infinity = formats::infinity_code(instruction.d);
  const std::uint64_t magnitude = tile & formats::magnitude_mask(instruction.d);
  const bool tile_is_negative = (tile & formats::sign_mask(instruction.d)) != 0;
  nan = nan || (positive && negative);
  if (!nan && (magnitude > infinity || (magnitude == infinity && tile_is_negative == positive))) {
    if (may_overflow) return false;
    nan = true;
  }
  d.set(i, j,
        nan        ? formats::all_ones_nan_code(instruction.d)
        : positive ? infinity
                   : infinity | formats::sign_mask(instruction.d));
  return true;
}

}  // namespace

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              const Multiply& by_tiles, const Multiply& exactly) {
  const FiniteB b(instruction, product);
  MatrixProduct finite = product;
  finite.b = {{b.codes.data(), product.b.codes.container_bytes, product.b.codes.shift}, product.n};
  const bool may_overflow = can_overflow(instruction, finite);
  // D may be C, which executions begin with.
  std::vector<std::byte> addends;
  MatrixProduct original = product;
  if (may_overflow && !product.modifiers.zero_addend) {
    const int width = product.c.codes.container_bytes;
    addends.resize(static_cast<std::size_t>(product.m * product.n * width));
    const Codes copy{addends.data(), width};
    for (std::int64_t i = 0; i < product.m; ++i)
      for (std::int64_t j = 0; j < product.n; ++j) copy.set(i * product.n + j, product.c(i, j));
    original.c = {{addends.data(), width, 0}, product.n};
  }
  by_tiles(finite);

  const std::int64_t bands = (product.m + band_rows - 1) / band_rows;
  formats::parallel_for(
      static_cast<std::size_t>(bands), 1, threads, [&](std::size_t first_band, std::size_t last) {
        for (auto band = static_cast<std::int64_t>(first_band);
             band < static_cast<std::int64_t>(last); ++band) {
          const std::int64_t first = band * band_rows;
          const std::int64_t rows = std::min(band_rows, product.m - first);
          const StoredSigns stored(instruction, product, first, rows);
          Bits all{};
          for (std::int64_t i = 0; i < rows; ++i)
            all[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
          for (std::int64_t j = 0; j < product.n; ++j) {
            const std::vector<Place>& specials = b.specials[static_cast<std::size_t>(j)];
            if (specials.empty()) continue;
            const Touched touched(stored, specials, all);
            for (std::int64_t i = 0; i < rows; ++i) {
              const auto bit = [i](const Bits& bits) {
                return (bits[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) != 0;
              };
              const bool nan = bit(touched.nan), positive = bit(touched.positive),
                         negative = bit(touched.negative);
              if (!nan && !positive && !negative) continue;
              if (!settle(instruction, product.d, first + i, j, nan, positive, negative,
                          may_overflow))
                exactly(original.part(first + i, 1, j, 1));
            }
          }
        }
      });
}

}  // namespace guardbit::emulator::sparse_specials
