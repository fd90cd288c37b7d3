#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// The bytes of an IDX file, the format of MNIST's files (yann.lecun.com/exdb/mnist): two zero
/// bytes, the type (08: unsigned bytes, the only one that is read here), the number of dimensions,
/// each dimension as a big-endian word of 32 bits, the data. A file packed by gzip, as MNIST's are
/// distributed, is unpacked, up to 2 GiB. Error for any other file, and one that is shorter or
/// longer than it says.
Tensor read_idx(const std::string& path);

/// Writes unsigned bytes of that shape.
void write_idx(const std::string& path, const std::vector<std::int64_t>& shape,
               const std::vector<std::uint8_t>& bytes);

}  // namespace guardbit::formats
