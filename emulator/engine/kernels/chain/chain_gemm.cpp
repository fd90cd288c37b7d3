#include "emulator/engine/kernels/chain/chain_gemm.hpp"

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <mutex>
#include <vector>

#include "emulator/engine/kernels/chain/chain_tiles.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/mma.hpp"

// A fused multiply-add of the CPU is the instruction's own step (IEEE 754: one rounding, in the
// four directions that the environment sets), save for NaNs, whose sign and payload each machine
// chooses in its own way. Once a sum is a NaN it stays one, so a chain's NaN is decided by few
// events:
//
// operand_bca (of each step B's NaN, else the sum's, else A's)
//   A NaN in B replaces whatever the sum was: the last one of a column is the result of the whole
//   column, quieted. Such columns are filled at the end, and packed as zeros. In other columns a
//   sum that is a NaN stays as it is, and A's NaN counts only where the sum is a number: the tile
//   that keeps NaNs does that. Rows without a NaN cannot tell the two tiles apart: of one NaN
//   operand, or of none in an invalid operation, the CPU makes what the instruction makes (a
//   quieted copy; the negative quiet NaN).
// operand_abc and unspecified (of each step A's NaN, else B's, else the sum's)
//   The last NaN of the row or the column, A's where both stand at one k, is the result; without
//   one, the CPU's NaN is right but for the sign of an invalid operation in the model of
//   instructions whose NaNs are not known.
namespace guardbit::emulator::chain_gemm {

namespace {

/// The last NaN of a line.
struct LastNan {
  /// -1: there is none
  std::int64_t k = -1;
  std::uint64_t code = 0;
};

int rounding_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero: return FE_TOWARDZERO;
    case Rounding::downward: return FE_DOWNWARD;
    case Rounding::upward: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

bool is_ieee_direction(Rounding rounding) {
  return rounding == Rounding::nearest_even || rounding == Rounding::toward_zero ||
         rounding == Rounding::downward || rounding == Rounding::upward;
}

/// A row's elements as the CPU multiplies them: stored as words, or as the upper halves of words.
template <class Word>
struct Element {
  /// BF16 in FP32
  bool is_half = false;
  /// the sign, where it is negated
  Word flip = 0;

  Word operator()(const std::byte* at) const { return is_half ? load<true>(at) : load<false>(at); }
  template <bool half>
  Word load(const std::byte* at) const {
    if constexpr (half) {
      return static_cast<Word>(static_cast<Word>(formats::load_word<std::uint16_t>(at)) << 16) ^
             flip;
    } else {
      return formats::load_word<Word>(at) ^ flip;
    }
  }
};

template <class Word>
constexpr const Format& format_of_word() {
  return sizeof(Word) == 8 ? formats::fp64 : formats::fp32;
}

template <class Word>
constexpr Word sign_bit = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));

template <class Word>
Word infinity_word() {
  return static_cast<Word>(formats::infinity_code(format_of_word<Word>()));
}
template <class Word>
bool is_nan(Word word) {
  return static_cast<Word>(word & ~sign_bit<Word>) > infinity_word<Word>();
}
template <class Word>
Word quieted(Word nan) {
  return nan | static_cast<Word>(formats::quiet_nan_code(format_of_word<Word>()));
}
/// The CPU's NaN of an invalid operation.
template <class Word>
Word invalid_word() {
  return sign_bit<Word> | static_cast<Word>(formats::quiet_nan_code(format_of_word<Word>()));
}

/// Infinities and NaNs alone carry into the sign's place when one is added to the exponent.
template <class Word>
bool may_hold_nan(const Word* words, std::int64_t count) {
  constexpr int fraction_bits = sizeof(Word) == 8 ? 52 : 23;
  Word seen = 0;
  for (std::int64_t i = 0; i < count; ++i)
    seen |= (words[i] & ~sign_bit<Word>)+(Word{1} << fraction_bits);
  return (seen & sign_bit<Word>) != 0;
}

/// Rows of A or columns of B in memory, strides in bytes.
struct Lines {
  const std::byte* data = nullptr;
  std::int64_t line_stride = 0, k_stride = 0;
  /// that are there
  std::int64_t lines = 0, length = 0;
};

