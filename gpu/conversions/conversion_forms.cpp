#include "gpu/conversions/conversion_forms.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "gpu/conversions/conversion_inputs.hpp"

namespace guardbit::gpu {

namespace {

using formats::Format;
using formats::Overflow;
using formats::Rounding;

/// A PTX type: "e4m3x2" is two elements of E4M3.
struct Type {
  Format format;
  int elements;
};

std::optional<Type> parse_type(std::string_view text) {
  int elements = 1;
  if (text.ends_with("x2")) {
    elements = 2;
    text.remove_suffix(2);
  }
  const auto format = formats::find_format(text);
  if (!format) return std::nullopt;
  return Type{*format, elements};
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// rn, rni, rz, …; nothing when the word is no rounding.
std::optional<Rounding> parse_rounding(std::string_view word) {
  if (word == "rna") return Rounding::nearest_away;
  if (word == "rn" || word == "rni") return Rounding::nearest_even;
  if (word == "rz" || word == "rzi") return Rounding::toward_zero;
  if (word == "rm" || word == "rmi") return Rounding::downward;
  if (word == "rp" || word == "rpi") return Rounding::upward;
  return std::nullopt;
}

/// What becomes of a NaN. Nearly always the positive all-ones one; but a conversion that is no more
/// than a move, a shift or integer code keeps the payload (SASS of ptxas 13.0: cvt.f32.f32,
/// cvt.f64.f64, SHF for cvt.f32.bf16, LOP3 for cvt.rna.tf32), and FP64 results quiet it.
Overflow::Nan nan_rule(const ConversionRule& rule, bool satfinite) {
  if (rule.destination == formats::tf32 && rule.rounding == Rounding::nearest_away)
    return satfinite ? Overflow::Nan::cut_then_below : Overflow::Nan::cut;
  const bool moved =
      !rule.integral && !rule.flush_source &&
      (rule.source == rule.destination
           ? formats::bits(rule.source) >= 32  // FP16 and BF16 are added to -0: HADD2, HFMA2.BF16
           : rule.source == formats::bf16 && rule.destination == formats::fp32);
  if (moved) return Overflow::Nan::cut;
  // FP64 units keep payloads in both directions (an H200 answered so).
  const bool fp64_unit = rule.source == formats::fp64 || rule.destination == formats::fp64;
  return fp64_unit ? Overflow::Nan::payload : Overflow::Nan::all_ones;
}

Overflow overflow_rule(const ConversionRule& rule, bool sat, bool satfinite) {
  Overflow overflow;
  if (formats::is_integer(rule.destination)) {
    // From floating formats .sat is implied (PTX ISA cvt).
    const bool wraps = formats::is_integer(rule.source) && !sat;
    overflow.finite = wraps ? Overflow::Finite::wrap : Overflow::Finite::saturate;
    return overflow;
  }
  overflow.nan = nan_rule(rule, satfinite);
  if (satfinite) {
    overflow.finite = Overflow::Finite::saturate;
    overflow.infinity = Overflow::Infinity::saturate;
  }
  return overflow;
}

/// PTX ISA cvt: "In float-to-integer conversions, NaN inputs are converted to 0", but where the
/// source is .f64 or the destination 64 bits wide, to the integer whose top bit alone is set.
std::uint64_t nan_as_integer(const ConversionRule& rule) {
  const int width = formats::bits(rule.destination);
  const bool zero = rule.source != formats::fp64 && width < 64;
  return zero ? 0 : std::uint64_t{1} << (width - 1);
}

[[noreturn]] void refuse(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ConversionName& entry : conversion_names()) names.push_back(entry.name);
  throw formats::Error(formats::unknown_name("conversion", name, names) +
                       "; 'guardbit gpu convert --list' names them");
}

std::vector<ConversionForm> make_forms() {
  std::vector<ConversionForm> forms;
  for (const ConversionName& entry : conversion_names())
    forms.push_back({entry.name, conversion_rule(entry.name), entry.kernel, entry.variant});
  return forms;
}

}  // namespace

ConversionRule conversion_rule(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  if (words.size() < 3 || words[0] != "cvt") refuse(name);
  const auto destination = parse_type(words[words.size() - 2]);
  const auto source = parse_type(words.back());
  if (!destination || !source) refuse(name);
  ConversionRule rule;
  rule.destination = destination->format;
  rule.source = source->format;
  rule.elements = destination->elements;
  bool sat = false, satfinite = false, ftz = false;
  for (const std::string_view word : std::span(words).subspan(1, words.size() - 3)) {
    if (const auto rounding = parse_rounding(word)) {
      rule.rounding = *rounding;
      rule.integral = word.ends_with("i") && !formats::is_integer(rule.destination);
    } else if (word == "ftz") {
      ftz = true;
    } else if (word == "relu") {
      rule.relu = true;
    } else if (word == "sat") {
      sat = true;
    } else if (word == "satfinite") {
      satfinite = true;
    } else {
      refuse(name);
    }
  }
  rule.clamp = sat && !formats::is_integer(rule.destination);
  // ptxas 13.0 lowers cvt.{rm,rp}.ftz.f16.f32 to F2F without .FTZ (for the other roundings it makes
  // no difference), although the PTX ISA has .ftz flush subnormal sources.
  rule.flush_source = ftz && !formats::is_integer(rule.source) && rule.source != formats::fp64 &&
                      rule.source != formats::fp16 && rule.destination != formats::fp16;
  rule.flush_result = ftz && rule.source == formats::fp64;
  rule.overflow = overflow_rule(rule, sat, satfinite);
  if (formats::is_integer(rule.destination) && !formats::is_integer(rule.source))
    rule.nan_code = nan_as_integer(rule);
  return rule;
}

std::span<const ConversionForm> conversion_forms() {
  static const std::vector<ConversionForm> forms = make_forms();
  return forms;
}

std::vector<ConversionForm> find_conversions(const std::vector<std::string>& names) {
  std::vector<bool> wanted(conversion_forms().size());
  for (const std::string& name : names) {
    bool found = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::string text(conversion_forms()[i].name);
      if (fnmatch(name.c_str(), text.c_str(), 0) != 0) continue;
      wanted[i] = true;
      found = true;
    }
    if (!found) refuse(name);
  }
  std::vector<ConversionForm> forms;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) forms.push_back(conversion_forms()[i]);
  return forms;
}

std::string input_count_text(const ConversionRule& rule) {
  return "2^" + std::to_string(input_bits(rule)) + (is_exhaustive(rule) ? "" : " samples");
}

}  // namespace guardbit::gpu
