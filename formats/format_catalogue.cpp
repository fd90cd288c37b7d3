#include "formats/format_catalogue.hpp"

#include <charconv>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"

namespace guardbit::formats {

namespace {

constexpr int largest_bias = 32768;

/// The part of `text` before the first `separator`; `text` keeps what follows it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Digits only, so that "e+5m2" is not a format.
std::optional<int> parse_count(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return parse_int(text);
}

/// What a format without an explicit bias uses; "fnuz" formats shift theirs by one (arXiv
/// 2206.02915).
int default_bias(int exponent_bits, Specials specials) {
  return (1 << (exponent_bits - 1)) - (specials == Specials::nan_negative_zero ? 0 : 1);
}

bool is_usable(const Format& f) {
  if (f.exponent_bits < 1 || f.exponent_bits > 15 || f.fraction_bits > 52 || bits(f) > 64)
    return false;
  if (f.specials == Specials::ieee && f.exponent_bits < 2) return false;
  if (f.specials == Specials::nan_negative_zero && !f.has_sign) return false;
  if (f.bias < -largest_bias || f.bias > largest_bias) return false;
  return max_finite_code(f) >= min_normal_code(f);  // at least one number besides zero
}

/// Applies one of the colon-separated options; false when it says nothing.
bool apply_option(std::string_view option, Format& f, std::optional<int>& bias) {
  if (option == "unsigned") {
    f.has_sign = false;
    return true;
  }
  if (option == "nosubnormals") {
    f.has_subnormals = false;
    return true;
  }
  const std::string_view key = take(option, '=');
  if (key == "bias") {
    bias = parse_int(option);
    return bias.has_value();
  }
  if (key != "specials") return false;
  const auto specials = find_word<Specials>(option);
  f.specials = specials.value_or(f.specials);
  return specials.has_value();
}

/// `e<E>m<F>` and its options.
std::optional<Format> parse_floating(std::string_view name) {
  std::string_view pattern = take(name, ':');
  if (pattern.empty() || pattern.front() != 'e' || pattern.find('m') == std::string_view::npos) {
    return std::nullopt;
  }
  pattern.remove_prefix(1);
  const std::optional<int> exponent_bits = parse_count(take(pattern, 'm'));
  const std::optional<int> fraction_bits = parse_count(pattern);
  if (!exponent_bits || !fraction_bits || *exponent_bits < 1 || *exponent_bits > 15)
    return std::nullopt;
  Format f = floating(*exponent_bits, *fraction_bits);
  std::optional<int> bias;
  while (!name.empty()) {
    if (!apply_option(take(name, ':'), f, bias)) return std::nullopt;
  }
  f.bias = bias.value_or(default_bias(f.exponent_bits, f.specials));
  return is_usable(f) ? std::optional(f) : std::nullopt;
}

/// `int<W>` and `uint<W>` of 1 to 64 bits.
std::optional<Format> parse_integer(std::string_view name) {
  const bool has_sign = !name.starts_with('u');
  if (!has_sign) name.remove_prefix(1);
  if (!name.starts_with("int")) return std::nullopt;
  const std::optional<int> width = parse_count(name.substr(3));
  if (!width || *width < (has_sign ? 2 : 1) || *width > 64) return std::nullopt;
  return integer(*width, has_sign);
}

}  // namespace

bool is_alias(std::string_view aliases, std::string_view name) {
  while (!aliases.empty()) {
    if (take(aliases, ',') == name) return true;
  }
  return false;
}

std::optional<Format> find_format(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const FormatEntry& entry : format_catalogue) {
    if (entry.name == lower || is_alias(entry.aliases, lower)) return entry.format;
  }
  if (lower.ends_with(':')) return std::nullopt;
  if (const auto format = parse_floating(lower)) return format;
  return parse_integer(lower);
}

Format require_format(std::string_view name, std::string_view where) {
  if (const auto format = find_format(name)) return *format;
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : format_catalogue) {
    names.push_back(entry.name);
    for (std::string_view aliases = entry.aliases; !aliases.empty();)
      names.push_back(take(aliases, ','));
  }
  throw Error(std::string(where), unknown_name("format", name, names),
              format_names() +
                  ", or e<E>m<F>[:bias=B][:specials=ieee|fn|fnuz|none][:unsigned][:nosubnormals]");
}

std::string name_of(const Format& format) {
  for (const FormatEntry& entry : format_catalogue) {
    if (entry.format == format) return std::string(entry.name);
  }
  if (is_integer(format)) return (format.has_sign ? "int" : "uint") + std::to_string(bits(format));
  std::string pattern =
      "e" + std::to_string(format.exponent_bits) + "m" + std::to_string(format.fraction_bits);
  std::string options;
  if (format.bias != default_bias(format.exponent_bits, format.specials)) {
    options += ":bias=" + std::to_string(format.bias);
  }
  if (format.specials != Specials::ieee)
    options += ":specials=" + std::string(word_of(format.specials));
  if (!format.has_sign) options += ":unsigned";
  if (!format.has_subnormals) options += ":nosubnormals";
  // A catalogued name wins over the bare pattern; naming the default specials keeps the two apart.
  if (options.empty() && find_format(pattern) != format) options = ":specials=ieee";
  return pattern + options;
}

std::string format_names() {
  std::string names;
  for (const FormatEntry& entry : format_catalogue) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

}  // namespace guardbit::formats
