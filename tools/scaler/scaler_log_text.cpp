#include "tools/scaler/scaler_log_text.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/scaler/scaler_log_rows.hpp"

namespace guardbit::tools {

using nlohmann::json;

namespace {

/// The number at which the text begins, blanks aside.
template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

/// What follows the name in the line.
template <class Number>
std::optional<Number> number_after(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number<Number>(line.substr(at + name.size()));
}

// ---- TensorBoard: records of a length, its check sum, bytes and theirs; the bytes are messages of
// protocol buffers, whose fields begin with their number and the kind of what follows. ----

std::uint32_t masked_crc(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = (t[i] >> 1U) ^ ((t[i] & 1U) != 0 ? 0x82F63B78U : 0U);
    }
    return t;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes)
    crc = table[(crc ^ static_cast<std::uint8_t>(c)) & 0xFFU] ^ (crc >> 8U);
  crc = ~crc;
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

template <class Word>
Word word_at(std::string_view bytes, std::size_t at) {
  Word word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// Takes the records of a file, one after the other.
class Records {
 public:
  Records(const std::string& file, std::string_view bytes) : file_(file), bytes_(bytes) {}

  std::optional<std::string_view> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    constexpr std::size_t head = 12, tail = 4;
    if (bytes_.size() - at_ < head) return std::nullopt;  // still being written
    const auto length = word_at<std::uint64_t>(bytes_, at_);
    if (word_at<std::uint32_t>(bytes_, at_ + 8) != masked_crc(bytes_.substr(at_, 8))) damaged();
    if (length > bytes_.size() - at_ - head || bytes_.size() - at_ - head - length < tail)
      return std::nullopt;
    const std::string_view record = bytes_.substr(at_ + head, length);
    if (word_at<std::uint32_t>(bytes_, at_ + head + length) != masked_crc(record)) damaged();
    at_ += head + length + tail;
    return record;
  }

  [[noreturn]] void damaged() const {
    throw formats::Error(formats::printable(file_), "damaged at byte " + std::to_string(at_) +
                                                        ": not what TensorBoard writes");
  }

 private:
  const std::string& file_;
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Field {
  std::uint64_t number = 0;
  /// a number, or the bits of one
  std::uint64_t value = 0;
  std::string_view bytes = {};
};

std::optional<std::uint64_t> varint(std::string_view& message) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(message[0]);
    message.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// The fields of a message, as far as it is one.
std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const auto key = varint(message);
    if (!key) break;
    Field field{*key >> 3U};
    std::size_t length = 0;
    switch (*key & 7U) {
      case 0: {
        const auto value = varint(message);
        if (!value) return fields;
        field.value = *value;
        break;
      }
      case 1: length = 8; break;
      case 2: {
        const auto given = varint(message);
        if (!given || *given > message.size()) return fields;
        length = static_cast<std::size_t>(*given);
        break;
      }
      case 5: length = 4; break;
      default: return fields;
    }
    if (length > message.size()) return fields;
    field.bytes = message.substr(0, length);
    message.remove_prefix(length);
    fields.push_back(field);
  }
  return fields;
}

std::optional<double> fp32_in(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  return static_cast<double>(std::bit_cast<float>(word_at<std::uint32_t>(bytes, 0)));
}

/// The one number of a TensorProto of FP32.
std::optional<double> number_of_tensor(std::string_view tensor) {
  constexpr std::uint64_t dtype = 1, content = 4, floats = 5, fp32 = 1;
  std::optional<double> number;
  for (const Field& field : fields_of(tensor)) {
    if (field.number == dtype && field.value != fp32) return std::nullopt;
    if (field.number == content || field.number == floats) number = fp32_in(field.bytes);
  }
  return number;
}

}  // namespace

std::vector<ScaleMark> megatron_marks(std::string_view text) {
  std::vector<ScaleMark> marks;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find('|') == std::string_view::npos) continue;
    const auto step = number_after<std::uint64_t>(line, "iteration ");
    const auto scale = number_after<double>(line, "loss scale:");
    if (step && scale)
      marks.push_back(
          {*step, *scale, number_after<std::uint64_t>(line, "number of skipped iterations:")});
  }
  return marks;
}

std::vector<std::string> cells_of_line(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == separator && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return is_quoted ? split_at(line, separator) : cells;
}

bool is_event_file(std::string_view bytes) {
  constexpr std::string_view version = "brain.Event:";
  return bytes.substr(0, 64).find(version) != std::string_view::npos &&
         word_at<std::uint32_t>(bytes, 8) == masked_crc(bytes.substr(0, 8));
}

json event_rows(const std::string& file, std::string_view bytes) {
  constexpr std::uint64_t event_step = 2, event_summary = 5, summary_value = 1, value_tag = 1,
                          value_number = 2, value_tensor = 8;
  std::map<std::uint64_t, std::map<std::string, double>> steps;
  std::set<std::string> tags;
  Records records(file, bytes);
  while (const auto record = records.next()) {
    std::uint64_t step = 0;
    std::string_view summary;
    for (const Field& field : fields_of(*record)) {
      if (field.number == event_step) step = field.value;
      if (field.number == event_summary) summary = field.bytes;
    }
    for (const Field& value : fields_of(summary)) {
      if (value.number != summary_value) continue;
      std::string tag;
      std::optional<double> number;
      for (const Field& field : fields_of(value.bytes)) {
        if (field.number == value_tag) tag = field.bytes;
        if (field.number == value_number) number = fp32_in(field.bytes);
        if (field.number == value_tensor) number = number_of_tensor(field.bytes);
      }
      if (tag.empty() || tag == "step" || !number) continue;
      tags.insert(tag);
      steps[step][tag] = *number;
    }
  }
  json rows = json::array();
  for (const auto& [step, values] : steps) {
    json row = {{"step", step}};
    for (const std::string& tag : tags) {
      const auto found = values.find(tag);
      row[tag] = found == values.end() ? json() : json(found->second);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace guardbit::tools
