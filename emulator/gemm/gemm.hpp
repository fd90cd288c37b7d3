#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// Accumulator and operand format of a CUDA core's multiply-add; formats::Error, beginning with
/// `where`, for another one.
Format scalar_format(const GemmUnit& unit, std::string_view where);

inline constexpr int no_exponent = 1 << 20;

/// Products of pieces that have a chain of their own, aside from the leading one's.
struct PieceProducts;
class FewDots;

/// A and B as a plan's unit takes them.
struct GemmOperands {
  std::optional<MatrixInstruction> row;    ///< nothing for a CUDA core's multiply-add
  Format sum{};                            ///< of the unit's accumulator
  std::int64_t run = 1;                    ///< elements of K that each pair of pieces takes in turn
  std::int64_t expansion = 1;              ///< products of pieces for each element of K
  CodeMatrix a, b, e, c;                   ///< c: where the chain begins with it
  std::vector<double> a_values, b_values;  ///< of a multiply-add instead
  bool rounds_products = false;            ///< it is not fused
  std::vector<PieceProducts> apart;        ///< in the order in which they are added
  /// Of slices: each row of A and column of B is below 2^exponent; no_exponent where it holds an
  /// infinity or a NaN.
  std::vector<int> a_exponents, b_exponents;
  std::shared_ptr<const FewDots> few = nullptr;  ///< of a few dot products, where it can be

  /// Elements of K; filled up where pieces or loads ask for it.
  std::int64_t k() const { return b.rows / expansion; }
};

struct PieceProducts {
  GemmOperands operands;
  int rank = 0;  ///< the total of the pieces' ranks
};

/// Converts A and B. formats::Error, beginning with `where`, for a unit that is not known or does
/// not take the problem.
GemmOperands prepare(const GemmPlan& plan, const GemmProblem& problem, std::string_view where);

/// Values of the accumulators, batch after batch, row-major.
using Sums = std::vector<double>;

/// The sum of each part of `plan.split`, as it leaves the thread block; with stream-K one part, the
/// sums of its blocks added.
std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& operands,
                               const GemmProblem& problem, int threads);

/// Partial sums stored and added as the partition says; additions in the format of the epilogue.
Sums add_up(const Partition& partition, const Format& compute, std::vector<Sums> parts);

/// D of sums that an epilogue takes.
CodeMatrix finish(const Epilogue& epilogue, const GemmProblem& problem, const Sums& sums);

/// D of the parts' sums: added, and sent through the epilogue.
CodeMatrix finish(const GemmPlan& plan, const GemmProblem& problem, std::vector<Sums> parts);

/// D of the plan, on `threads` threads (0: all). The result does not depend on their number.
/// `progress` is told now and then how many rows are done, and ends the work by answering false.
CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads = 0,
                   const std::function<bool(std::int64_t)>& progress = {});

}  // namespace guardbit::emulator
