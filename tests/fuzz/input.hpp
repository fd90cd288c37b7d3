#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "formats/files/mapped_file.hpp"
#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_stream.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

// What the fuzz targets share. A target gives one parser the bytes of the fuzzer. A value and a
// formats::Error of one line are the answers that are expected; everything else ends the process.
namespace guardbit::tests::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process and says why, where a parser answered what it must not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// Calls the parser. Exceptions of other types end the process.
template <class Parse>
int parse_or_refuse(const Parse& parse) {
  try {
    parse();
  } catch (const formats::Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "an error of more than one line");
  }
  return 0;
}

inline formats::MappedFile in_memory(const std::uint8_t* data, std::size_t size) {
  return {"input", std::as_bytes(std::span(data, size)), nullptr};
}

/// Reads every byte, so that the sanitizers see where it lies.
inline void touch(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
  [[maybe_unused]] static volatile unsigned sink = 0;
  sink = sum;
}

inline void touch(const formats::Tensor& tensor) {
  const auto size =
      formats::byte_size(tensor.format, tensor.packing,
                         static_cast<std::uint64_t>(formats::element_count(tensor.shape)));
  require(size && *size == tensor.bytes.size(), "a tensor with more or fewer bytes than its shape");
  touch(tensor.bytes);
}

/// Reads the data, too, of tensors up to 1 MiB: small files may announce many zeros.
inline void touch(const formats::TensorStreams& streams) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  for (const formats::StreamedTensor& one : streams.tensors) {
    const auto count = static_cast<std::uint64_t>(formats::element_count(one.tensor.shape));
    const auto size = formats::byte_size(one.tensor.format, one.tensor.packing, count);
    require(size.has_value(), "a tensor without a size");
    if (*size > most) continue;
    try {
      touch(formats::whole_tensor("input", one));
    } catch (const formats::Error&) {  // of its data: the next one may be whole
    }
  }
}

/// A file of that name with the fuzzer's bytes, for parsers that open it themselves. There is one
/// folder for each process, in memory where the machine has /dev/shm.
class InputFile {
 public:
  explicit InputFile(const std::string& name) {
    std::error_code error;
    const bool in_memory = std::filesystem::is_directory("/dev/shm", error);
    folder_ =
        (in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
        ("guardbit-fuzz-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  const std::string& write(const std::uint8_t* data, std::size_t size) const {
    std::FILE* const file = std::fopen(path_.c_str(), "wb");
    require(file != nullptr && std::fwrite(data, 1, size, file) == size && std::fclose(file) == 0,
            "the input cannot be written to a file");
    return path_;
  }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

}  // namespace guardbit::tests::fuzz
