#include "tests/oracle/capture_reader.hpp"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace guardbit::oracle {
namespace {

/// Reads the few JSON shapes that occur in a header: strings, unsigned numbers, arrays, objects.
class Header {
 public:
  explicit Header(std::string text) : text_(std::move(text)) {}

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ >= text_.size()) throw std::runtime_error("recording: header ends early");
    return text_[at_];
  }
  void expect(char wanted) {
    if (peek() != wanted) throw std::runtime_error(std::string("recording: no ") + wanted);
    ++at_;
  }
  std::string string() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      result += text_.at(at_++);
    }
    expect('"');
    return result;
  }
  std::size_t number() {
    peek();
    std::size_t length = 0;
    const std::size_t value = std::stoull(text_.substr(at_, 20), &length);
    at_ += length;
    return value;
  }
  /// Calls `element` for each entry between `open` and `close`.
  template <class Element>
  void list(char open, char close, Element element) {
    expect(open);
    while (peek() != close) {
      element();
      if (peek() == ',') expect(',');
    }
    expect(close);
  }
  std::vector<std::size_t> numbers() {
    std::vector<std::size_t> result;
    list('[', ']', [&] { result.push_back(number()); });
    return result;
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

std::uint64_t little_endian(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return value;
}

}  // namespace

Recording read_recording(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const std::size_t data = 8 + little_endian(bytes, 0, 8);
  Header header(bytes.substr(8, data - 8));
  Recording recording;
  header.list('{', '}', [&] {
    const std::string name = header.string();
    header.expect(':');
    RecordedTensor tensor;
    std::vector<std::size_t> range;
    header.list('{', '}', [&] {
      const std::string key = header.string();
      header.expect(':');
      if (name == "__metadata__")
        recording.metadata[key] = header.string();
      else if (key == "dtype")
        tensor.dtype = header.string();
      else
        (key == "shape" ? tensor.shape : range) = header.numbers();
    });
    if (name == "__metadata__") return;
    std::size_t elements = 1;
    for (const std::size_t extent : tensor.shape) elements *= extent;
    const std::size_t size = elements == 0 ? 0 : (range.at(1) - range.at(0)) / elements;
    for (std::size_t i = 0; i < elements; ++i)
      tensor.codes.push_back(little_endian(bytes, data + range[0] + i * size, size));
    recording.tensors[name] = std::move(tensor);
  });
  return recording;
}

std::optional<std::filesystem::path> shared_folder() {
  const char* named = std::getenv("GUARDBIT_SHARED");
  const std::filesystem::path folder = named != nullptr ? named : "../shared";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace guardbit::oracle
