#pragma once

#include <span>
#include <string>

#include "formats/files/mapped_file.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_stream.hpp"

namespace guardbit::formats {

enum class ZipMethod { stored, deflated };

/// The arrays of an .npz archive, named as numpy.load names them. A format that NumPy cannot say
/// comes from the overrides, from the comment that write_npz leaves on the entry, or from the
/// entry's name. Error for entries that are not .npy arrays, that appear twice, or that announce
/// more than their compressed bytes can hold or than largest_unpacked() allows.
TensorFile read_npz(const std::string& path, const FormatOverrides& overrides = {});
TensorFile read_npz(const MappedFile& file, const FormatOverrides& overrides = {});

/// The same arrays, unpacked when they are read; one at a time.
TensorStreams open_npz(const MappedFile& file, const FormatOverrides& overrides = {});

/// Writes the arrays as numpy.savez does, with the formats that NumPy cannot say as entry comments.
/// No tensors: Error.
void write_npz(const std::string& path, std::span<const Tensor> tensors,
               ZipMethod method = ZipMethod::stored);

}  // namespace guardbit::formats
