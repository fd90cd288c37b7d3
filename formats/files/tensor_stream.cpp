#include "formats/files/tensor_stream.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

Tensor window_of(const Tensor& whole, std::span<const std::byte> bytes, std::size_t first) {
  const auto width = static_cast<std::size_t>(storage_bits(whole.format, whole.packing));
  const auto left = static_cast<std::size_t>(element_count(whole.shape)) - first;
  const std::size_t count = std::min(left, bytes.size() * 8 / width);
  return {whole.name, whole.format, whole.packing, {static_cast<std::int64_t>(count)}, bytes, {}};
}

Tensor whole_tensor(const std::string& where, const StreamedTensor& from) {
  Tensor tensor = from.tensor;
  if (!tensor.bytes.empty()) return tensor;
  const auto count = static_cast<std::uint64_t>(element_count(tensor.shape));
  const std::size_t size = byte_size(tensor.format, tensor.packing, count).value();
  std::shared_ptr<std::byte[]> data;
  try {
    data = std::make_shared_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    throw Error(where + ": tensor " + in_quotes(tensor.name),
                "no memory for its " + std::to_string(size) + " bytes");
  }
  std::byte* to = data.get();
  from.read([&](std::span<const std::byte> bytes, std::size_t) {
    to = std::ranges::copy(bytes, to).out;
  });
  tensor.bytes = {data.get(), size};
  tensor.owner = data;
  return tensor;
}

TensorFile whole_tensors(const std::string& where, const TensorStreams& from) {
  TensorFile file{from.metadata, {}};
  for (const StreamedTensor& tensor : from.tensors)
    file.tensors.push_back(whole_tensor(where, tensor));
  return file;
}

std::uint64_t largest_unpacked(std::size_t file_bytes) {
  constexpr std::uint64_t most = std::uint64_t{64} << 30;
  constexpr std::uint64_t always = std::uint64_t{1} << 30;
  constexpr std::uint64_t ratio = 256;
  const std::uint64_t expanded =
      file_bytes > (most - always) / ratio ? most : always + ratio * file_bytes;
  return std::max<std::uint64_t>(expanded, file_bytes);
}

std::string largest_unpacked_text() {
  return "1 GiB and 256 times the size of the file (64 GiB at most)";
}

}  // namespace guardbit::formats
