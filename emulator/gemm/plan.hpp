#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/functions/activation.hpp"
#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/rounding.hpp"

// A plan is everything that decides the bits of a library's matrix product; it can be written on
// one line of text.
namespace guardbit::emulator {

using formats::Format;
using formats::Rounding;

/// What multiplies and accumulates. With `arch` "simt" the unit is a scalar multiply-add of a CUDA
/// core: fma.fp32, fma.fp64, fma.fp16, mad.int32, or mul_add.fp32, whose products are rounded first
/// (mul_add.fp16, mul_add.bf16: operands, too). Otherwise it is an instruction of the catalogue.
struct GemmUnit {
  std::string arch = "simt";
  std::string instruction = "fma.fp32";
  friend bool operator==(const GemmUnit&, const GemmUnit&) = default;
};

/// How an operand becomes the unit's: rounded once, or cut into `pieces` numbers whose sum it is
/// nearly. Of the pieces' products those are taken whose ranks, 0 for the leading piece, add up to
/// less than `ranks`.
struct InputConversion {
  enum class Cut : std::uint8_t {
    /// each piece is what those before it left, rounded (3xTF32, BF16x9); one chain takes
    /// all products, smaller ones first within each instruction or run
    rest,
    /// the same times 2^shift for each piece before it (Ootomo and Yokota, IJHPCA
    /// 36, 2022): products of each total rank have a chain of their own; only the
    /// leading chain is promoted. At its end, from the last rank on,
    /// sum = fma(sum, 2^-shift, sum of the rank before) in FP32
    scaled_rest,
    /// integers of the unit's bits below the leading bit of the row's (of B: the
    /// column's) greatest magnitude, truncated (Ozaki's scheme; Ootomo, Ozaki and Yokota,
    /// IJHPCA 38, 2024): each product has a chain of its own, which is exact; these are
    /// added in the epilogue's format, those of the last rank first
    slices,
    /// the same, but products of one total rank share a chain
    grouped_slices,
  };
  Rounding rounding = Rounding::nearest_even;
  int pieces = 1;
  int ranks = 1;
  Cut cut = Cut::rest;
  /// of scaled rests
  int shift = 0;
  /// of rests: elements of K whose products of one pair of pieces come
  /// before those of the next pair, filled up with zeros to whole
  /// instructions; 0: one instruction's
  std::int64_t run = 0;
  /// of the last piece, where it is rounded in another way
  std::optional<Rounding> last = {};
  /// Of two pairs with exchanged ranks that with B's smaller piece comes first, not A's: what a
  /// compiler that exchanges the operands does.
  bool b_first = false;

  bool has_integer_slices() const { return cut == Cut::slices || cut == Cut::grouped_slices; }
  friend bool operator==(const InputConversion&, const InputConversion&) = default;
};

/// Which k's the accumulators of a partition take.
enum class Division : std::uint8_t {
  /// consecutive runs of ceil(tiles / parts) tiles; the last one shorter, or none
  ceil,
  /// consecutive runs; the first tiles % parts of them have one tile more
  balanced,
  /// consecutive runs; the last tiles % parts of them have one tile more
  balanced_last,
  /// tile t goes to accumulator t % parts
  round_robin,
};
constexpr auto words(Division) {
  return std::array{"ceil", "balanced", "balanced_last", "round_robin"};
}

/// In which order partial sums are added.
enum class SumOrder : std::uint8_t {
  /// ((p0 + p1) + p2) + ...
  ascending,
  /// ((pn + pn-1) + ...) + p0
  descending,
  /// a tree: p0 + p1, p2 + p3, ... then again
  adjacent,
  /// the same from the last part on: pn + pn-1, pn-2 + pn-3, ... then again
  adjacent_last,
  /// a tree: p[i] + p[i + n/2], then again; what a warp's shuffles do, n being their
  /// number, whether or not each has a part
  halves,
  /// four sums take the parts in turn; then ((s0 + s1) + s2) + s3. More than 32 parts become 32
  /// before: 128 sums take them in turn, then s[i] + s[i + 64], then s[i] + s[i + 32] (cuBLAS'
  /// reduction of dot products)
  by_four,
  /// of n parts all but the last go round ceil(n / 2) buffers and are added there; the
  /// last one then takes the buffers in turn: ((pn + b0) + b1) + ...
  buffers,
  /// as halves, but p[i] + p[i + h] with the greatest power of two h below n, then half of it:
  /// shuffles of a warp whose last lanes have no part
  shuffles,
  /// ((pn + p0) + p1) + ...
  last_first,
  /// of a split: each part goes through the epilogue, the first one with its addend,
  /// the others with what the one before left in D, rounded to D's format
  in_place,
};
constexpr auto words(SumOrder) {
  return std::array{"ascending", "descending", "adjacent", "adjacent_last", "halves",
                    "by_four",   "buffers",    "shuffles", "last_first",    "in_place"};
}

/// K partitioned over `parts` accumulators, whose sums are added afterwards. `tile` neighbours in K
/// always go to the same accumulator.
struct Partition {
  int parts = 1;
  /// elements of K (a tile of K)
  std::int64_t tile = 1;
  Division division = Division::ceil;
  SumOrder order = SumOrder::ascending;
  /// what a partial sum is stored in and added in
  Format sums = formats::fp32;
  /// of halves: so many neighbours are added first, then their sums (the threads of a warp, then
  /// the warps); 0: all at once
  int group = 0;

