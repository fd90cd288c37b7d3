#pragma once

#include <cstddef>

#include "formats/conversion/kernels/conversion_kernels.hpp"

namespace guardbit::formats {

/// `count` codes of `width` < 8 bits, one in each byte with nothing above it, to dense ones, which
/// begin at a byte. The rest of the last byte becomes zero.
void pack_dense(int width, const std::byte* codes, std::byte* dense, std::size_t count,
                const kernels::Kernels& kernels = *kernels::available().front());

/// The way back.
void unpack_dense(int width, const std::byte* dense, std::byte* codes, std::size_t count,
                  const kernels::Kernels& kernels = *kernels::available().front());

}  // namespace guardbit::formats
