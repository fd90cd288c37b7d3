#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/files/safetensors.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"

// Recordings that tests write themselves.
namespace guardbit::tests {

/// A file of tensors t0, t1, ... that is removed in the end.
class RecordingFile {
 public:
  explicit RecordingFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("guardbit_" + name + ".safetensors")) {}
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;
  ~RecordingFile() { std::filesystem::remove(path_); }

  /// The words of a tensor in a call's text.
  std::string fp32(const std::vector<float>& numbers) {
    std::vector<std::uint32_t> codes;
    for (const float number : numbers) codes.push_back(std::bit_cast<std::uint32_t>(number));
    return add(formats::fp32, codes);
  }
  /// Rows that lie one after another.
  std::string fp32_rows(const std::vector<float>& numbers, std::int64_t rows) {
    const std::string name = "t" + std::to_string(tensors_.size());
    std::vector<std::uint32_t> codes;
    for (const float number : numbers) codes.push_back(std::bit_cast<std::uint32_t>(number));
    const auto columns = static_cast<std::int64_t>(numbers.size()) / rows;
    tensors_.push_back(formats::tensor_of_codes(name, formats::fp32, formats::Packing::container,
                                                {rows, columns}, codes));
    return R"({"tensor": ")" + name + R"(", "shape": [)" + std::to_string(rows) + ", " +
           std::to_string(columns) + R"(], "stride": [)" + std::to_string(columns) + ", 1]}";
  }
  std::string fp16(const std::vector<std::uint16_t>& codes) { return add(formats::fp16, codes); }
  std::string int64(const std::vector<std::int64_t>& numbers) {
    std::vector<std::uint64_t> codes;
    for (const std::int64_t number : numbers) codes.push_back(static_cast<std::uint64_t>(number));
    return add(formats::int64, codes);
  }
  /// An image of one row of zeros, for operators of three dimensions.
  std::string fp32_image(std::int64_t columns) {
    const std::string name = "t" + std::to_string(tensors_.size()), n = std::to_string(columns);
    tensors_.push_back(
        formats::tensor_of_codes(name, formats::fp32, formats::Packing::container, {1, 1, columns},
                                 std::vector<std::uint32_t>(static_cast<std::size_t>(columns))));
    return R"({"tensor": ")" + name + R"(", "shape": [1, 1, )" + n + R"(], "stride": [)" + n +
           ", " + n + ", 1]}";
  }

  /// `calls`: JSON, without the brackets of the list.
  std::string write(const std::string& calls, const std::string& version = "2.11.0+cu130") {
    formats::write_safetensors(
        path_.string(), {{"kind", "recording"}, {"torch", version}, {"ops", "[" + calls + "]"}},
        tensors_);
    return path_.string();
  }

 private:
  template <class Codes>
  std::string add(const formats::Format& format, const Codes& codes) {
    const std::string name = "t" + std::to_string(tensors_.size());
    const auto count = static_cast<std::int64_t>(codes.size());
    tensors_.push_back(
        formats::tensor_of_codes(name, format, formats::Packing::container, {count}, codes));
    return R"({"tensor": ")" + name + R"(", "shape": [)" + std::to_string(count) +
           R"(], "stride": [1]})";
  }

  std::filesystem::path path_;
  std::vector<formats::Tensor> tensors_;
};

}  // namespace guardbit::tests
