#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/conversions/conversion_forms.hpp"
#include "gpu/conversions/conversion_inputs.hpp"

namespace guardbit::gpu {

/// What a kernel leaves in the memory of the device.
struct ConversionTally {
  std::uint64_t digests[digest_slices];  ///< of the device's own answers
  std::uint64_t mismatches;
  std::uint64_t first_mismatch[digest_slices];  ///< smallest number of such an input, or all ones
};

/// Arguments of a kernel: inputs [begin, begin + count) of a form.
struct ConversionLaunch {
  ConversionRule rule;
  int variant;
  std::uint64_t begin, count;
  ConversionTally* tally;  ///< device memory
  std::uint64_t* outputs;  ///< device memory for `count` answers, or null
};

using ConversionKernel = void (*)(const ConversionLaunch&);

/// The kernels, by ConversionForm::kernel.
std::span<const ConversionKernel> conversion_kernels();

/// An input on which the device and the model differ.
struct ConversionMismatch {
  std::uint64_t index;
  ConversionInput input;
  std::uint64_t device, model;  ///< destination registers
};

struct ConversionComparison {
  std::vector<std::uint64_t> digests;  ///< by slice
  std::uint64_t mismatches = 0;
  std::vector<ConversionMismatch> examples;  ///< smallest first, from different slices
  double seconds = 0;
};

/// Runs a form over all its inputs on the current device and compares it there with the model.
/// formats::Error for what CUDA refuses.
ConversionComparison compare_conversion(const ConversionForm& form, std::size_t most_examples);

}  // namespace guardbit::gpu
