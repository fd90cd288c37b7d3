#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "emulator/gemm/code_matrix.hpp"
#include "emulator/gemm/plan.hpp"

// The sums of a product before its epilogue.
namespace guardbit::emulator {

/// Values of the accumulators, batch after batch, row-major: FP32 numbers where those hold every
/// number of the accumulator's format, else FP64 ones.
class Sums {
 public:
  Sums() = default;
  Sums(std::vector<float> singles) : singles_(std::move(singles)) {}
  Sums(std::vector<double> doubles) : doubles_(std::move(doubles)) {}

  std::size_t size() const { return singles_.size() + doubles_.size(); }
  bool empty() const { return size() == 0; }
  bool are_singles() const { return doubles_.empty(); }
  double operator[](std::size_t i) const { return are_singles() ? singles_[i] : doubles_[i]; }

  std::span<float> singles() { return singles_; }
  std::span<const float> singles() const { return singles_; }
  /// All as FP64 numbers from now on.
  std::span<double> doubles();

 private:
  std::vector<float> singles_;
  std::vector<double> doubles_;
};

/// Do FP32 numbers hold every number of the format?
bool fits_singles(const Format& format);

/// The numbers of a matrix of accumulators.
Sums sums_of(const CodeMatrix& matrix);

/// Partial sums stored and added as the partition says; additions in the format of the epilogue.
Sums add_up(const Partition& partition, const Format& compute, std::vector<Sums> parts);

}  // namespace guardbit::emulator
