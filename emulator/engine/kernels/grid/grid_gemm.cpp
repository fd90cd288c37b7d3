#include "emulator/engine/kernels/grid/grid_gemm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/engine/executions.hpp"
#include "emulator/engine/kernels/grid/grid_tile.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/mma.hpp"
#include "emulator/model/terms.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::grid_gemm {

namespace {

using grids::Arithmetic;
using grids::Rule;
using grids::Tile;
using grids::tile_columns;
using grids::tile_rows;

constexpr int fp64_bias = 1023;

/// An element of a panel. What is not finite is a NaN.
struct Element {
  double number = 0;
  int exponent = grids::exponent_of_zero;
};

Element element_of(const AccumulatorSpec& spec, const Format& f, std::uint64_t code) {
  const formats::Value v = decode_input(spec, f, code);
  if (v.kind == Kind::zero) return {v.negative ? -0.0 : 0.0};
  if (v.kind != Kind::finite) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double magnitude = std::ldexp(static_cast<double>(v.significand), v.exponent);
  return {v.negative ? -magnitude : magnitude, aligned_exponent(v, f)};
}

/// The elements that codes of an operand are.
class Elements {
 public:
  Elements(const AccumulatorSpec& spec, const Format& f) : spec_(&spec), format_(f) {
    if (formats::bits(f) <= 16) table_ = &table_of(spec, f);
  }

  Element operator()(std::uint64_t code) const {
    return table_ != nullptr ? (*table_)[code & (table_->size() - 1)]
                             : element_of(*spec_, format_, code);
  }

 private:
  using Table = std::vector<Element>;

  static const Table& table_of(const AccumulatorSpec& spec, const Format& f) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, Subnormals>, Table> tables;
    const std::lock_guard lock(mutex);
    Table& table = tables[{formats::name_of(f), spec.input}];
    if (table.empty()) {
      for (std::uint64_t code = 0; code <= formats::code_mask(f); ++code)
        table.push_back(element_of(spec, f, code));
    }
    return table;
  }

  const AccumulatorSpec* spec_;
  Format format_;
  const Table* table_ = nullptr;
};

int block_terms(const MatrixInstruction& instruction) {
  return std::min(instruction.steps.list[0].spec.terms, instruction.shape.k);
}

/// The k's of an execution, as its steps take them; nothing unless each takes whole blocks.
std::optional<std::vector<int>> order_of(const MatrixInstruction& instruction) {
  std::vector<int> order;
  for (const Step& step : instruction.steps) {
    const std::size_t before = order.size();
    for (int k = 0; k < instruction.shape.k; ++k)
      if (step.selection.contains(k)) order.push_back(k);
    if ((order.size() - before) % static_cast<std::size_t>(block_terms(instruction)) != 0)
      return std::nullopt;
  }
  if (order.size() != static_cast<std::size_t>(instruction.shape.k)) return std::nullopt;
  return order;
}

/// Nothing of an arithmetic that tiles cannot express.
std::optional<Arithmetic> arithmetic_of(const MatrixInstruction& instruction) {
  const AccumulatorSpec& spec = instruction.steps.list[0].spec;
  Arithmetic x;
  x.summation = spec.summation;
  x.terms = block_terms(instruction);
  x.interleave = spec.interleave;
  x.flushes = spec.output != Subnormals::keep;
  const bool is_signed_zero =
      spec.summation == Summation::pairwise || spec.underflowed_sum == ZeroSign::of_sum;
  const Format& d = instruction.d;
  if (d == formats::fp32 && spec.result_fraction_bits == 0) {
    x.result = is_signed_zero ? grids::Result::fp32_signed_zero : grids::Result::fp32;
  } else if (is_signed_zero || spec.summation == Summation::pairwise) {
    return std::nullopt;
  } else if (d == formats::fp16 && spec.result_fraction_bits == 0) {
    x.result = grids::Result::fp16;
  } else if (d == formats::bf16 && spec.result_fraction_bits == 23) {
    x.result = grids::Result::bf16;
  } else {
    return std::nullopt;
  }
  const bool adds_on_grids = spec.zero_product_exponent == -999;
  switch (spec.summation) {
    case Summation::two_stage:
      x.floors = spec.alignment == Rounding::downward;
      if (!adds_on_grids || (!x.floors && spec.alignment != Rounding::toward_zero) ||
          spec.sum_kept_fraction_bits < spec.kept_fraction_bits || x.flushes)
        return std::nullopt;
      break;
    case Summation::two_grids:
      if (!adds_on_grids || spec.alignment != Rounding::toward_zero ||
          spec.subtraction != Subtraction::ones_complement || spec.output == Subnormals::flush)
        return std::nullopt;
      break;
    case Summation::pairwise:
      if (spec.output != Subnormals::flush) return std::nullopt;
      break;
    default: return std::nullopt;
  }
  return x;
}