  bool whole() const { return parts <= 1; }
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Stream-K (Osama, Merrill, Cecka, Garland and Owens, PPoPP 2023): `blocks` thread blocks take
/// equal, consecutive shares of the iterations (tiles of K) of one tile of D after the other, so
/// that a tile's K is cut where a share ends. The sums of one tile are then added. 0 blocks: none.
struct StreamK {
  enum class Tiles : std::uint8_t {
    all,
    /// only the first tiles % blocks; the others are whole
    one_tile,
    /// the first blocks + tiles % blocks, where blocks do not divide the tiles
    two_tile,
  };
  friend constexpr auto words(Tiles) { return std::array{"all", "one_tile", "two_tile"}; }
  int blocks = 0;
  std::int64_t tile_m = 1, tile_n = 1, tile_k = 1;
  Tiles tiles = Tiles::all;
  /// order of tiles: down the columns of D, not along its rows
  bool along_m = false;
  /// of the iterations over blocks: ceil or balanced
  Division division = Division::ceil;
  SumOrder order = SumOrder::ascending;
  Format sums = formats::fp32;

  bool none() const { return blocks == 0; }
  friend bool operator==(const StreamK&, const StreamK&) = default;
};

/// A permutation of K inside each tile of `lanes * run` elements, which a lane's wide loads cause:
/// each lane holds `run` neighbours and gives `take` of them to every instruction. 0: none.
struct LoadOrder {
  int lanes = 0, run = 0, take = 0;
  friend bool operator==(const LoadOrder&, const LoadOrder&) = default;
};

/// How an accumulator adds its products.
enum class ProductOrder : std::uint8_t {
  /// one after the other
  chain,
  /// of rounded products: as a tree of neighbours, as Triton adds what a thread holds
  tree,
};
constexpr auto words(ProductOrder) { return std::array{"chain", "tree"}; }

/// A chain of a unit is ended every `interval` elements of K and added to a sum in FP32. 0: never.
struct Promotion {
  enum class Adder : std::uint8_t {
    /// sum + partial
    add,
    /// fma(partial, scale_a * scale_b, sum)
    scaled_fma,
    /// fma(partial * scale_a, scale_b, sum)
    scale_a_fma,
    /// fma(partial * scale_b, scale_a, sum)
    scale_b_fma,
    /// sum + partial * (scale_a * scale_b)
    scaled_add,
  };
  friend constexpr auto words(Adder) {
    return std::array{"add", "scaled_fma", "scale_a_fma", "scale_b_fma", "scaled_add"};
  }
  std::int64_t interval = 0;
  Adder adder = Adder::add;
  friend bool operator==(const Promotion&, const Promotion&) = default;
};

/// The k's of an implicit GEMM: filter row r, filter column s, channel c.
struct ConvolutionOrder {
  enum class Walk : std::uint8_t {
    /// channels innermost (NHWC)
    rsc,
    /// channels outermost (NCHW)
    crs,
    /// filter columns outermost
    src,
  };
  friend constexpr auto words(Walk) { return std::array{"rsc", "crs", "src"}; }
  Walk walk = Walk::rsc;
  /// the walk is made for each block of that many channels in turn; 0: all
  int channel_block = 0;
  /// channels are filled up with zeros to a multiple of this
  int channel_multiple = 1;
  friend bool operator==(const ConvolutionOrder&, const ConvolutionOrder&) = default;
};

/// How an accumulator becomes an element of D. An addend is beta * c, or the bias where there is
/// no c; a bias beside a c is added to what `addition` gives.
struct Epilogue {
  enum class Addition : std::uint8_t {
    /// fma(alpha, accumulator, addend)
    fma_product,
    /// fma(beta, c, alpha * accumulator)
    fma_addend,
    /// alpha * accumulator + addend
    separate,
    /// round(alpha * accumulator) + addend, rounded to D's format first
    rounded,
    /// the first chain begins with the addend (a beta of 0 counts as 1); alpha of sums is not used
    initial,
  };
  friend constexpr auto words(Addition) {
    return std::array{"fma_product", "fma_addend", "separate", "rounded", "initial"};
  }
  enum class Scales : std::uint8_t {
    /// alpha * (scale_a * scale_b), once
    joint,
    /// accumulator * scale_a * scale_b
    a_then_b,
    /// accumulator * scale_b * scale_a
    b_then_a,
  };
  friend constexpr auto words(Scales) { return std::array{"joint", "a_then_b", "b_then_a"}; }
  Addition addition = Addition::fma_product;
  Scales scales = Scales::joint;
  /// What alpha multiplies: an operand, rounded, where small kernels of matrices and vectors do so;
  /// or d, the sum once it is rounded to D's format, as compilers scale a result.
  enum class AlphaOn : std::uint8_t { sum, a, b, d };
  friend constexpr auto words(AlphaOn) { return std::array{"sum", "a", "b", "d"}; }
  bool scales_operand() const { return alpha_on == AlphaOn::a || alpha_on == AlphaOn::b; }
  AlphaOn alpha_on = AlphaOn::sum;
  /// of every operation here
  Format compute = formats::fp32;
  /// D; rounded to nearest even
  Format output = formats::fp32;
  double alpha = 1, beta = 0;
  /// What a result is rounded to first, where a second kernel takes it from memory to make D of it.
  std::optional<Format> via;
  Activation activation = Activation::none;
  friend bool operator==(const Epilogue&, const Epilogue&) = default;
};

/// Everything that decides the bits of a library's matrix product or convolution. K is cut by
/// `split` or `stream_k` (over thread blocks, sums in a workspace), each part of it by `slices`
/// (over warps, threads or registers; the key `lanes` of a plan's text); what is left is one chain
/// of the unit, in ascending k, padded with zero products to whole instructions, or a tree of
/// rounded products. Each batch entry is a product of its own.
struct GemmPlan {
  GemmUnit unit;
  InputConversion input;
  /// of convolutions only
  ConvolutionOrder convolution;
  LoadOrder loads;
  /// tile of K whose incomplete part comes first; 0: last
  std::int64_t residue_first = 0;
  ProductOrder products = ProductOrder::chain;
  Promotion promotion;
  Partition slices, split;
  /// in place of a split
  StreamK stream_k;
  Epilogue epilogue;
  friend bool operator==(const GemmPlan&, const GemmPlan&) = default;
};

/// The plan on one line, as `UNIT key=value ...`; keys that have their default are left out.
std::string to_text(const GemmPlan& plan);

/// Reads what to_text writes; keys in any order. formats::Error that begins with `where`.
GemmPlan parse_plan(std::string_view text, std::string_view where);

/// The plan in words.
std::string describe(const GemmPlan& plan);

/// One key of a plan and its value, as to_text writes them; the unit's key is "unit".
struct PlanField {
  std::string key, value;
};
std::vector<PlanField> fields_of(const GemmPlan& plan);

/// Consecutive k's: [begin, end).
struct KRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t length() const { return end - begin; }
  friend bool operator==(const KRange&, const KRange&) = default;
};
using KRanges = std::vector<KRange>;

/// The k's of each accumulator, in the order in which it takes them; accumulators without any are
/// left out.
std::vector<KRanges> divide(const Partition& partition, const KRanges& ranges);

/// The number of k's of each of those accumulators, of that many k's in all.
std::vector<std::int64_t> lengths_of_parts(const Partition& partition, std::int64_t length);

}  // namespace guardbit::emulator
