#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/tensors/byte_writer.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// How a tensor's codes have to lie, and what takes their bytes.
struct TensorWriter {
  Packing packing;
  ByteWriter write;
};

/// A .safetensors, .npy or .npz file that is written while its tensors are made, and appears when
/// it is complete.
class TensorOutput {
 public:
  /// The tensors that the file will hold; their bytes are not looked at. Error for what the file's
  /// kind cannot hold, and for an unknown kind.
  TensorOutput(const std::string& path, const std::map<std::string, std::string>& metadata,
               std::vector<Tensor> tensors);

  /// Of that tensor. The file is complete once all of its bytes were written.
  TensorWriter writer(std::size_t tensor);
  /// Memory for that tensor's codes, one per container, which are in the file once they are
  /// written; it is there while this object is. Nothing where the file packs the codes.
  std::span<std::byte> memory(std::size_t tensor);

  void commit();

 private:
  std::string path_;
  std::vector<Tensor> tensors_;
  /// nothing for .npz, which is written at the end
  std::optional<AtomicOutput> output_;
  /// of the tensors in the file
  std::vector<std::uint64_t> offsets_;
  /// of the tensors of an .npz
  std::vector<std::span<std::byte>> memory_;
};

}  // namespace guardbit::formats
