#pragma once

#include <map>
#include <span>
#include <string>

#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_stream.hpp"

namespace guardbit::formats {

/// Reads a .safetensors, .npy, .npz, .pt (torch.save) or HDF5 file, told apart by content.
/// `overrides.any` re-reads every tensor that stores as many bits per element (required for .npy
/// and .npz data in formats that NumPy cannot say, unless a name says it).
TensorFile read_tensors(const std::string& path, const FormatOverrides& overrides = {});

/// The same tensors, read when they are asked for.
TensorStreams open_tensors(const std::string& path, const FormatOverrides& overrides = {});

/// Whether the path ends as the files that can be read do; and these endings, for messages.
bool has_tensor_extension(const std::string& path);
std::string tensor_extensions();

/// Writes the kind of file that the path's extension names. A .npy file takes exactly one tensor;
/// metadata is kept by .safetensors only.
void write_tensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                   std::span<const Tensor> tensors);

}  // namespace guardbit::formats
