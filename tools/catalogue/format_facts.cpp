#include "tools/catalogue/format_facts.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <nlohmann/json.hpp>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "formats/value.hpp"

namespace guardbit::tools {

namespace {

using formats::Encoding;
using formats::Format;
using formats::Specials;
using formats::Value;
using nlohmann::json;

constexpr int shown_digits = 6;
constexpr std::size_t most_exact_digits = 10;

/// "2^-24" for a power of two.
std::string power_text(int exponent) { return "2^" + std::to_string(exponent); }

bool is_power_of_two(const Value& v) {
  return v.kind == formats::Kind::finite && !v.negative && std::has_single_bit(v.significand);
}

/// "2^-9 = 0.001953125", "2^-24 ≈ 5.96046e-8"; integers that fit 64 bits with all their digits.
std::string number_text(const Value& v) {
  const formats::Decimal exact = formats::exact_decimal(v);
  if (exact.exponent >= 0 && v.exponent <= 0) return formats::to_string(exact);
  if (!is_power_of_two(v)) return formats::to_string(exact, 8);
  const bool in_full = exact.digits.size() <= most_exact_digits;
  return power_text(v.exponent + formats::leading_bit(v.significand)) +
         (in_full ? " = " + formats::to_string(exact)
                  : " ≈ " + formats::to_string(exact, shown_digits));
}

/// A number of the format as JSON: its code, exact decimal and hexadecimal float.
json number_json(const Format& f, std::uint64_t code) {
  const Value v = formats::decode(f, code);
  return {{"code", formats::hex_text(f, code)},
          {"decimal", formats::exact_text(v)},
          {"hex_float", formats::hex_float(v)}};
}

std::string_view encoding_text(const Format& f) {
  switch (f.encoding) {
    case Encoding::floating: return "floating point";
    case Encoding::power_of_two: return "power of two";
    case Encoding::integer: break;
  }
  return f.has_sign ? "two's complement integer" : "unsigned integer";
}

std::string layout_text(const Format& f) {
  return std::to_string(f.has_sign ? 1 : 0) + "-" + std::to_string(f.exponent_bits) + "-" +
         std::to_string(f.fraction_bits);
}

/// Number of codes that are NaN.
std::uint64_t nan_codes(const Format& f) {
  const std::uint64_t signs = f.has_sign ? 2 : 1;
  switch (f.specials) {
    case Specials::ieee: return signs * (formats::low_bits(f.fraction_bits));
    case Specials::nan_all_ones: return signs;
    case Specials::nan_negative_zero: return 1;
    case Specials::none: break;
  }
  return 0;
}

std::string specials_text(const Format& f) {
  if (f.specials == Specials::none) return "none";
  std::string text = formats::has_infinity(f) ? (f.has_sign ? "±inf" : "inf") : "";
  const std::uint64_t nans = nan_codes(f);
  if (nans != 0) {
    text += text.empty() ? "" : ", ";
    text += nans <= 64 ? std::to_string(nans) + " NaN" : "NaN";
  }
  return text;
}

std::string zero_text(const Format& f) {
  if (f.encoding == Encoding::power_of_two) return "none";
  return formats::has_negative_zero(f) ? "+0 and -0" : "one";
}

std::string range_text(const Format& f) {
  if (formats::is_integer(f)) return "-";
  return std::to_string(formats::min_exponent(f)) + " to " +
         std::to_string(formats::max_exponent(f));
}

Fact number_fact(std::string_view key, std::string_view label, const Format& f,
                 std::uint64_t code) {
  return {key, label, number_text(formats::decode(f, code)), number_json(f, code)};
}

Fact missing(std::string_view key, std::string_view label) { return {key, label, "-", nullptr}; }

Fact ulp_fact(const Format& f) {
  const int exponent = formats::is_integer(f) ? 0 : -f.fraction_bits;
  const bool has_one =
      formats::is_integer(f) || (formats::min_exponent(f) <= 0 && formats::max_exponent(f) >= 0);
  if (!has_one) return missing("ulp_at_1", "ulp at 1");
  const Value ulp = {formats::Kind::finite, false, exponent, 1};
  return {"ulp_at_1", "ulp at 1", number_text(ulp), formats::exact_text(ulp)};
}

std::string aliases_of(const std::string& name) {
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (entry.name == name) return std::string(entry.aliases);
  }
  return {};
}

std::string standard_of(const std::string& name) {
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (entry.name == name) return std::string(entry.standard);
  }
  return "user-defined";
}

