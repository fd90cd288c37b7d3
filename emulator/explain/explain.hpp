#pragma once

// An explanation says how one element of D came about. Input: an instruction and the operands of
// one execution. Output: each block's terms, what alignment cut from them, the sums and the
// results, in exact decimals. explain.cpp watches the model compute; explain_text.cpp prints.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/model/batch.hpp"
#include "emulator/model/dot.hpp"
#include "emulator/model/mma.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

using formats::Decimal;

/// "truncated", "rounded to nearest even", ...
std::string rounding_text(Rounding rounding);

/// The final conversion of a sum: "truncated to fp32 with 13 fraction bits".
std::string conversion_text(const AccumulatorSpec& spec, const Format& format);

/// One product's operands, as the unit takes them: after negation and sparse gathering.
struct FactorPair {
  /// row of B
  int k = 0;
  std::uint64_t a = 0, b = 0;
};

/// A term of a block: a product, the exact sum of a group of products, or the addend.
struct ExplainedTerm {
  /// into Explanation::pairs: one, a whole group, or none for the addend
  std::vector<std::size_t> pairs;
  /// exact
  Decimal value;
  /// fused blocks: what the unit aligns by
  int exponent = 0;
  /// fused blocks: |value| in multiples of 2^(exponent - fraction_bits); not normalised
  std::uint64_t significand = 0;
  int fraction_bits = 0;
  /// what alignment took away: value less what was kept
  Decimal cut;
};

/// The grid to which a fused block cuts its terms: multiples of 2^grid.
struct Alignment {
  /// E, the largest of the terms' exponents
  int exponent = 0;
  /// E - F
  int grid = 0;
};

/// One fused multiply-add of a chain and its rounding error.
struct ChainStep {
  /// into Explanation::pairs
  std::size_t pair = 0;
  Decimal exact;
  /// a code of the block's result format
  std::uint64_t rounded = 0;
  /// rounded less exact
  Decimal error;
};

/// One block: the products that are added together, and their sum.
struct ExplainedBlock {
  /// index into the instruction's steps
  std::size_t step = 0;
  std::size_t products = 0;
  int first_k = 0, last_k = 0;
  /// the first product that is an infinity or a NaN
  std::optional<std::size_t> special_pair;
  /// an infinity or a NaN decides; then what follows is empty
  bool special = false;
  /// fused blocks
  std::optional<Alignment> alignment;
  /// at most three products or groups, largest magnitude first
  std::vector<ExplainedTerm> largest;
  ExplainedTerm addend;
  /// terms that alignment took something from
  std::size_t terms_cut = 0;
  /// of all terms before alignment
  Decimal exact_sum;
  /// fused blocks: of the terms after alignment
  std::optional<Decimal> kept_sum;
  /// chains: the step with the largest rounding error
  std::optional<ChainStep> worst;
  Register addend_register, result;
};

/// The result of one step of the instruction.
struct ExplainedStep {
  Operation operation = Operation::dot;
  Register result;
};

/// One element of D: its operands, and what each step and block made of them.
struct Explanation {
  MatrixInstruction instruction;
  /// in the order in which the unit takes them
  std::vector<FactorPair> pairs;
  std::vector<std::uint64_t> a_scale, b_scale;
  std::uint64_t c = 0;
  std::vector<ExplainedStep> steps;
  std::vector<ExplainedBlock> blocks;
  std::uint64_t result = 0;
};

/// Explains element (m, n) of execution number `execution` of a batch, which must hold it.
Explanation explain(const MatrixInstruction& instruction, const MatrixBatch& batch,
                    std::int64_t execution, int m, int n);

/// The number in decimal: exact if 12 digits suffice, else the shortest that rounds to the code.
std::string value_text(const Format& format, std::uint64_t code);

/// "0x3c00 (1)"
std::string code_text(const Format& format, std::uint64_t code);

/// At most 20 significant digits, then "..." if there are more.
std::string number_text(const Decimal& x);

/// The blocks and steps in words, a few lines each.
std::vector<std::string> explanation_lines(const Explanation& explanation);

/// The operands, one a line: c, the scales, then at most `limit` pairs whose product is not zero.
std::vector<std::string> operand_lines(const Explanation& explanation, std::size_t limit = 16);

}  // namespace guardbit::emulator
