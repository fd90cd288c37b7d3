#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/product/cublas.hpp"
#include "gpu/screening/product_case.hpp"
#include "gpu/screening/screen_log.hpp"
#include "gpu/screening/screen_report.hpp"

// Large products by cuBLAS on the current device, every result of which is compared.
namespace guardbit::gpu {

/// A wrong result of a product.
struct WrongResult {
  std::uint32_t row, column;
  std::uint64_t expected, got;
};

using ProductLog = MismatchLog<WrongResult, 16>;

class ProductScreen {
 public:
  /// formats::Error where there is no cuBLAS or too little memory.
  explicit ProductScreen(const ProductCase& product);

  /// Multiplies and compares for about so long.
  void run(double seconds);

  /// Multiplications, and of those seconds, and of one without the comparison.
  std::uint64_t count() const { return count_; }
  double seconds() const { return seconds_; }
  double seconds_alone() const { return seconds_alone_; }
  std::uint64_t outputs() const;
  std::uint64_t mismatches() const { return mismatches_; }
  /// Most results of the very first product differ: cuBLAS follows another plan than the model.
  bool follows_another_plan() const { return follows_another_plan_; }

  /// Of the results that were wrong since the last call, the first ones; each product is repeated.
  std::vector<ScreenFault> faults(std::size_t most);

 private:
  void multiply() const;
  void compare() const;
  ProductLog read_log() const;

  const ProductCase& case_;
  CublasProduct cublas_;
  DeviceBuffer a_, b_, d_, expected_, log_;
  DeviceMatrices matrices_;
  ProductLog first_wrong_{};
  std::uint64_t count_ = 0, mismatches_ = 0;
  double seconds_ = 0, seconds_alone_ = 0, seconds_each_ = 0;
  bool follows_another_plan_ = false;
};

}  // namespace guardbit::gpu