json split(const std::string& list) {
  json items = json::array();
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::string spaced(std::string list) {
  for (std::size_t i = list.find(','); i != std::string::npos; i = list.find(',', i + 2))
    list.insert(i + 1, " ");
  return list.empty() ? "-" : list;
}

/// Code of the lowest number: the most negative one, or the smallest.
std::uint64_t lowest_code(const Format& f) {
  if (!f.has_sign) return 0;
  return formats::is_integer(f) ? formats::sign_mask(f)
                                : formats::sign_mask(f) | formats::max_finite_code(f);
}

}  // namespace

int decimal_digits(const Format& f) {
  const formats::uint128 limit = formats::uint128{1}
                                 << (formats::precision(f) - (formats::is_integer(f) ? 0 : 1));
  int digits = 0;
  for (formats::uint128 power = 10; power <= limit; power *= 10) ++digits;
  return digits;
}

int distinguishing_digits(const Format& f) {
  const formats::uint128 limit = formats::uint128{1} << formats::precision(f);
  int digits = 1;
  for (formats::uint128 power = 1; formats::is_integer(f) ? power * 10 < limit : power <= limit;
       power *= 10)
    ++digits;
  return digits;
}

std::vector<Fact> facts_of(const Format& f) {
  const std::string name = formats::name_of(f);
  const bool is_floating = f.encoding == Encoding::floating;
  std::vector<Fact> facts = {
      {"name", "format", name, name},
      {"aliases", "aliases", spaced(aliases_of(name)), split(aliases_of(name))},
      {"encoding", "encoding", std::string(encoding_text(f)), encoding_text(f)},
      {"bits", "bits", std::to_string(formats::bits(f)), formats::bits(f)},
      {"layout",
       "sign-exponent-fraction",
       layout_text(f),
       {{"sign", f.has_sign ? 1 : 0},
        {"exponent", f.exponent_bits},
        {"fraction", f.fraction_bits}}},
      {"precision", "significant bits", std::to_string(formats::precision(f)),
       formats::precision(f)},
      {"bias", "bias", formats::is_integer(f) ? "-" : std::to_string(f.bias),
       formats::is_integer(f) ? json(nullptr) : json(f.bias)},
      {"exponents", "exponents", range_text(f),
       formats::is_integer(f) ? json(nullptr)
                              : json::array({formats::min_exponent(f), formats::max_exponent(f)})},
      ulp_fact(f)};
  facts.push_back(is_floating && f.has_subnormals && f.fraction_bits > 0
                      ? number_fact("smallest_subnormal", "smallest subnormal", f, 1)
                      : missing("smallest_subnormal", "smallest subnormal"));
  facts.push_back(formats::is_integer(f) ? missing("smallest_normal", "smallest normal")
                                         : number_fact("smallest_normal", "smallest normal", f,
                                                       formats::min_normal_code(f)));
  facts.push_back(number_fact("largest", "largest", f, formats::max_finite_code(f)));
  facts.push_back(number_fact("lowest", "lowest", f, lowest_code(f)));
  facts.push_back({"zero", "zeros", zero_text(f),
                   f.encoding == Encoding::power_of_two ? 0
                   : formats::has_negative_zero(f)      ? 2
                                                        : 1});
  facts.push_back({"specials",
                   "specials",
                   specials_text(f),
                   {{"rule", formats::word_of(f.specials)},
                    {"infinity", formats::has_infinity(f)},
                    {"nan_codes", nan_codes(f)}}});
  facts.push_back({"decimal_digits", "decimal digits kept", std::to_string(decimal_digits(f)),
                   decimal_digits(f)});
  facts.push_back({"distinguishing_digits", "digits that distinguish",
                   std::to_string(distinguishing_digits(f)), distinguishing_digits(f)});
  facts.push_back({"standard", "defined by", standard_of(name), standard_of(name)});
  return facts;
}

