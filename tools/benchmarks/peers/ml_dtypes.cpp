#include <Eigen/Core>

#if !EIGEN_VERSION_AT_LEAST(3, 4, 90)
// ml_dtypes follows Eigen's newest sources; all that it finds missing in a release:
namespace Eigen::numext {
template <std::size_t>
struct get_integer_by_size;
template <>
struct get_integer_by_size<1> {
  using unsigned_type = std::uint8_t;
};
template <>
struct get_integer_by_size<2> {
  using unsigned_type = std::uint16_t;
};
template <>
struct get_integer_by_size<4> {
  using unsigned_type = std::uint32_t;
};
template <>
struct get_integer_by_size<8> {
  using unsigned_type = std::uint64_t;
};
}  // namespace Eigen::numext
#endif

#include <ml_dtypes/include/float8.h>

#include "tools/benchmarks/peers.hpp"

namespace guardbit::tools::peers {

namespace {

template <class T>
void convert(const float* from, void* to, std::size_t count) {
  T* const out = static_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(from[i]);
}

}  // namespace

// Its FP16 and BF16 are Eigen's.
ConversionPeer ml_dtypes(std::string_view to) {
  if (to == "bf16") return {"ml_dtypes", 2, convert<Eigen::bfloat16>};
  if (to == "fp16") return {"ml_dtypes", 2, convert<Eigen::half>};
  if (to == "e4m3") return {"ml_dtypes", 1, convert<::ml_dtypes::float8_e4m3fn>};
  if (to == "e5m2") return {"ml_dtypes", 1, convert<::ml_dtypes::float8_e5m2>};
  return {};
}

}  // namespace guardbit::tools::peers
