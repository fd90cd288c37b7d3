#pragma once

#include <optional>
#include <string_view>

#include "emulator/gemm/gemm_operands.hpp"
#include "formats/support/error.hpp"

// What a plan asks of a problem's K, of its unit and of its scales.
namespace guardbit::emulator {

/// Can the unit take every chain of the plan? Not where it cannot be chained and one is longer than
/// its K; of stream-K any share may be the whole K.
bool chains_fit(const GemmPlan& plan, const GemmOperands& x);

/// Why the plan cannot be executed on the problem whose operands these are: a key cuts what belongs
/// together (the group of a sparse A, the run of K whose pieces are multiplied in turn, the k's of
/// one scale), or says what nothing would read. The error begins with `where`.
std::optional<formats::Error> misfit(const GemmPlan& plan, const GemmProblem& problem,
                                     const GemmOperands& x, std::string_view where);

}  // namespace guardbit::emulator