/// k by k, an element of each of `width` lines; what is not there is left as it was.
template <class Word, bool half, std::int64_t width>
void pack_lines(const Lines& x, const Element<Word>& element, Word* to) {
  constexpr std::int64_t bytes = half ? 2 : sizeof(Word);
  if (x.line_stride == bytes) {
    constexpr std::int64_t ahead = 8;  // rows of B lie too far apart for the CPU to foresee
    for (std::int64_t k = 0; k < x.length; ++k, to += width) {
      const std::byte* const from = x.data + k * x.k_stride;
      if (k + ahead < x.length) {
        for (std::int64_t at = 0; at < width * bytes; at += 64)
          __builtin_prefetch(from + ahead * x.k_stride + at);
      }
      if (x.lines == width) {
        for (std::int64_t line = 0; line < width; ++line)
          to[line] = element.template load<half>(from + line * bytes);
      } else {
        for (std::int64_t line = 0; line < x.lines; ++line)
          to[line] = element.template load<half>(from + line * bytes);
      }
    }
    return;
  }
  for (std::int64_t k = 0; k < x.length; ++k, to += width) {
    const std::byte* from = x.data + k * x.k_stride;
    for (std::int64_t line = 0; line < x.lines; ++line, from += x.line_stride)
      to[line] = element.template load<half>(from);
  }
}

/// The same with +0 for lines that are not there and up to `padded` k's.
template <std::int64_t width, class Word>
void pack(const Lines& x, const Element<Word>& element, std::int64_t padded, Word* to) {
  if (x.lines < width || x.length < padded) std::fill_n(to, width * padded, Word{0});
  if (element.is_half) {
    pack_lines<Word, true, width>(x, element, to);
  } else {
    pack_lines<Word, false, width>(x, element, to);
  }
}

template <class Word>
class Kernel {
 public:
  /// The instruction's rounding on this thread.
  class Environment {
   public:
    explicit Environment(const Kernel& kernel) { std::fesetround(kernel.rounding_); }

   private:
    DefaultEnvironment saved_;
  };

  Kernel(const MatrixInstruction& instruction, const MatrixProduct& product,
         const ChainTiles& tiles)
      : instruction_(instruction),
        product_(product),
        tiles_(tiles),
        spec_(instruction.steps.list[0].spec),
        rounding_(rounding_of(spec_.result)),
        a_element_(element_of(instruction.a, product.modifiers.negate_a)),
        b_element_(element_of(instruction.b, product.modifiers.negate_b)),
        column_nans_(static_cast<std::size_t>(product.n)) {
    if (spec_.nan == NanPolicy::unspecified) find_invalid_addends();
  }

  /// A panel of B stays near the first cache, a block of A in the second.
  PanelBlocking blocking() const {
    constexpr std::int64_t most = 256;
    const std::int64_t instruction_k = instruction_.shape.k;
    const std::int64_t depth =
        std::min(round_up(product_.k, instruction_k),
                 std::max(instruction_k, most / instruction_k * instruction_k));
    const auto bytes = [&](std::int64_t width) {
      return static_cast<std::size_t>(round_up((width * depth + 1) * element_bytes, 64));
    };
    return {{tiles_.rows, tiles_.columns, depth, 256, round_up(3072, tiles_.columns)},
            bytes(tiles_.rows),
            bytes(tiles_.columns)};
  }

  /// The panel ends with a word that says whether it holds a NaN.
  void pack_a(std::byte* to, std::int64_t i, std::int64_t k, std::int64_t length) const {
    auto* const words = reinterpret_cast<Word*>(to);
    const std::int64_t count = padded(length) * tiles_.rows;
    const ConstMatrix& a = product_.a;
    const Lines lines =
        lines_of(a.from(i, k), a.row_stride, a.column_stride, tiles_.rows, product_.m - i, length);
    if (is_wide()) {
      pack<8>(lines, a_element_, padded(length), words);
    } else {
      pack<4>(lines, a_element_, padded(length), words);
    }
    words[count] = may_hold_nan(words, count) && std::any_of(words, words + count, is_nan<Word>);
    if (words[count] != 0 && spec_.nan != NanPolicy::operand_bca) note_row_nans(words, count, i, k);
  }

