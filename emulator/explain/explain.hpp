#pragma once

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

/// "truncated to fp32 with 13 fraction bits": the final conversion of an accumulation.
std::string conversion_text(const AccumulatorSpec& spec, const Format& format);

/// One pair of operands as the unit takes it, after negation and sparse gathering.
struct FactorPair {
  int k = 0;  ///< in the dense K of B
  std::uint64_t a = 0, b = 0;
};

/// A summand of a block as a person can check it.
struct ExplainedTerm {
  std::vector<std::size_t>
      pairs;         ///< into Explanation::pairs: one, a whole group, or none for the addend
  Decimal value;     ///< exactly
  int exponent = 0;  ///< that the unit aligns by (fused blocks)
  std::uint64_t significand =
      0;  ///< not normalised, in units of 2^(exponent - fraction_bits) (fused blocks)
  int fraction_bits = 0;
  Decimal cut;  ///< what alignment took away: value minus what was kept
};

/// What a fused block aligns to.
struct Alignment {
  int exponent = 0;  ///< E, the largest among the terms
  int unit = 0;      ///< the grid is 2^unit
};

/// One fused multiply-add of a chain.
struct ChainStep {
  std::size_t pair = 0;
  Decimal exact;
  std::uint64_t rounded = 0;
  Decimal error;  ///< rounded minus exact
};

/// What one block made of its terms.
struct ExplainedBlock {
  std::size_t step = 0;  ///< of the row
  std::size_t products = 0;
  int first_k = 0, last_k = 0;
  std::optional<std::size_t> special_pair;  ///< the first product that is an infinity or a NaN
  bool special = false;                ///< an infinity or a NaN decides; what follows is empty then
  std::optional<Alignment> alignment;  ///< fused blocks
  std::vector<ExplainedTerm> largest;  ///< at most three products (or groups), by magnitude
  ExplainedTerm addend;
  std::size_t terms_cut = 0;        ///< terms that alignment took something from
  Decimal exact_sum;                ///< of all terms, nothing cut
  std::optional<Decimal> kept_sum;  ///< fused blocks: the sum that is converted
  std::optional<ChainStep> worst;   ///< chains: the step with the largest rounding error
  Register addend_register, result;
};

/// The result of one step of the row.
struct ExplainedStep {
  Operation operation = Operation::dot;
  Register result;
};

/// How one output element came about, told by the model itself.
struct Explanation {
  MatrixInstruction row;
  std::vector<FactorPair> pairs;  ///< in the order of the unit
  std::vector<std::uint64_t> a_scale, b_scale;
  std::uint64_t c = 0;
  std::vector<ExplainedStep> steps;
  std::vector<ExplainedBlock> blocks;
  std::uint64_t result = 0;
};

/// Explains element (m, n) of one execution of a batch.
Explanation explain(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t execution,
                    int m, int n);

/// The number in decimal: exactly where 12 digits suffice, else the shortest that rounds to the
/// code.
std::string value_text(const Format& format, std::uint64_t code);

/// "0x3c00 (1)"
std::string code_text(const Format& format, std::uint64_t code);

/// A number in at most 20 significant digits, with "..." where there are more.
std::string number_text(const Decimal& x);

/// The blocks and steps in words, one line each, without indentation.
std::vector<std::string> explanation_lines(const Explanation& explanation);

/// The operands: c, then the pairs whose product is not zero, at most `limit` of them.
std::vector<std::string> operand_lines(const Explanation& explanation, std::size_t limit = 16);

}  // namespace guardbit::emulator