Rule rule_of(const AccumulatorSpec& spec, const Format& d) {
  const auto power = [](int exponent) { return std::ldexp(1.0, exponent); };
  Rule rule;
  rule.kept = power(-spec.kept_fraction_bits);
  rule.finer = power(spec.kept_fraction_bits - spec.sum_kept_fraction_bits);
  if (spec.total_kept_fraction_bits != 0) rule.total_kept = power(-spec.total_kept_fraction_bits);
  rule.addend_kept = power(-spec.addend_kept_fraction_bits);
  if (spec.addend_cutoff != 0) rule.cutoff = power(-spec.addend_cutoff);
  rule.least_weight = power(spec.min_exponent);
  // A product is less than four times its weight.
  rule.weight_limit = spec.product_overflow_exponent == 0
                          ? std::numeric_limits<double>::max()
                          : power(spec.product_overflow_exponent - 3) * rule.kept;
  const formats::Value largest = formats::decode(d, formats::max_finite_code(d));
  rule.largest_result = std::ldexp(static_cast<double>(largest.significand), largest.exponent);
  return rule;
}

Tile tile_of(const MatrixInstruction& instruction, [[maybe_unused]] VectorSet set) {
  [[maybe_unused]] const auto arithmetic = arithmetic_of(instruction);
  if (!arithmetic) return nullptr;
  if constexpr (compiles_x86) {
    if (set == VectorSet::avx512) return grids::tile_avx512(*arithmetic);
    if (set == VectorSet::avx2) return grids::tile_avx2(*arithmetic);
  }
  if constexpr (compiles_arm) {
    if (set == VectorSet::neon) return grids::tile_neon(*arithmetic);
  }
  return nullptr;
}

template <class Word>
class Kernel {
 public:
  struct Environment : DefaultEnvironment {
    explicit Environment(const Kernel&) {}
  };

  Kernel(const MatrixInstruction& instruction, const MatrixProduct& product, VectorSet set)
      : instruction_(instruction),
        product_(product),
        spec_(instruction.steps.list[0].spec),
        arithmetic_(*arithmetic_of(instruction)),
        rule_(rule_of(spec_, instruction.d)),
        order_(*order_of(instruction)),
        a_{{spec_, instruction.a},
           instruction.a,
           product.modifiers.negate_a,
           1,
           fp64_bias - spec_.kept_fraction_bits},
        b_{{spec_, instruction.b},
           instruction.b,
           product.modifiers.negate_b,
           grids::nudge_of(arithmetic_),
           0},
        c_(spec_, instruction.c),
        tile_(tile_of(instruction, set)) {}

  /// A panel of each operand stays in the first cache.
  PanelBlocking blocking() const {
    const std::int64_t depth = std::min(padded(product_.k), round_up(256, instruction_.shape.k));
    const auto bytes = [&](std::int64_t lines) {
      return static_cast<std::size_t>(depth / arithmetic_.terms *
                                      grids::block_size(arithmetic_, lines)) *
             sizeof(double);
    };
    return {{tile_rows, tile_columns, depth, 128, 2048}, bytes(tile_rows), bytes(tile_columns)};
  }

  void pack_a(std::byte* to, std::int64_t i, std::int64_t k, std::int64_t length) const {
    pack<tile_rows>(product_.a.from(i, k), product_.a.column_stride, product_.a.row_stride,
                    product_.m - i, length, a_, to);
  }

  void pack_b(std::byte* to, std::int64_t j, std::int64_t k, std::int64_t length) const {
    pack<tile_columns>(product_.b.from(k, j), product_.b.row_stride, product_.b.column_stride,
                       product_.n - j, length, b_, to);
  }