  void pack_b(std::byte* to, std::int64_t j, std::int64_t k, std::int64_t length) const {
    auto* const words = reinterpret_cast<Word*>(to);
    const std::int64_t count = padded(length) * tiles_.columns;
    const ConstMatrix& b = product_.b;
    const Lines lines = lines_of(b.from(k, j), b.column_stride, b.row_stride, tiles_.columns,
                                 product_.n - j, length);
    if (is_wide()) {
      pack<wide_columns>(lines, b_element_, padded(length), words);
    } else {
      pack<narrow_columns>(lines, b_element_, padded(length), words);
    }
    if (!may_hold_nan(words, count)) return;
    for (std::int64_t at = 0; at < count; ++at) {
      if (!is_nan(words[at])) continue;
      column_nans_[static_cast<std::size_t>(j + at % tiles_.columns)] = {k + at / tiles_.columns,
                                                                         quieted(words[at])};
      words[at] = 0;
    }
  }

  void tile(const std::byte* a, const std::byte* b, std::int64_t i, std::int64_t j, std::int64_t k,
            std::int64_t length) const {
    const std::int64_t count = padded(length);
    const bool keeps_nan = spec_.nan == NanPolicy::operand_bca &&
                           reinterpret_cast<const Word*>(a)[count * tiles_.rows] != 0;
    const ChainTile add = keeps_nan ? tiles_.keeping_nan : tiles_.plain;
    const auto body = [&](const std::byte* from, std::int64_t from_stride, std::byte* to,
                          std::int64_t to_stride) {
      add(a, b, count, from, from_stride, to, to_stride);
    };
    if (is_wide()) {
      visit_tile<Word, 8, wide_columns>(product_, i, j, k == 0, body);
    } else {
      visit_tile<Word, 4, narrow_columns>(product_, i, j, k == 0, body);
    }
  }

  /// Writes the NaNs that lines decide.
  void finish() const {
    const bool rows_decide = !row_nans_.empty();
    std::vector<std::int64_t> columns;  // that have a NaN, or all where rows have some
    for (std::int64_t j = 0; j < product_.n; ++j) {
      if (rows_decide || column_nans_[static_cast<std::size_t>(j)].k >= 0) columns.push_back(j);
    }
    for (std::int64_t i = 0; i < product_.m && !columns.empty(); ++i) {
      const LastNan row = rows_decide ? row_nans_[static_cast<std::size_t>(i)] : LastNan{};
      for (const std::int64_t j : columns) {
        const LastNan& column = column_nans_[static_cast<std::size_t>(j)];
        if (row.k >= 0 && row.k >= column.k) {
          product_.d.set(i, j, row.code);
        } else if (column.k >= 0) {
          product_.d.set(i, j, column.code);
        }
      }
    }
    if (spec_.nan == NanPolicy::unspecified) correct_invalid_results();
  }

 private:
  static constexpr std::int64_t element_bytes = sizeof(Word);
  /// Three vectors of 512 or of 256 bits beside 8 or 4 rows.
  static constexpr std::int64_t wide_columns = 192 / element_bytes;
  static constexpr std::int64_t narrow_columns = 96 / element_bytes;

  bool is_wide() const { return tiles_.columns == wide_columns; }

  static Element<Word> element_of(const Format& f, bool negate) {
    return {f == formats::bf16, negate ? sign_bit<Word> : Word{0}};
  }

  std::int64_t padded(std::int64_t length) const { return round_up(length, instruction_.shape.k); }

  static Lines lines_of(const ConstMatrix& first, std::int64_t line_stride, std::int64_t k_stride,
                        std::int64_t width, std::int64_t lines, std::int64_t length) {
    const std::int64_t bytes = first.codes.container_bytes;
    return {first.codes.data, line_stride * bytes, k_stride * bytes, std::min(width, lines),
            length};
  }

  /// Keeps the last NaN of each row of a panel of A.
  void note_row_nans(const Word* words, std::int64_t count, std::int64_t i, std::int64_t k) const {
    const std::lock_guard lock(noting_);
    if (row_nans_.empty()) row_nans_.resize(static_cast<std::size_t>(product_.m));
    for (std::int64_t at = 0; at < count; ++at)
      if (is_nan(words[at]))
        row_nans_[static_cast<std::size_t>(i + at % tiles_.rows)] = {k + at / tiles_.rows,
                                                                     quieted(words[at])};
  }

