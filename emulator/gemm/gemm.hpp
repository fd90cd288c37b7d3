#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/gemm/sums.hpp"
#include "emulator/model/instruction.hpp"

// A matrix product as a library computes it. Input: a plan (plan.hpp) and a problem (problem.hpp).
// Output: D, bit for bit.
namespace guardbit::emulator {

/// Accumulator and operand format of a CUDA core's multiply-add; formats::Error, beginning with
/// `where`, for another one.
Format scalar_format(const GemmUnit& unit, std::string_view where);

inline constexpr int no_exponent = 1 << 20;

struct Engine;

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
  /// products of pieces for each element of K
  std::int64_t expansion = 1;
  /// c: where the chain begins with it; of a multiply-add, a and b are
  /// in the format of its sums
  CodeMatrix a, b, e, c;
  /// of a multiply-add that is not fused
  bool rounds_products = false;
  /// in the order in which they are added
  std::vector<PieceProducts> apart;
  /// Of integer slices: each row of A and column of B is below 2^exponent; no_exponent where it
  /// holds an infinity or a NaN.
  std::vector<int> a_exponents, b_exponents;
  /// of a few dot products, where it can be
  std::shared_ptr<const FewDots> few = nullptr;

  /// Elements of K; filled up where pieces or loads ask for it.
  std::int64_t k() const { return b.rows / expansion; }
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

/// The same without C, which may be empty.
GemmOperands prepare_factors(const GemmPlan& plan, const GemmProblem& problem,
                             std::string_view where);
/// C as the first chain begins with it; empty where the plan does not say so.
CodeMatrix initial_sums(const GemmPlan& plan, const GemmOperands& operands,
                        const GemmProblem& problem, std::string_view where);

/// The operands of a block, in views.
GemmOperands part(const GemmOperands& operands, const OutputBlock& block);

/// How chains are run.
struct Execution {
  /// of the unit; null: the first model that takes it
  const Engine* engine = nullptr;
  /// 0: all
  int threads = 0;
  /// as MatrixProduct's
  const std::function<bool()>* stop = nullptr;
};

/// The sum of each part of `plan.split`, as it leaves the thread block; with stream-K one part, the
/// sums of its blocks added.
std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& operands,
                               const GemmProblem& problem, const Execution& execution);

/// D of sums that an epilogue takes.
CodeMatrix finish(const Epilogue& epilogue, const GemmProblem& problem, const Sums& sums,
                  int threads = 1);

/// D of the parts' sums: added, and sent through the epilogue.
CodeMatrix finish(const GemmPlan& plan, const GemmProblem& problem, std::vector<Sums> parts,
                  int threads = 1);

struct ExecuteOptions {
  /// as plan_engine (plan_engine.hpp) takes it
  std::string_view engine = "auto";
  /// 0: all; the result does not depend on their number
  int threads = 0;
  /// Told now and then, on the caller's thread, how many rows are done; ends the work by answering
  /// false.
  std::function<bool(std::int64_t)> progress = {};
  /// Outputs that are computed together at most; the result does not depend on it.
  std::int64_t most_outputs = std::int64_t{1} << 24;
};

/// D of the plan.
CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, const ExecuteOptions& options);
CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads = 0,
                   const std::function<bool(std::int64_t)>& progress = {});

}  // namespace guardbit::emulator
