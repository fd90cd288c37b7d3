#include "emulator/replay/json_reader.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::emulator::replay {
namespace {

constexpr int deepest = 32;

/// The UTF-8 of a code point.
void append_utf8(std::string& text, unsigned code) {
  const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

void JsonReader::refuse(const std::string& what) const {
  throw formats::Error(where_ + (place_.empty() ? "" : ": " + place_),
                       what + " (byte " + std::to_string(at_) + " of the list)");
}

char JsonReader::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  if (at_ == text_.size()) refuse("not JSON: it ends too early");
  return text_[at_];
}

void JsonReader::take(char expected) {
  if (peek() != expected)
    refuse("not JSON: " + formats::in_quotes(std::string(1, text_[at_])) + " where " +
           formats::in_quotes(std::string(1, expected)) + " belongs");
  ++at_;
}

bool JsonReader::take_word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

JsonReader::Kind JsonReader::kind() {
  switch (peek()) {
    case '{': return Kind::object;
    case '[': return Kind::list;
    case '"': return Kind::string;
    case 't':
    case 'f': return Kind::boolean;
    case 'n': return Kind::null;
    default: return Kind::number;
  }
}

void JsonReader::begin(char opening) {
  take(opening);
  if (++depth_ > deepest) refuse("nests deeper than " + std::to_string(deepest) + " levels");
  is_first_ = true;
}

bool JsonReader::next(char closing) {
  if (peek() == closing) {
    ++at_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!is_first_) {
    take(',');
    if (peek() == closing) refuse("not JSON: a comma before the end");
  }
  is_first_ = false;
  return true;
}

void JsonReader::begin_list() { begin('['); }
bool JsonReader::next_item() { return next(']'); }
void JsonReader::begin_object() { begin('{'); }
bool JsonReader::next_key(std::string& key) {
  if (!next('}')) return false;
  key = string();
  take(':');
  return true;
}

unsigned JsonReader::code_unit() {
  unsigned code = 0;
  if (at_ + 4 > text_.size()) refuse("not JSON: a cut escape");
  const char* first = text_.data() + at_;
  const auto [last, error] = std::from_chars(first, first + 4, code, 16);
  if (error != std::errc() || last != first + 4) refuse("not JSON: a bad escape");
  at_ += 4;
  return code;
}

std::string JsonReader::string() {
  take('"');
  std::string result;
  while (true) {
    if (at_ == text_.size()) refuse("not JSON: a text without an end");
    const char c = text_[at_++];
    if (c == '"') return result;
    if (static_cast<unsigned char>(c) < 0x20) refuse("not JSON: a control character in a text");
    if (c != '\\') {
      result += c;
      continue;
    }
    if (at_ == text_.size()) refuse("not JSON: a text without an end");
    constexpr std::string_view escapes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char escape = text_[at_++];
    if (escape == 'u') {
      unsigned code = code_unit();
      const bool is_high = code >= 0xd800 && code < 0xdc00;
      if (is_high && take_word("\\u"))
        code = 0x10000 + ((code - 0xd800) << 10) + code_unit() - 0xdc00;
      append_utf8(result, code <= 0x10ffff ? code : 0xfffd);
    } else if (const auto place = escapes.find(escape); place != std::string_view::npos) {
      result += meanings[place];
    } else {
      refuse("not JSON: a bad escape");
    }
  }
}

std::variant<std::int64_t, double> JsonReader::number() {
  peek();
  if (take_word("NaN")) return std::numeric_limits<double>::quiet_NaN();
  if (take_word("Infinity")) return std::numeric_limits<double>::infinity();
  if (take_word("-Infinity")) return -std::numeric_limits<double>::infinity();
  const char* first = text_.data() + at_;
  const char* end = text_.data() + text_.size();
  std::int64_t integer = 0;
  const auto whole = std::from_chars(first, end, integer);
  const bool is_whole =
      whole.ec == std::errc() &&
      (whole.ptr == end || (*whole.ptr != '.' && *whole.ptr != 'e' && *whole.ptr != 'E'));
  if (is_whole) {
    at_ += static_cast<std::size_t>(whole.ptr - first);
    return integer;
  }
  double number = 0;
  const auto parsed = std::from_chars(first, end, number);
  const bool begins_well = first != end && (*first == '-' || (*first >= '0' && *first <= '9'));
  if (parsed.ec != std::errc() || !begins_well) refuse("not JSON: no value");
  at_ += static_cast<std::size_t>(parsed.ptr - first);
  return number;
}

bool JsonReader::boolean() {
  peek();
  if (take_word("true")) return true;
  if (take_word("false")) return false;
  refuse("not JSON: no value");
}

void JsonReader::null() {
  peek();
  if (!take_word("null")) refuse("not JSON: no value");
}

std::map<std::string, std::string> JsonReader::flags() {
  std::map<std::string, std::string> flags;
  begin_object();
  for (std::string name; next_key(name);) {
    if (kind() == Kind::string) {
      flags[name] = string();
      continue;
    }
    const std::size_t begin = at_;
    skip();
    flags[name] = std::string(text_.substr(begin, at_ - begin));
  }
  return flags;
}

void JsonReader::skip() {
  std::string key;
  switch (kind()) {
    case Kind::object:
      begin_object();
      while (next_key(key)) skip();
      break;
    case Kind::list:
      begin_list();
      while (next_item()) skip();
      break;
    case Kind::string: string(); break;
    case Kind::number: number(); break;
    case Kind::boolean: boolean(); break;
    case Kind::null: null(); break;
  }
}

void JsonReader::end() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  if (at_ != text_.size()) refuse("not JSON: more than one value");
}

}  // namespace guardbit::emulator::replay
