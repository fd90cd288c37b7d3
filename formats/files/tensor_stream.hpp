#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/files/tensor_file.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// Receives the next elements of a tensor in row-major order: their bytes, which may be gone when
/// it returns, and the index of the first of them.
using WindowVisitor = std::function<void(std::span<const std::byte> bytes, std::size_t first)>;

/// A tensor of an open file.
struct StreamedTensor {
  /// `bytes` are empty where they have to be read first
  Tensor tensor;
  /// Gives the visitor every element once, a window of at most `window_bytes` at a time or, where
  /// the file's own pages can be used, all at once. Error for what is only found then: a checksum
  /// that is wrong, data that ends early.
  std::function<void(const WindowVisitor&)> read;
};

/// What an open file of tensors holds; the tensors in the file's order.
struct TensorStreams {
  std::map<std::string, std::string> metadata;
  std::vector<StreamedTensor> tensors;
  /// names and why
  std::vector<std::pair<std::string, std::string>> left_out;
};

/// Whole numbers of elements of every width, and of whole bytes of dense codes, fit.
inline constexpr std::size_t window_bytes = std::size_t{3} << 22;

/// A window as a tensor of one dimension, which views the window. Of dense codes the file's last
/// byte may hold fewer than fit.
Tensor window_of(const Tensor& whole, std::span<const std::byte> bytes, std::size_t first);

/// A tensor whose bytes are in memory.
inline StreamedTensor streamed(Tensor tensor) {
  const auto read = [bytes = tensor.bytes, owner = tensor.owner](const WindowVisitor& visit) {
    if (!bytes.empty()) visit(bytes, 0);
  };
  return {std::move(tensor), read};
}

/// The tensor with all of its bytes. Error of `where` when memory does not hold them.
Tensor whole_tensor(const std::string& where, const StreamedTensor& from);

TensorFile whole_tensors(const std::string& where, const TensorStreams& from);

/// Bytes that the tensors of a file of that size may have together where it can say them in fewer:
/// 1 GiB and 256 times the file, 64 GiB at most; the file's own size where that is more. What
/// announces more is not unpacked.
std::uint64_t largest_unpacked(std::size_t file_bytes);
/// The same in words.
std::string largest_unpacked_text();

}  // namespace guardbit::formats