std::vector<Fact> facts_of(const std::string& name, const formats::BlockFormat& b,
                           std::string_view standard) {
  const int per_block = formats::bits_per_block(b);
  const Value cost = {
      formats::Kind::finite, false, 0,
      static_cast<std::uint64_t>(per_block) * 10000 / static_cast<std::uint64_t>(b.block_size)};
  formats::Decimal bits_each = formats::exact_decimal(cost);
  bits_each.exponent -= 4;
  const Value largest = formats::decode_element(b, formats::max_finite_code(b.element),
                                                formats::max_finite_code(b.scale));
  const std::string tensor_scale = b.tensor_scale ? formats::name_of(*b.tensor_scale) : "-";
  return {
      {"name", "format", name, name},
      {"element", "element", formats::name_of(b.element), formats::name_of(b.element)},
      {"element_exponent", "element counts in", power_text(b.element_exponent), b.element_exponent},
      {"scale", "block scale", formats::name_of(b.scale), formats::name_of(b.scale)},
      {"block_size", "block size", std::to_string(b.block_size), b.block_size},
      {"tensor_scale", "tensor scale", tensor_scale,
       b.tensor_scale ? json(tensor_scale) : json(nullptr)},
      {"bits_per_element", "bits per element", formats::to_string(bits_each),
       static_cast<double>(per_block) / b.block_size},
      {"largest", "largest", number_text(largest), formats::exact_text(largest)},
      {"standard", "defined by", std::string(standard), standard}};
}

formats::Format require_element_format(std::string_view name, std::string_view where) {
  if (const auto block = formats::find_block_format(name)) {
    throw formats::Error(std::string(where),
                         "'" + std::string(name) + "' is a block format, whose elements are " +
                             formats::name_of(block->element) + " under scales of " +
                             formats::name_of(block->scale));
  }
  return formats::require_format(name, where);
}

const Fact& fact(const std::vector<Fact>& facts, std::string_view key) {
  for (const Fact& candidate : facts) {
    if (candidate.key == key) return candidate;
  }
  assert(false);
  return facts.front();
}

namespace {

std::string_view block_standard(const formats::BlockFormat& format) {
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue) {
    if (entry.format == format) return entry.standard;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& name) {
  std::vector<std::string_view> names;
  std::string block_names;
  names.reserve(formats::format_catalogue.size() + formats::block_format_catalogue.size());
  for (const formats::FormatEntry& entry : formats::format_catalogue) names.push_back(entry.name);
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue) {
    names.push_back(entry.name);
    block_names += ", " + std::string(entry.name);
  }
  throw formats::Error(
      "formats", formats::unknown_name("format", name, names),
      formats::format_names() + block_names +
          ", or e<E>m<F>[:bias=B][:specials=ieee|fn|fnuz|none][:unsigned][:nosubnormals]");
}

nlohmann::ordered_json to_json(const std::vector<std::vector<Fact>>& formats) {
  auto list = nlohmann::ordered_json::array();
  for (const std::vector<Fact>& facts : formats) {
    nlohmann::ordered_json object;
    for (const Fact& f : facts) object[std::string(f.key)] = f.value;
    list.push_back(object);
  }
  return list;
}

}  // namespace

FormatSelection select_formats(const std::vector<std::string>& names) {
  FormatSelection selection;
  const auto add_block = [&](const formats::BlockFormat& format) {
    selection.block.push_back(
        facts_of(std::string(formats::name_of(format)), format, block_standard(format)));
  };
  for (const std::string& name : names) {
    if (const auto block = formats::find_block_format(name)) {
      add_block(*block);
    } else if (const auto format = formats::find_format(name)) {
      selection.plain.push_back(facts_of(*format));
    } else {
      refuse(name);
    }
  }
  if (names.empty()) {
    for (const formats::FormatEntry& entry : formats::format_catalogue)
      selection.plain.push_back(facts_of(entry.format));
    for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue)
      add_block(entry.format);
  }
  return selection;
}

nlohmann::ordered_json to_json(const FormatSelection& selection) {
  return {{"formats", to_json(selection.plain)}, {"block_formats", to_json(selection.block)}};
}

}  // namespace guardbit::tools
