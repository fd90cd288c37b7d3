#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/files/mapped_file.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// The tensors of a safetensors file, viewing the mapped file. A metadata value `format.<tensor>`
/// names the format of a tensor whose dtype cannot say it; it becomes the tensor's format and is
/// not listed in `metadata`. Error for any file that the format's definition forbids, and for
/// unknown dtypes and keys.
TensorFile read_safetensors(const std::string& path, const FormatOverrides& overrides = {});
TensorFile read_safetensors(const MappedFile& file, const FormatOverrides& overrides = {});

/// Where the tensors of a file lie.
struct SafetensorsLayout {
  /// what comes before all tensors
  std::string head;
  /// how their codes lie
  std::vector<Packing> packings;
  /// in the file
  std::vector<std::uint64_t> offsets;
};

/// The layout of tensors whose bytes are not there yet. Error for a name that comes twice.
SafetensorsLayout layout_safetensors(const std::string& where,
                                     const std::map<std::string, std::string>& metadata,
                                     std::span<const Tensor> tensors);

/// Writes tensors under their names, in alignment order. What no dtype says (formats outside the
/// table of dtype.hpp, and dense tensors that do not fill whole bytes) is written one code per
/// unsigned word, TF32 in F32, with its format as metadata value `format.<tensor>`.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const Tensor> tensors);

}  // namespace guardbit::formats
