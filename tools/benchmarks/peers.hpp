#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace guardbit::tools {

/// Another library's conversion of an array of FP32, rounded to nearest even.
struct ConversionPeer {
  std::string_view library;
  /// bytes of an element: CPFloat's stay FP32
  std::size_t written = 0;
  void (*convert)(const float* from, void* to, std::size_t count) = nullptr;
};

/// The libraries that have a conversion to that format, were found when this was compiled, and may
/// run here: they are compiled with -march=native.
std::vector<ConversionPeer> conversion_peers(std::string_view to);

namespace peers {

/// Each with the formats that it has. Defined where GUARDBIT_CPFLOAT and GUARDBIT_ML_DTYPES are.
ConversionPeer cpfloat(std::string_view to);
ConversionPeer ml_dtypes(std::string_view to);

}  // namespace peers

}  // namespace guardbit::tools