  void tile(const std::byte* a, const std::byte* b, std::int64_t i, std::int64_t j, std::int64_t k,
            std::int64_t length) const {
    bool is_done = false;
    visit_tile<Word, tile_rows, tile_columns>(
        product_, i, j, k == 0,
        [&](const std::byte* from, std::int64_t from_stride, std::byte* to,
            std::int64_t to_stride) {
          alignas(64) std::array<double, std::size_t{tile_rows} * tile_columns> sums{};
          for_each_place(
              [&](std::int64_t r, std::int64_t s, double& sum) {
                if (from != nullptr) sum = number_of(from + r * from_stride + s * width);
              },
              sums);
          {
            const TileRounding rounding(
                arithmetic_.summation == Summation::pairwise ? FE_TONEAREST : FE_TOWARDZERO);
            is_done = tile_(rule_, reinterpret_cast<const double*>(a),
                            reinterpret_cast<const double*>(b), padded(length), sums.data());
          }
          if (!is_done) return;
          for_each_place(
              [&](std::int64_t r, std::int64_t s, const double& sum) {
                const Word code = code_of(sum);
                std::memcpy(to + r * to_stride + s * width, &code, sizeof code);
              },
              sums);
        });
    if (!is_done) execute_tile(i, j, k, length);
  }

 private:
  static constexpr std::int64_t width = sizeof(Word);

  /// How codes of an operand are packed.
  struct Side {
    Elements elements;
    Format format;
    bool negate;
    double factor;
    int more_exponent;

    Element element(std::uint64_t code) const { return elements(negated(format, code, negate)); }
  };

  std::int64_t padded(std::int64_t length) const { return round_up(length, instruction_.shape.k); }

  template <class Visit>
  static void for_each_place(const Visit& visit,
                             std::array<double, std::size_t{tile_rows} * tile_columns>& sums) {
    for (std::int64_t r = 0; r < tile_rows; ++r)
      for (std::int64_t s = 0; s < tile_columns; ++s)
        visit(r, s, sums[static_cast<std::size_t>(r * tile_columns + s)]);
  }

  template <std::int64_t lines>
  void pack(const ConstMatrix& from, std::int64_t k_stride, std::int64_t line_stride,
            std::int64_t there, std::int64_t length, const Side& side, std::byte* to) const {
    auto* at = reinterpret_cast<double*>(to);
    const auto block = static_cast<std::int64_t>(order_.size());
    LineWords<static_cast<std::size_t>(lines)> words{};
    int term = 0;
    for (std::int64_t begin = 0; begin < length; begin += block) {
      for (const int place : order_) {
        const std::int64_t k = begin + place;
        for (std::int64_t line = 0; line < lines; ++line) {
          Element x;
          if (line < there && k < length)
            x = side.element(from.codes[k * k_stride + line * line_stride]);
          if (x.number == 0 && grids::has_tiny_zeros(arithmetic_))
            x.number = std::copysign(grids::tiny_zero, x.number);
          *at++ = x.number * side.factor;
          words.put(line, grids::place_of(arithmetic_, term), x.exponent + side.more_exponent,
                    x.number);
        }
        if (++term < arithmetic_.terms) continue;
        at = words.write(arithmetic_, at);
        words = {};
        term = 0;
      }
    }
  }

  /// The words of a block (grid_tile.hpp).
  template <std::size_t lines>
  struct LineWords {
    static constexpr int most_exponents = 4;
    std::array<std::array<std::uint64_t, lines>, most_exponents> exponents{};
    std::array<std::uint64_t, lines> negative{}, positive{};

    void put(std::int64_t line, int place, int exponent, double number) {
      const auto l = static_cast<std::size_t>(line);
      exponents[static_cast<std::size_t>(place / 4)][l] |=
          std::uint64_t{static_cast<std::uint16_t>(exponent)} << (place % 4 * 16);
      negative[l] |= std::uint64_t{number < 0} << place;
      positive[l] |= std::uint64_t{number > 0} << place;
    }
    double* write(const Arithmetic& arithmetic, double* at) const {
      const auto write_one = [&](const std::array<std::uint64_t, lines>& word) {
        std::memcpy(at, word.data(), sizeof word);
        at += lines;
      };
      for (int n = 0; n < grids::exponent_words(arithmetic); ++n)
        write_one(exponents[static_cast<std::size_t>(n)]);
      if (grids::counts_negatives(arithmetic)) {
        write_one(negative);
        write_one(positive);
      }
      return at;
    }
  };

