#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/conversions/conversion_forms.hpp"
#include "gpu/conversions/conversion_inputs.hpp"

// Conversions on the device: all inputs of a form, compared there with the model.
namespace guardbit::gpu {

/// What a kernel leaves in the memory of the device.
struct ConversionTally {
  /// of the device's own answers
  std::uint64_t digests[digest_slices];
  std::uint64_t mismatches;
  /// smallest number of such an input, or all ones
  std::uint64_t first_mismatch[digest_slices];
};

/// Arguments of a kernel: inputs [begin, begin + count) of a form.
struct ConversionLaunch {
  ConversionRule rule;
  int variant;
  std::uint64_t begin, count;
  /// device memory
  ConversionTally* tally;
  /// device memory for `count` answers, or null
  std::uint64_t* outputs;
};

using ConversionKernel = void (*)(const ConversionLaunch&);

/// The kernels, by ConversionForm::kernel.
std::span<const ConversionKernel> conversion_kernels();

/// An input on which the device and the model differ.
struct ConversionMismatch {
  std::uint64_t index;
  ConversionInput input;
  /// destination registers
  std::uint64_t device, model;
};

struct ConversionComparison {
  /// by slice
  std::vector<std::uint64_t> digests;
  std::uint64_t mismatches = 0;
  /// smallest first, from different slices
  std::vector<ConversionMismatch> examples;
  double seconds = 0;
};

/// Runs a form over all its inputs on the current device and compares it there with the model.
/// formats::Error for what CUDA refuses.
ConversionComparison compare_conversion(const ConversionForm& form, std::size_t most_examples);

}  // namespace guardbit::gpu
