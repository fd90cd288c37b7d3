#pragma once

#include <optional>
#include <string>

#include "gpu/cuda/product/device_product.hpp"

// Products by cuBLAS, to compare with.
namespace guardbit::gpu {

/// cuBLAS, where the system has it: found when the program runs, so that it is no dependency.
struct CublasRun {
  /// "libcublas.so.13"
  std::string library;
  double seconds = 0;
};

/// Why cublasGemmEx cannot multiply an instruction's types into its results; empty when it can.
std::string cublas_refusal(const emulator::MatrixInstruction& instruction, bool has_addend);

/// D = A * B by cublasGemmEx with its own choice of algorithm, timed once after a warm-up. Empty
/// when no libcublas is installed; formats::Error when it fails.
std::optional<CublasRun> run_cublas(const emulator::MatrixInstruction& instruction,
                                    const DeviceMatrices& matrices);

}  // namespace guardbit::gpu