  double number_of(const std::byte* at) const {
    Word code = 0;
    std::memcpy(&code, at, sizeof code);
    if constexpr (sizeof(Word) == 4) {
      const auto number = double{std::bit_cast<float>(code)};
      if (spec_.input == Subnormals::keep || !(std::abs(number) < 0x1p-126)) return number;
    }
    return c_(code).number;
  }

  Word code_of(double sum) const {
    if constexpr (sizeof(Word) == 2)
      if (instruction_.d == formats::fp16) return fp16_code(sum);
    const auto code = std::bit_cast<std::uint32_t>(static_cast<float>(sum));  // exact
    return static_cast<Word>(code >> (sizeof(Word) == 4 ? 0 : 16));
  }
  /// Of a number of FP16.
  static std::uint16_t fp16_code(double x) {
    constexpr int lost_bits = 52 - 10, biases_apart = 1023 - 15;
    const auto bits = std::bit_cast<std::uint64_t>(std::abs(x)) >> lost_bits;
    const std::uint64_t magnitude = std::abs(x) < 0x1p-14
                                        ? static_cast<std::uint64_t>(std::abs(x) * 0x1p24)
                                        : bits - (std::uint64_t{biases_apart} << 10);
    return static_cast<std::uint16_t>((std::signbit(x) ? 0x8000U : 0U) | magnitude);
  }

  /// By the model, where numbers are not finite.
  void execute_tile(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t length) const {
    MatrixProduct part = product_;
    part.m = std::min<std::int64_t>(tile_rows, product_.m - i);
    part.n = std::min<std::int64_t>(tile_columns, product_.n - j);
    part.k = length;
    part.a = product_.a.from(i, k);
    part.b = product_.b.from(k, j);
    part.d = product_.d.from(i, j);
    part.c = product_.c.from(i, j);
    if (k != 0) {
      part.modifiers.zero_addend = false;
      part.c = {{part.d.codes.data, part.d.codes.container_bytes, 0},
                part.d.row_stride,
                part.d.column_stride};
    }
    multiply_by_executions(execute, instruction_, part, 1);
  }

  const MatrixInstruction& instruction_;
  const MatrixProduct& product_;
  const AccumulatorSpec& spec_;
  Arithmetic arithmetic_;
  Rule rule_;
  std::vector<int> order_;
  Side a_, b_;
  Elements c_;
  Tile tile_;
};

}  // namespace

bool accepts(const MatrixInstruction& instruction, VectorSet set) {
  const Step& first = instruction.steps.list[0];
  if (instruction.scale.count != 0 || instruction.sparsity.group_elements != 0 ||
      instruction.c != instruction.d)
    return false;
  for (int i = 0; i < instruction.steps.count; ++i) {
    const Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    const auto addend = static_cast<Source>(i - 1);
    if (step.operation != Operation::dot || step.widened || step.spec != first.spec ||
        step.addend != addend || step.result != instruction.d)
      return false;
  }
  const auto is_narrow = [](const Format& f) {
    return formats::bits(f) <= 16 || f == formats::tf32;
  };
  return first.spec.product == Product::multiply && is_narrow(instruction.a) &&
         is_narrow(instruction.b) && instruction.a.encoding == formats::Encoding::floating &&
         instruction.b.encoding == formats::Encoding::floating &&
         first.spec.result == Rounding::nearest_even && tile_of(instruction, set) != nullptr &&
         order_of(instruction).has_value();
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set) {
  if (instruction.d == formats::fp32) {
    multiply_by_panels(Kernel<std::uint32_t>(instruction, product, set), product, threads);
  } else {
    multiply_by_panels(Kernel<std::uint16_t>(instruction, product, set), product, threads);
  }
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set) {
  // Packing pays where outputs share it; another K than the instruction's is one execution, too.
  if (batch.shape.m * batch.shape.n < tile_rows * tile_columns ||
      batch.shape.k != instruction.shape.k)
    return execute(instruction, batch, begin, end);
  for (std::int64_t t = begin; t < end; ++t)
    multiply(instruction, product_of(instruction, batch, t), 1, set);
}

}  // namespace guardbit::emulator::grid_gemm
