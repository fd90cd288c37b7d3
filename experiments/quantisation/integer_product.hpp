#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/problem.hpp"
#include "experiments/quantisation/integer_tensor.hpp"
#include "experiments/quantisation/requantisation.hpp"

namespace guardbit::experiments {

struct IntegerProductOptions {
  std::string arch = "sm_90";
  /// empty: mma.sync of the operands' integers, sparse if `sparse`
  std::string instruction;
  /// A is 2:4 sparse
  bool sparse = false;
  int threads = 0;
};

/// A product of quantised matrices as a tensor core computes it.
struct IntegerProduct {
  std::int64_t m = 0, n = 0;
  std::string instruction;
  /// of (qa - za)(qb - zb), row-major [m, n], modulo 2^32
  std::vector<std::int32_t> sums;
  /// scale of each sum: that of its row of A times that of its column
  std::vector<double> factors;
};

/// a [M, K] with a scale for all or for each row (axis 0), b [K, N] with one for all or for each
/// column (axis 1). The tensor core multiplies the codes; zero points are taken off afterwards with
/// sums of rows and columns. Throws formats::Error, beginning with `where`, for other shapes, for
/// an instruction that does not take these integers, and where A is not sparse but should be.
IntegerProduct multiply(const IntegerTensor& a, const IntegerTensor& b,
                        const IntegerProductOptions& options, std::string_view where);

/// The codes as the emulator takes them; bits up to 4 as INT4.
emulator::CodeMatrix code_matrix(const IntegerTensor& tensor, int bits);

}  // namespace guardbit::experiments
