#include "formats/conversion/dense_codes.hpp"

#include <algorithm>
#include <array>

namespace guardbit::formats {

void pack_dense(int width, const std::byte* codes, std::byte* dense, std::size_t count,
                const kernels::Kernels& kernels) {
  const auto bits = static_cast<std::size_t>(width);
  const std::size_t whole = count / kernels::granule * kernels::granule;
  kernels.pack(width, codes, dense, whole);
  std::array<std::byte, kernels::granule> rest{};
  std::array<std::byte, kernels::granule> packed;  // written before read
  std::copy(codes + whole, codes + count, rest.begin());
  kernels.pack(width, rest.data(), packed.data(), rest.size());
  std::copy_n(packed.begin(), ((count - whole) * bits + 7) / 8, dense + whole * bits / 8);
}

void unpack_dense(int width, const std::byte* dense, std::byte* codes, std::size_t count,
                  const kernels::Kernels& kernels) {
  const auto bits = static_cast<std::size_t>(width);
  const std::size_t whole = count / kernels::granule * kernels::granule;
  kernels.unpack(width, dense, codes, whole);
  std::array<std::byte, kernels::granule> rest{};
  std::array<std::byte, kernels::granule> unpacked;  // written before read
  std::copy_n(dense + whole * bits / 8, ((count - whole) * bits + 7) / 8, rest.begin());
  kernels.unpack(width, rest.data(), unpacked.data(), unpacked.size());
  std::copy_n(unpacked.begin(), count - whole, codes + whole);
}

}  // namespace guardbit::formats
