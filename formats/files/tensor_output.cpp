#include "formats/files/tensor_output.hpp"

#include <filesystem>
#include <memory>
#include <utility>

#include "formats/files/npy.hpp"
#include "formats/files/npz.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {
TensorOutput::TensorOutput(const std::string& path,
                           const std::map<std::string, std::string>& metadata,
                           std::vector<Tensor> tensors)
    : path_(path), tensors_(std::move(tensors)) {
  const std::string where = printable(path);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".safetensors" || path == "-") {
    SafetensorsLayout layout = layout_safetensors(where, metadata, tensors_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].packing = layout.packings[i];
    offsets_ = std::move(layout.offsets);
    output_.emplace(path).write(layout.head);
    return;
  }
  if (extension != ".npy" && extension != ".npz")
    throw Error(where, "unknown extension", ".safetensors, .npy, .npz");
  if (extension == ".npy" && tensors_.size() != 1) {
    throw Error(where, "a .npy file holds one tensor, not " + std::to_string(tensors_.size()) +
                           ": use .npz");
  }
  for (Tensor& tensor : tensors_) tensor.packing = Packing::container;
  const AtomicOutput writable(path);
  if (extension == ".npy") {
    const std::string head = npy_head(tensors_.front());
    offsets_ = {head.size()};
    output_.emplace(path).write(head);
    return;
  }
  for (Tensor& tensor : tensors_) {
    const auto count = static_cast<std::uint64_t>(element_count(tensor.shape));
    const auto size =
        static_cast<std::size_t>(byte_size(tensor.format, tensor.packing, count).value());
    const std::shared_ptr<std::byte[]> memory = std::make_shared_for_overwrite<std::byte[]>(size);
    memory_.emplace_back(memory.get(), size);
    tensor.bytes = memory_.back();
    tensor.owner = memory;
  }
}

TensorWriter TensorOutput::writer(std::size_t tensor) {
  const Packing packing = tensors_[tensor].packing;
  if (!output_) return {packing, writer_to(memory_[tensor])};
  return {packing,
          [this, offset = offsets_[tensor]](std::size_t at, std::span<const std::byte> bytes) {
            output_->write_at(offset + at, bytes);
          }};
}

std::span<std::byte> TensorOutput::memory(std::size_t tensor) {
  const Tensor& x = tensors_[tensor];
  if (x.packing != Packing::container) return {};
  if (!output_) return memory_[tensor];
  const auto count = static_cast<std::uint64_t>(element_count(x.shape));
  return output_->map(offsets_[tensor],
                      static_cast<std::size_t>(byte_size(x.format, x.packing, count).value()));
}

void TensorOutput::commit() {
  if (output_) return output_->commit();
  write_npz(path_, tensors_);
}

}  // namespace guardbit::formats
