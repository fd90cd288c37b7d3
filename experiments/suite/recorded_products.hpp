#pragma once

#include <span>
#include <string>
#include <string_view>

#include "experiments/harness/settings.hpp"

namespace guardbit::experiments {

class Run;
struct Outcome;

/// A product that a library computed on an H200, in the folder of recordings, and the plan that it
/// followed (docs/GEMM.md).
struct RecordedProduct {
  std::string_view what, file, plan;
};

/// The parameter `products`: the folder of the recordings.
Parameter recordings_parameter();

/// Executes the plans on the recorded operands: outputs whose bits differ from the recorded ones.
/// The repository's own recordings may be absent (outside of it), which the notes then say.
void add_recorded_products(Run& run, std::span<const RecordedProduct> products, Outcome& outcome);

}  // namespace guardbit::experiments
