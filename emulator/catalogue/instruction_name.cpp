#include "emulator/catalogue/instruction_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "formats/support/suggestions.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::array<std::string_view, 17> type_tokens = {
    "f64",  "f32",   "tf32",  "bf16", "f16", "e5m2", "e4m3", "e3m2", "e2m3",
    "e2m1", "ue8m0", "ue4m3", "s32",  "s8",  "u8",   "s4",   "u4"};

bool is_type(std::string_view token) {
  return token == "b1" ||
         std::find(type_tokens.begin(), type_tokens.end(), token) != type_tokens.end();
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (true) {
    const std::size_t dot = text.find('.');
    tokens.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return tokens;
    text.remove_prefix(dot + 1);
  }
}

/// Reads "<letter><digits>" or "<letter><LETTER>" (left open: 0) off the front.
std::optional<int> read_dimension(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return {};
  text.remove_prefix(1);
  if (!text.empty() && text.front() == static_cast<char>(letter - 'a' + 'A')) {
    text.remove_prefix(1);
    return 0;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value <= 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<Shape> read_shape(std::string_view token) {
  const auto m = read_dimension(token, 'm');
  if (!m) return {};
  const auto n = read_dimension(token, 'n');
  if (!n) return {};
  const auto k = read_dimension(token, 'k');
  if (!k || !token.empty()) return {};
  return Shape{*m, *n, *k};
}

std::string shape_key(std::string_view family, const Shape& s) {
  const bool any_n = family == "wgmma" || family == "tcgen05";
  const bool any_m = family == "tcgen05";
  return "m" + (any_m ? "M" : std::to_string(s.m)) + "n" + (any_n ? "N" : std::to_string(s.n)) +
         "k" + std::to_string(s.k);
}

/// N of wgmma: multiples of 8 up to 256; integer kinds skip the odd multiples from 40 on
/// (NUMERICS 3.4).
bool is_wgmma_n(int n, bool is_integer) {
  if (n < 8 || n > 256 || n % 8 != 0) return false;
  return !is_integer || n <= 32 ? true : n % 16 == 0;
}

/// PTX lets the scale vector be left out where a kind has only one.
void add_default_scale_vector(std::vector<std::string>& qualifiers) {
  const auto has = [&](std::string_view q) {
    return std::find(qualifiers.begin(), qualifiers.end(), q) != qualifiers.end();
  };
  const bool given = std::any_of(qualifiers.begin(), qualifiers.end(),
                                 [](const std::string& q) { return q.starts_with("scale_vec::"); });
  if (!has("block_scale") || given) return;
  if (has("kind::mxf8f6f4")) qualifiers.emplace_back("scale_vec::1X");
  if (has("kind::mxf4")) qualifiers.emplace_back("scale_vec::2X");
}

bool has_free_layouts(const MatrixInstruction& instruction) {
  if (instruction.family == Family::wmma) return formats::bits(instruction.a) >= 8;
  return instruction.family == Family::mma && instruction.a == formats::fp16 &&
         instruction.shape == Shape{8, 8, 4};
}

}  // namespace

ParsedName parse_name(std::string_view name) {
  ParsedName parsed;
  const std::vector<std::string_view> tokens = split(name);
  if (tokens.size() == 1) {
    parsed.key = formats::lower_case(name);
    return parsed;
  }
  std::vector<std::string> qualifiers;
  std::string types;
  const bool is_double = name.find(".f64") != std::string_view::npos;
  for (const std::string_view token : tokens) {
    if (token == "row" || token == "col") {
      parsed.layouts += (parsed.layouts.empty() ? "" : ".") + std::string(token);
    } else if (is_type(token)) {
      types += "." + std::string(token);
    } else if (const auto shape = read_shape(token)) {
      parsed.shape = *shape;
      qualifiers.push_back(shape_key(tokens.front(), *shape));
    } else if (token != "sync" && token != "aligned" && !(token == "rn" && is_double)) {
      qualifiers.emplace_back(token);
    }
  }
  add_default_scale_vector(qualifiers);
  if (!qualifiers.empty()) std::sort(qualifiers.begin() + 1, qualifiers.end());
  for (const std::string& q : qualifiers) parsed.key += (parsed.key.empty() ? "" : ".") + q;
  parsed.key += types;
  return parsed;
}

bool accepts_geometry(const MatrixInstruction& instruction, const ParsedName& name) {
  if (!name.layouts.empty() && name.layouts != "row.col") {
    const bool pair =
        name.layouts == "row.row" || name.layouts == "col.row" || name.layouts == "col.col";
    if (!pair || !has_free_layouts(instruction)) return false;
  }
  const int n = name.shape.n;
  const int m = name.shape.m;
  switch (instruction.family) {
    case Family::wgmma:
    case Family::wgmma_sp: return n == 0 || is_wgmma_n(n, formats::is_integer(instruction.a));
    case Family::tcgen05:
    case Family::tcgen05_sp:
      return (n == 0 || (n % 8 == 0 && n >= 8 && n <= 256)) &&
             (m == 0 || m == 32 || m == 64 || m == 128 || m == 256);
    default: return true;
  }
}

}  // namespace guardbit::emulator
