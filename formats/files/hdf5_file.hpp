#pragma once

#include <cstddef>
#include <span>

#include "formats/files/mapped_file.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_stream.hpp"

namespace guardbit::formats {

/// Whether the bytes begin as an HDF5 file does.
bool is_hdf5(std::span<const std::byte> bytes);

/// The datasets of numbers of an HDF5 file, named by their paths; other datasets are left out and
/// listed. Numeric attributes step, rank and loss_scale of the root become metadata. Raw (opaque)
/// words need a format, as in .npz files. Nothing outside the file is followed, no filter plugins
/// are loaded. Error for damaged files, for datasets that announce more than largest_unpacked(),
/// and where the program was built without HDF5 or libhdf5 is not installed.
TensorStreams open_hdf5(const MappedFile& file, const FormatOverrides& overrides = {});

}  // namespace guardbit::formats
