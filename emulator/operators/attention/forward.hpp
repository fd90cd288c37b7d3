#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "emulator/operators/attention/attention.hpp"
#include "emulator/operators/attention/dropout.hpp"

// Forward kernels of attention as data, and the one interpreter that computes them.
//
// A kernel takes a tile of queries and goes over tiles of keys. For each it multiplies queries with
// keys, keeps the largest score of a row so far, rescales its sum and its output, adds the
// exponentials to the sum, rounds them and multiplies them with the values.
namespace guardbit::emulator::attention {

/// How a score S becomes an exponent of 2. sl2 is scale * log2(e), rounded once.
enum class Scores : std::uint8_t {
  /// the maximum is of S; exponents are RN(S * sl2) - RN(maximum * sl2)
  after_maximum,
  /// z = RN(S * sl2), with sl2 as FP32 numbers give it, or RN(fma(S, scale, bias) * log2(e)); the
  /// maximum is of z; exponents are z - maximum
  before_maximum,
  /// z = RN(RN(RN(S * scale) + bias) * log2(e)); else the same
  twice_before_maximum,
};
constexpr auto words(Scores) {
  return std::array{"after_maximum", "before_maximum", "twice_before_maximum"};
}

/// How the exponentials of a row are added.
enum class RowSum : std::uint8_t {
  /// four threads take two neighbours of every eight columns; each adds them to its sum, the first
  /// by an FMA with the factor that rescales the sum
  running,
  /// the same threads, a fresh sum for each tile, which an FMA adds
  fresh,
  /// warps of 32 columns have four such threads each, whose fresh sums are added as neighbours; one
  /// after the other they are added to the rescaled sum of the row
  warps,
};
constexpr auto words(RowSum) { return std::array{"running", "fresh", "warps"}; }

/// How logsumexp is made of the maximum m and the sum s.
enum class LogSum : std::uint8_t {
  /// fma(m, scale, lg2(s) * ln(2))
  fused_scale,
  /// fma(m, ln(2), lg2(s) * ln(2)), without subnormal numbers
  fused_ln2,
  /// m / log2(e) + logf(s)
  divided,
};
constexpr auto words(LogSum) { return std::array{"fused_scale", "fused_ln2", "divided"}; }

struct ForwardForm {
  std::string_view name;
  int query_tile = 0, key_tile = 0;
  /// So many warps share the keys of a tile. Each has outputs of its own; at the end those of
  /// distant warps are added first.
  int key_warps = 1;
  /// products of a block of the unit
  int products = 16;
  bool keys_descend = false;
  Scores scores = Scores::after_maximum;
  RowSum row_sum = RowSum::running;
  LogSum log_sum = LogSum::fused_scale;
  /// 2^x by the unit alone, whose subnormal results are 0
  bool flushes_exponentials = false;
  /// the sums of threads 0 and 2 meet first, not those of neighbours
  bool pairs_apart = false;
  /// 1 / s by the special function unit alone
  bool approximates_reciprocal = false;
  /// outputs wait in memory between key tiles, whose products begin with 0
  bool keeps_output_in_memory = false;
  /// a fused form of S * sl2 - maximum * sl2: upstream's, which PyTorch switches off
  bool fuses_exponent = false;
  /// logsumexp of a row that sees no key, where log_sum is fused_scale
  float empty_log_sum = std::numeric_limits<float>::infinity();
  DropoutOrder dropout = DropoutOrder::none;
};

/// Tiles of keys [first, last) of one row of thread blocks.
struct KeyTiles {
  std::int64_t first = 0, last = 0;
};

/// Everything by one row of thread blocks.
ForwardResult compute_forward(const ForwardForm& form, const Problem& problem);
/// The keys split over `splits` rows of thread blocks, whose results a second kernel combines.
ForwardResult compute_split_forward(const ForwardForm& form, const Problem& problem, int splits);

}  // namespace guardbit::emulator::attention
