#include "formats/files/safetensors_header.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/support/error.hpp"
#include "formats/support/library_words.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

using Json = nlohmann::json;

/// Receives JSON events and accepts only {"__metadata__": {name: string}, tensor: {dtype, shape,
/// data_offsets}}. The parser that feeds it does not recurse, and the first event out of place ends
/// it, so nesting costs nothing.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  SafetensorsHeader header;

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_integer(Json::number_integer_t) { unexpected("a negative number"); }
  bool number_float(Json::number_float_t, const std::string& text) {
    unexpected("the number " + printable(text, 40));
  }
  bool binary(Json::binary_t&) { unexpected("binary data"); }

  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::shape) {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("the dimension " + std::to_string(number) + " is too large");
      }
      entry().shape.push_back(static_cast<std::int64_t>(number));
    } else if (place_ == Place::offsets && offsets_ < 2) {
      (offsets_ == 0 ? entry().begin : entry().end) = number;
      ++offsets_;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      header.metadata[key_] = text;
    } else if (place_ == Place::tensor && key_ == "dtype") {
      entry().dtype = text;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::root;
    } else if (place_ == Place::root) {
      place_ = key_ == "__metadata__" ? Place::metadata : Place::tensor;
      if (place_ == Place::tensor) header.entries.emplace_back().name = key_;
      keys_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& text) {
    if (!(place_ == Place::root ? names_ : keys_).insert(text).second) {
      refuse("the key " + in_quotes(text) + " appears twice");
    }
    if (place_ == Place::tensor && text != "dtype" && text != "shape" && text != "data_offsets") {
      throw Error(here(), "unknown key " + in_quotes(text), "dtype, shape, data_offsets");
    }
    key_ = text;
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor && keys_.size() < 3) {
      refuse("it needs the keys dtype, shape and data_offsets");
    }
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("an array");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offsets_ < 2) refuse("data_offsets needs two numbers");
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    std::string what = without_library_words(error.what());
    // "at line 1, column 5: ": the byte says it
    if (what.starts_with("at line ")) what.erase(0, what.find(": ") + 2);
    constexpr std::size_t length_bytes = 8;
    throw Error(where_ + ": byte " + std::to_string(length_bytes + position),
                "the header is not JSON: " + printable(what));
  }

 private:
  enum class Place { outside, root, metadata, tensor, shape, offsets };

  SafetensorsEntry& entry() { return header.entries.back(); }

  std::string here() const {
    switch (place_) {
      case Place::outside:
      case Place::root: return where_ + ": header";
      case Place::metadata: return where_ + ": __metadata__";
      default: return where_ + ": tensor " + in_quotes(header.entries.back().name);
    }
  }
  [[noreturn]] void refuse(const std::string& what) const { throw Error(here(), what); }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case Place::outside:
      case Place::root: refuse(found + " where an object belongs, at key " + in_quotes(key_));
      case Place::metadata: refuse(found + " where a string belongs, at key " + in_quotes(key_));
      case Place::shape: refuse(found + " in the shape, which holds whole numbers from 0");
      case Place::offsets: refuse(found + " in data_offsets, which holds two whole numbers from 0");
      case Place::tensor: break;
    }
    refuse(found + " is no value for the key " + in_quotes(key_));
  }

  const std::string& where_;
  Place place_ = Place::outside;
  std::string key_;
  /// keys seen in the root
  std::set<std::string> names_;
  /// keys seen in the current inner object
  std::set<std::string> keys_;
  int offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& where, std::string_view text) {
  const std::size_t last = text.find_last_not_of(' ');
  if (text.empty() || text.front() != '{') {
    throw Error(where, "the header does not begin with '{'");
  }
  if (text[last] != '}') {
    throw Error(where + ": byte " + std::to_string(8 + last),
                "the header does not end with '}' and spaces");
  }
  // The parser takes a NUL for the end of its input.
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {
    throw Error(where + ": byte " + std::to_string(8 + nul), "the header is not JSON: a NUL");
  }
  HeaderReader reader(where);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader.header);
}

std::string safetensors_header_text(const std::string& where, const SafetensorsHeader& header) {
  const auto quote = [&](const std::string& text) {
    try {
      return Json(text).dump();
    } catch (const Json::exception&) {
      throw Error(where, "not UTF-8: " + in_quotes(text));
    }
  };
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      text += (text.back() == '{' ? "" : ",") + quote(key) + ":" + quote(value);
    }
    text += "}";
  }
  for (const SafetensorsEntry& entry : header.entries) {
    if (text.back() != '{') text += ',';
    text += quote(entry.name) + ":{\"dtype\":\"" + entry.dtype + "\",\"shape\":[";
    for (const std::int64_t dimension : entry.shape) {
      text += (text.back() == '[' ? "" : ",") + std::to_string(dimension);
    }
    text += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
            "]}";
  }
  return text + "}";
}

}  // namespace guardbit::formats