  /// Addends that look like the CPU's NaN of an invalid operation, which they are not.
  void find_invalid_addends() {
    if (product_.modifiers.zero_addend) return;
    for (std::int64_t i = 0; i < product_.m; ++i) {
      for (std::int64_t j = 0; j < product_.n; ++j) {
        const auto c = static_cast<Word>(product_.c(i, j));
        if (is_nan(c) && quieted(c) == invalid_word<Word>())
          invalid_addends_.push_back(i * product_.n + j);
      }
    }
  }

  /// The model's NaN is positive there.
  void correct_invalid_results() const {
    const ConstCodes codes{product_.d.codes.data, product_.d.codes.container_bytes, 0};
    const ConstMatrix d{codes, product_.d.row_stride, product_.d.column_stride};
    for (std::int64_t i = 0; i < product_.m; ++i) {
      const bool row_decides = !row_nans_.empty() && row_nans_[static_cast<std::size_t>(i)].k >= 0;
      if (row_decides) continue;
      for (std::int64_t j = 0; j < product_.n; ++j) {
        const bool is_invalid = static_cast<Word>(d(i, j)) == invalid_word<Word>() &&
                                column_nans_[static_cast<std::size_t>(j)].k < 0 &&
                                !std::binary_search(invalid_addends_.begin(),
                                                    invalid_addends_.end(), i * product_.n + j);
        if (is_invalid) product_.d.set(i, j, invalid_word<Word>() & ~sign_bit<Word>);
      }
    }
  }

  const MatrixInstruction& instruction_;
  const MatrixProduct& product_;
  const ChainTiles& tiles_;
  const AccumulatorSpec& spec_;
  int rounding_;
  Element<Word> a_element_, b_element_;
  /// each written by the one thread that packs it
  mutable std::vector<LastNan> column_nans_;
  /// empty: there are none, or they do not decide; tasks that share rows pack the same NaNs
  mutable std::vector<LastNan> row_nans_;
  mutable std::mutex noting_;
  std::vector<std::int64_t> invalid_addends_;
};

const ChainTiles* tiles_for(const MatrixInstruction& instruction, [[maybe_unused]] VectorSet set) {
  [[maybe_unused]] const bool is_double = instruction.d == formats::fp64;
  if constexpr (compiles_x86) {
    if (set == VectorSet::avx512)
      return is_double ? double_chains_avx512() : single_chains_avx512();
    if (set == VectorSet::avx2) return is_double ? double_chains_avx2() : single_chains_avx2();
  }
  if constexpr (compiles_arm) {
    if (set == VectorSet::neon) return is_double ? double_chains_neon() : single_chains_neon();
  }
  return nullptr;
}

template <class Word>
void multiply_as(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
                 VectorSet set) {
  const Kernel<Word> kernel(instruction, product, *tiles_for(instruction, set));
  multiply_by_panels(kernel, product, threads);
  kernel.finish();
}

}  // namespace

bool accepts(const MatrixInstruction& instruction, VectorSet set) {
  const Step& step = instruction.steps.list[0];
  const AccumulatorSpec& spec = step.spec;
  const bool is_chain = instruction.steps.count == 1 && step.operation == Operation::dot &&
                        step.selection == Selection{} && step.addend == Source::c &&
                        !step.widened && spec.summation == Summation::fma_chain &&
                        spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
                        spec.result_fraction_bits == 0 && spec.nan != NanPolicy::all_ones &&
                        is_ieee_direction(spec.result);
  const auto is_single = [](const Format& f) { return f == formats::fp32 || f == formats::bf16; };
  const bool is_double = instruction.a == formats::fp64 && instruction.b == formats::fp64 &&
                         instruction.d == formats::fp64;
  const bool has_formats = instruction.c == instruction.d && step.result == instruction.d &&
                           (is_double || (is_single(instruction.a) && is_single(instruction.b) &&
                                          instruction.d == formats::fp32));
  return is_chain && has_formats && instruction.scale.count == 0 &&
         instruction.sparsity.group_elements == 0 && tiles_for(instruction, set) != nullptr;
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set) {
  if (instruction.d == formats::fp64) {
    multiply_as<std::uint64_t>(instruction, product, threads, set);
  } else {
    multiply_as<std::uint32_t>(instruction, product, threads, set);
  }
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set) {
  for (std::int64_t t = begin; t < end; ++t)
    multiply(instruction, product_of(instruction, batch, t), 1, set);
}

}  // namespace guardbit::emulator::chain_gemm
