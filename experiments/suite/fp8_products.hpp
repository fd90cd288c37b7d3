#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "experiments/harness/experiment.hpp"

namespace guardbit::experiments {

class Run;

/// E4M3 into FP32 on Hopper, one chain over K, as cuBLAS with fast accumulation.
emulator::GemmPlan fp8_fast_plan();

/// What a run on an H200 gave in percent, as it was written down: the largest error, and the bias
/// ("" where there is none).
struct RecordedFp8 {
  std::string_view distribution;
  std::int64_t k;
  std::string_view largest, bias;
};

/// A product of random matrices, repeated with other numbers.
struct Fp8Sweep {
  /// of its points and findings
  std::string key;
  std::string distribution;
  std::int64_t k = 0, size = 0, repeats = 1;
  emulator::GemmPlan plan;
  const RecordedFp8* recorded = nullptr;
};

/// The largest error over the repeats' outputs (their median), in percent: relative for `uniform`,
/// of the mean magnitude otherwise. For `uniform` also the bias: the sum of all errors over the sum
/// of magnitudes. Compared with what was recorded.
std::vector<Finding> fp8_findings(Run& run, const Fp8Sweep& sweep);

}  // namespace guardbit::experiments
