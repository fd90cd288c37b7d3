#include "emulator/inputs/matrix_families.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

namespace {

using namespace guardbit;
using namespace guardbit::emulator::inputs;
using formats::Kind;

constexpr std::uint64_t count = 20000;

/// Elements of a family as codes, drawn from the last to the first.
std::vector<std::uint64_t> elements(std::string_view word, const Format& f, const Format& d) {
  const OperandWords words = operand_words(f);
  const ElementDraw draw = element_draw(*find_matrix_family(word), f, d);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t i = count; i-- > 0;)
    codes[i] = matrix_element(words, draw, 7, i) >> words.ignored;
  return codes;
}

/// The part of the codes that are of a kind.
template <class Is>
double part(const Format& f, const std::vector<std::uint64_t>& codes, Is is) {
  double found = 0;
  for (const std::uint64_t code : codes) found += is(formats::decode(f, code)) ? 1 : 0;
  return found / static_cast<double>(codes.size());
}

bool is_nan_or_infinity(const formats::Value& v) {
  return v.kind == Kind::nan || v.kind == Kind::infinity;
}
bool is_zero(const formats::Value& v) { return v.kind == Kind::zero; }

const std::vector<Format> floating = {formats::fp64, formats::fp32,     formats::tf32,
                                      formats::fp16, formats::bf16,     formats::e4m3,
                                      formats::e5m2, formats::e4m3fnuz, formats::e5m2fnuz};

TEST_CASE("a matrix family has one word, and elements are codes of their format") {
  std::set<std::string_view> words;
  for (const MatrixFamily& family : matrix_families) {
    CHECK(words.insert(family.word).second);
    for (const formats::FormatEntry& entry : formats::format_catalogue) {
      INFO(family.word << " of " << entry.name);
      bool fits = true;
      for (const std::uint64_t code : elements(family.word, entry.format, formats::fp32))
        fits = fits && (code & ~formats::code_mask(entry.format)) == 0;
      CHECK(fits);
    }
  }
}

TEST_CASE("normal elements have the moments and the tails of a normal distribution") {
  for (const Format& f : {formats::fp64, formats::fp32, formats::tf32, formats::fp16}) {
    double mean = 0, square = 0, tail = 0, ones = 0;
    for (const std::uint64_t code : elements("normal", f, formats::fp32)) {
      const double x = tests::value_of(f, code);
      mean += x / count;
      square += x * x / count;
      tail += std::abs(x) > 2 ? 1.0 / count : 0;
      ones += static_cast<double>(code & 1) / count;
    }
    CHECK(std::abs(mean) < 0.03);
    CHECK(std::abs(square - 1) < 0.04);
    CHECK(std::abs(tail - 0.0455) < 0.006);
    CHECK(std::abs(ones - 0.5) < 0.02);  // also the last bit is random
  }
}

TEST_CASE("families hold the shares that they say, and only some hold infinities and NaNs") {
  for (const Format& f : floating) {
    INFO(formats::name_of(f));
    for (const MatrixFamily& family : matrix_families) {
      INFO(family.word);
      const auto codes = elements(family.word, f, formats::fp32);
      const double specials = part(f, codes, is_nan_or_infinity);
      if (family.word == "specials") {
        CHECK(specials > 0.0002);
        CHECK(specials < 0.002);
      } else if (family.word != "raw") {
        CHECK(specials == 0);
      }
      if (family.elements.zeros == 0) continue;
      const double zeros = static_cast<double>(family.elements.zeros) * 0x1p-32;
      CHECK(part(f, codes, is_zero) > zeros - 0.02);
      CHECK(part(f, codes, is_zero) < zeros + 0.06);
    }
    const auto is_subnormal = [&](const formats::Value& v) {
      return v.kind == Kind::finite &&
             formats::leading_bit(v.significand) + v.exponent < formats::min_exponent(f);
    };
    CHECK(part(f, elements("subnormals", f, formats::fp32), is_subnormal) > 0.45);
    CHECK(part(f, elements("tiny", f, formats::fp32), is_subnormal) > 0.35);
  }
}

TEST_CASE("wide elements reach far and their products stay within D") {
  for (const Format& d : {formats::fp32, formats::fp16}) {
    for (const Format& f : floating) {
      INFO(formats::name_of(f) << " into " << formats::name_of(d));
      double least = HUGE_VAL, greatest = 0;
      for (const std::uint64_t code : elements("wide", f, d)) {
        least = std::min(least, std::abs(tests::value_of(f, code)));
        greatest = std::max(greatest, std::abs(tests::value_of(f, code)));
      }
      CHECK(greatest * greatest < std::ldexp(1.0, formats::max_exponent(d)));
      CHECK(greatest >= 4 * least);
      CHECK(least > 0);
    }
  }
}

}  // namespace
