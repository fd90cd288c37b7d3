#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

/// A directory of its own that goes away with its owner.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "guardbit-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch directory");
    folder_ = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(folder_); }

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file that is not on disk; its bytes end where their allocation ends.
inline MappedFile in_memory(std::string_view text, const std::string& path = "memory") {
  const auto bytes = std::as_bytes(std::span(text));
  auto owner = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return {path, *owner, owner};
}

/// The message of the Error that `action` throws; empty when it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// `value` as `size` little-endian bytes.
inline std::string little_endian(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  return bytes;
}

/// A tensor of random codes; the seed is the number of elements.
inline Tensor random_tensor(const std::string& name, const Format& format, Packing packing,
                            const std::vector<std::int64_t>& shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  std::mt19937_64 generator(count);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = generator() & code_mask(format);
  return tensor_of_codes(name, format, packing, shape, codes);
}

inline bool same_codes(const Tensor& x, const Tensor& y) {
  return x.name == y.name && x.format == y.format && x.shape == y.shape &&
         codes_of(x) == codes_of(y);
}

}  // namespace guardbit::formats
