#include "formats/files/npy_header.hpp"

#include <limits>
#include <string_view>

#include "formats/files/dtype.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t largest_header = 65536;
constexpr std::size_t most_dimensions = 64;  // NumPy 2's limit

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Major version 1 keeps the header length in two bytes, 2 and 3 in four.
std::size_t length_bytes(const std::string& where, std::span<const std::byte> prefix) {
  if (prefix.size() < magic.size() + 4 || !as_text(prefix).starts_with(magic)) {
    throw Error(where, "not a .npy array: the magic bytes are missing");
  }
  const auto major = std::to_integer<int>(prefix[6]);
  if (major < 1 || major > 3 || prefix[7] != std::byte{0}) {
    throw Error(where + ": byte 6",
                "unknown .npy version " + std::to_string(major) + "." +
                    std::to_string(std::to_integer<int>(prefix[7])),
                "1.0, 2.0, 3.0");
  }
  return major == 1 ? 2 : 4;
}

/// The subset of Python's literals that NumPy writes: one dictionary of a string, a boolean and a
/// tuple of integers.
class HeaderLiteral {
 public:
  HeaderLiteral(const std::string& where, std::string_view text, std::size_t first_byte)
      : where_(where), text_(text), first_byte_(first_byte) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        header.descr = type_string();
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        refuse("the key " + in_quotes(key) + " is unknown or appears twice");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("text after the dictionary");
    if (!descr || !order || !shape) refuse("it needs the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(where_ + ": byte " + std::to_string(first_byte_ + at_), "the .npy header: " + what);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    const bool found = next_is(c);
    if (found) ++at_;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("'") + c + "' expected");
  }

  std::string string() {
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos) refuse("a string without its end");
    const std::string_view content = text_.substr(at_, end - at_);
    if (content.find_first_of("\\\n") != content.npos) refuse("an escape in a string");
    at_ = end + 1;
    return std::string(content);
  }

  std::string type_string() {
    if (next_is('[') || next_is('(') || next_is('{')) {
      throw Error(where_, "arrays of structures are not supported", numpy_dtype_names());
    }
    return string();
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    refuse("True or False expected");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) refuse("',' or ')' expected");
      if (result.size() == most_dimensions) refuse("more than 64 dimensions");
      result.push_back(dimension());
      comma = accept(',');
    }
    if (result.size() == 1 && !comma) refuse("a tuple of one needs its comma");
    return result;
  }

  std::int64_t dimension() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const std::int64_t digit = text_[at_] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) {
        refuse("a dimension is too large");
      }
      value = value * 10 + digit;
    }
    if (at_ == start) refuse("a dimension (a whole number from 0) expected");
    return value;
  }

  const std::string& where_;
  std::string_view text_;
  std::size_t first_byte_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t npy_data_offset(const std::string& where, std::span<const std::byte> prefix) {
  const std::size_t start = magic.size() + 2 + length_bytes(where, prefix);
  if (prefix.size() < start) throw Error(where, "the .npy header is cut short");
  const std::byte* at = prefix.data() + magic.size() + 2;
  const std::size_t length =
      start == npy_prefix_bytes ? load_word<std::uint32_t>(at) : load_word<std::uint16_t>(at);
  if (length > largest_header) {
    throw Error(where + ": byte 8", "the .npy header length " + std::to_string(length) +
                                        " is above the limit of " + std::to_string(largest_header));
  }
  return start + length;
}

NpyHeader parse_npy_header(const std::string& where, std::span<const std::byte> bytes) {
  const std::size_t end = npy_data_offset(where, bytes);
  if (end > bytes.size()) throw Error(where, "the .npy header is cut short");
  const std::size_t start = magic.size() + 2 + length_bytes(where, bytes);
  return HeaderLiteral(where, as_text(bytes.subspan(start, end - start)), start).parse();
}

std::string npy_header_text(const NpyHeader& header) {
  std::string shape;
  for (const std::int64_t dimension : header.shape) shape += std::to_string(dimension) + ", ";
  if (header.shape.size() > 1) shape.erase(shape.size() - 2);
  if (header.shape.size() == 1) shape.pop_back();
  std::string literal = "{'descr': '" + header.descr +
                        "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
                        ", 'shape': (" + shape + "), }";
  // 64 dimensions of 20 characters stay far below version 1's limit of 65535.
  constexpr std::size_t prefix = 10;
  literal.append(63 - (prefix + literal.size()) % 64, ' ');
  literal += '\n';
  std::string text(magic);
  text += {'\x01', '\0', static_cast<char>(literal.size() & 0xFFU),
           static_cast<char>(literal.size() >> 8U)};
  return text + literal;
}

}  // namespace guardbit::formats
