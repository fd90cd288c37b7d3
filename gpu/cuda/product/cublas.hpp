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

/// Products by cublasGemmEx on the current device, which chooses the algorithm itself.
class CublasProduct {
 public:
  /// The instruction gives the formats, which cublas_refusal must take; results of FP16 are
  /// accumulated in FP16, others in FP32 or FP64. formats::Error when there is no cuBLAS.
  explicit CublasProduct(const emulator::MatrixInstruction& instruction);
  CublasProduct(const CublasProduct&) = delete;
  CublasProduct& operator=(const CublasProduct&) = delete;
  ~CublasProduct();

  /// Results of FP16 in FP32 too.
  void accumulate_wide();
  /// Asynchronous.
  void multiply(const DeviceMatrices& matrices) const;

  static bool is_there();
  static const std::string& library_name();

 private:
  void* handle_ = nullptr;
  int a_, d_, compute_ = 0;
  unsigned char one_[8] = {};
};

/// D = A * B by cublasGemmEx with its own choice of algorithm, timed once after a warm-up. Empty
/// when no libcublas is installed; formats::Error when it fails.
std::optional<CublasRun> run_cublas(const emulator::MatrixInstruction& instruction,
                                    const DeviceMatrices& matrices);

}  // namespace guardbit::gpu
