#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/model/instruction.hpp"

// A and B of a problem as a plan's unit takes them.
namespace guardbit::emulator {

/// Accumulator and operand format of a CUDA core's multiply-add; formats::Error, beginning with
/// `where`, for another one.
Format scalar_format(const GemmUnit& unit, std::string_view where);
/// What a CUDA core's multiply-add rounds its products to before they are added; nothing of a
/// fused one.
std::optional<Format> product_format(const GemmUnit& unit);

inline constexpr int no_exponent = 1 << 20;

/// Products of pieces that have a chain of their own, aside from the leading one's.
struct PieceProducts;
class FewDots;

/// A and B as a plan's unit takes them.
struct GemmOperands {
  /// nothing for a CUDA core's multiply-add
  std::optional<MatrixInstruction> instruction;
  /// of the unit's accumulator
  Format sum{};
  /// elements of K that each pair of pieces takes in turn
  std::int64_t run = 1;
  /// the places of a run: whole instructions
  std::int64_t places = 1;
  /// products of pieces for each element of K
  std::int64_t expansion = 1;
  /// c: where the chain begins with it; of a multiply-add, a and b are
  /// in the format of its sums
  CodeMatrix a, b, e, c;
  /// of a multiply-add that is not fused: what products are rounded to
  std::optional<Format> products = {};
  /// in the order in which they are added
  std::vector<PieceProducts> apart;
  /// Of integer slices: each row of A and column of B is below 2^exponent; no_exponent where it
  /// holds an infinity or a NaN.
  std::vector<int> a_exponents, b_exponents;
  /// of a few dot products, where it can be
  std::shared_ptr<const FewDots> few = nullptr;

  /// Elements of K; filled up where pieces or loads ask for it.
  std::int64_t k() const {
    const bool is_plain = expansion == 1 && places == run;
    return is_plain ? b.rows : b.rows / (expansion * places) * run;
  }
  /// Where the products of element k begin. Runs with zeros behind them begin whole.
  std::int64_t place_of(std::int64_t k) const { return (k / run * places + k % run) * expansion; }
  /// The element whose products stand there, or the first one of its run.
  std::int64_t element_at(std::int64_t place) const {
    const bool is_plain = expansion == 1 && places == run;
    return is_plain ? place : place / (expansion * places) * run;
  }
};

struct PieceProducts {
  GemmOperands operands;
  /// the total of the pieces' ranks
  int rank = 0;
};

/// Converts A and B where the plan asks for it; else they are views of the problem's.
/// formats::Error, beginning with `where`, for a unit that is not known or does not take the
/// problem.
GemmOperands prepare(const GemmPlan& plan, const GemmProblem& problem, std::string_view where);

/// A few dot products whose operands allow it; else null.
std::shared_ptr<const FewDots> few_dots_of(const GemmOperands& operands);

/// The same without C, which may be empty.
GemmOperands prepare_factors(const GemmPlan& plan, const GemmProblem& problem,
                             std::string_view where);
/// C as the first chain begins with it; empty where the plan does not say so.
CodeMatrix initial_sums(const GemmPlan& plan, const GemmOperands& operands,
                        const GemmProblem& problem, std::string_view where);

/// The operands of a block, in views.
GemmOperands part(const GemmOperands& operands, const OutputBlock& block);

}  // namespace guardbit::emulator
