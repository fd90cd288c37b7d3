#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/conversions/conversion_digest.hpp"
#include "gpu/conversions/conversion_forms.hpp"
#include "tests/catch.hpp"

namespace guardbit::gpu {
namespace {

/// The destination register that a form makes of one source register, or of two.
std::uint64_t converted(std::string_view name, std::uint64_t low, std::uint64_t high = 0) {
  return convert_by_model(conversion_rule(name), {low, high});
}

std::uint32_t code_of(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t code_of(double x) { return std::bit_cast<std::uint64_t>(x); }

constexpr std::uint32_t tiny = 0x80000001;  // -2^-149
constexpr std::uint32_t nan_with_payload = 0xFF812345;

}  // namespace

TEST_CASE("every form of cvt has a name of its own and a kernel") {
  std::set<std::string_view> names;
  std::set<std::pair<int, int>> kernels;
  for (const ConversionForm& form : conversion_forms()) {
    INFO(form.name);
    CHECK(names.insert(form.name).second);
    CHECK(kernels.insert({form.kernel, form.variant}).second);
  }
  CHECK(names.size() > 800);
  for (const std::string_view name : conversions_of_sm_100a()) CHECK_FALSE(names.contains(name));
}

TEST_CASE("the forms of cvt round and overflow as the table of converters says") {
  int compared = 0;
  for (const ConversionForm& form : conversion_forms()) {
    const ConversionRule& rule = form.rule;
    if (rule.source != formats::fp32 || rule.relu || rule.clamp || rule.flush_source) continue;
    // "cvt.rn.satfinite.e4m3x2.f32" is the converter "cvt.rn.satfinite".
    const std::size_t end = form.name.rfind('.', form.name.rfind('.') - 1);
    const auto* converter = formats::find_converter(form.name.substr(0, end), rule.destination);
    if (converter == nullptr) continue;
    INFO(form.name);
    CHECK(rule.rounding == converter->rounding);
    CHECK(rule.overflow == converter->overflow);
    ++compared;
  }
  CHECK(compared == 26);
}

TEST_CASE("names that PTX has not are refused") {
  CHECK_THROWS_AS(conversion_rule("cvt.rn.f16.f33"), formats::Error);
  CHECK_THROWS_AS(conversion_rule("cvt.rx.f16.f32"), formats::Error);
  CHECK_THROWS_AS(find_conversions({"cvt.rn.e4m3x2.f32"}), formats::Error);
  CHECK(find_conversions({"cvt.r?.tf32.f32", "cvt.rna*"}).size() == 4);
}

TEST_CASE("conversions to integers clamp, and NaN becomes what the PTX ISA says") {
  CHECK(converted("cvt.rni.s32.f32", code_of(2.5F)) == 2);
  CHECK(converted("cvt.rpi.s32.f32", code_of(2.5F)) == 3);
  CHECK(converted("cvt.rni.s8.f32", code_of(300.0F)) == 127);
  CHECK(converted("cvt.rni.s8.f32", code_of(-300.0F)) == 0xFF80);  // extended to 16 bits
  CHECK(converted("cvt.rzi.u8.f32", code_of(-300.0F)) == 0);
  CHECK(converted("cvt.rzi.u32.f32", code_of(std::numeric_limits<float>::infinity())) ==
        0xFFFFFFFF);
  CHECK(converted("cvt.rzi.s32.f32", nan_with_payload) == 0);
  CHECK(converted("cvt.rzi.u64.f32", nan_with_payload) == std::uint64_t{1} << 63);
  CHECK(converted("cvt.rzi.u16.f64", code_of(std::nan(""))) == 0x8000);
  CHECK(converted("cvt.s8.s32", 0x1FF) == 0xFFFF);
  CHECK(converted("cvt.sat.s8.s32", 0x1FF) == 0x7F);
  CHECK(converted("cvt.sat.u8.s32", 0xFFFFFF00) == 0);
  CHECK(converted("cvt.s64.s8", 0x1280) == 0xFFFFFFFFFFFFFF80);  // 8 bits of the register count
}

TEST_CASE("modifiers of cvt") {
  SECTION("ftz flushes subnormal sources, but not those of cvt to FP16") {
    CHECK(converted("cvt.rmi.s32.f32", tiny) == 0xFFFFFFFF);
    CHECK(converted("cvt.rmi.ftz.s32.f32", tiny) == 0);
    CHECK(converted("cvt.rm.ftz.bf16.f32", tiny) == 0x8000);
    CHECK(converted("cvt.rm.ftz.f16.f32", tiny) == 0x8001);
  }
  SECTION("ftz flushes FP32 results that are tiny after rounding") {
    // The middle of the two numbers of 24 bits around 2^-126 rounds to 2^-126.
    const double middle = std::ldexp(1.0, -126) - std::ldexp(1.0, -151);
    const double below = std::nextafter(middle, 0.0);
    CHECK(converted("cvt.rn.ftz.f32.f64", code_of(middle)) == 0x00800000);
    CHECK(converted("cvt.rn.ftz.f32.f64", code_of(-below)) == 0x80000000);
    CHECK(converted("cvt.rn.f32.f64", code_of(-below)) == 0x80800000);
  }
  SECTION("sat clamps to [0, 1], relu to [0, inf]") {
    CHECK(converted("cvt.rn.sat.f16.f32", code_of(-1.0F)) == 0);
    CHECK(converted("cvt.rn.sat.f16.f32", code_of(7.0F)) == 0x3C00);
    CHECK(converted("cvt.rn.sat.f16.f32", nan_with_payload) == 0);
    CHECK(converted("cvt.rp.sat.f16.f32", code_of(0.3F)) ==
          converted("cvt.rp.f16.f32", code_of(0.3F)));
    CHECK(converted("cvt.rn.relu.f16.f32", code_of(-1.0F)) == 0);
    CHECK(converted("cvt.rn.relu.f16.f32", code_of(7.0F)) == 0x4700);
    CHECK(converted("cvt.rn.relu.f16.f32", nan_with_payload) == 0x7FFF);
    CHECK(converted("cvt.rn.sat.f32.s32", 0xFFFFFFFF) == 0);
    CHECK(converted("cvt.rn.sat.f32.s32", 12) == code_of(1.0F));
  }
  SECTION("moves and shifts keep the payload of a NaN") {
    CHECK(converted("cvt.f32.f32", nan_with_payload) == nan_with_payload);
    CHECK(converted("cvt.ftz.f32.f32", nan_with_payload) == 0x7FFFFFFF);
    CHECK(converted("cvt.f32.bf16", 0xFF81) == 0xFF810000);
  }
  SECTION("rounding to an integer keeps the sign of a zero") {
    CHECK(converted("cvt.rni.f32.f32", code_of(-0.5F)) == 0x80000000);
    CHECK(converted("cvt.rmi.f32.f32", code_of(-0.5F)) == code_of(-1.0F));
  }
}

TEST_CASE("the first of two sources makes the upper element") {
  const ConversionInput input = {code_of(1.0F), code_of(-2.0F)};
  CHECK(convert_by_model(conversion_rule("cvt.rn.f16x2.f32"), input) == 0xC0003C00);
  CHECK(convert_by_model(conversion_rule("cvt.rn.satfinite.e4m3x2.f32"), input) == 0xC038);
  CHECK(converted("cvt.rn.f16x2.e4m3x2", 0x38, 0xC0) == 0xC0003C00);
  CHECK(converted("cvt.rn.satfinite.relu.e5m2x2.f16x2", 0x3C00, 0xC000) == 0x003C);
}

TEST_CASE("conversions to nearest agree with the processor's") {
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const auto whole = static_cast<std::int64_t>(int64_sample(i));
    const std::uint64_t code = int64_sample(i);
    REQUIRE(converted("cvt.rn.f32.s64", code) == code_of(static_cast<float>(whole)));
    REQUIRE(converted("cvt.rn.f64.u64", code) == code_of(static_cast<double>(code)));
    const auto word = static_cast<std::uint32_t>(mixed(i));
    REQUIRE(converted("cvt.rn.f32.s32", word) ==
            code_of(static_cast<float>(static_cast<std::int32_t>(word))));
    const auto real = std::bit_cast<float>(word);
    if (std::isnan(real)) continue;
    REQUIRE(converted("cvt.rni.f32.f32", word) == code_of(std::nearbyint(real)));
    const float limited = std::clamp(std::nearbyint(real), -128.0F, 127.0F);
    REQUIRE((converted("cvt.rni.s8.f32", word) & 0xFF) ==
            static_cast<std::uint8_t>(static_cast<int>(limited)));
    const auto wide = std::bit_cast<double>(fp64_sample(i));
    if (std::isnan(wide)) continue;
    REQUIRE(converted("cvt.rn.f32.f64", code_of(wide)) == code_of(static_cast<float>(wide)));
    REQUIRE(converted("cvt.rpi.f64.f64", code_of(wide)) == code_of(std::ceil(wide)));
  }
}

TEST_CASE("inputs take every value in every position") {
  const ConversionRule halves = conversion_rule("cvt.rn.satfinite.e4m3x2.f16x2");
  std::set<std::uint64_t> low, high;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << input_bits(halves); ++i) {
    const ConversionInput input = conversion_input(halves, i);
    low.insert(input.low);
    high.insert(input.high);
    REQUIRE(input.low != input.high);
  }
  CHECK(low.size() == 65536);
  CHECK(high.size() == 65536);
  CHECK(*high.rbegin() == 65535);
  const ConversionRule bytes = conversion_rule("cvt.rn.f16x2.e4m3x2");
  std::set<std::uint64_t> registers;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << input_bits(bytes); ++i) {
    const ConversionInput input = conversion_input(bytes, i);
    REQUIRE(std::max(input.low, input.high) < 256);
    registers.insert(input.low | input.high << 8);
  }
  CHECK(registers.size() == 65536);
  CHECK(input_bits(conversion_rule("cvt.rn.f16x2.f32")) == 32);
}

TEST_CASE("samples of 64-bit sources reach every kind of number") {
  std::set<int> exponents;
  int nans = 0, subnormals = 0, lengths = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t code = fp64_sample(i);
    const int biased = static_cast<int>(code >> 52 & 0x7FF);
    exponents.insert(biased);
    nans += biased == 0x7FF && (code & formats::low_bits(52)) != 0;
    subnormals += biased == 0 && (code & formats::low_bits(52)) != 0;
    lengths |= 1 << (formats::leading_bit(int64_sample(i)) / 4);
  }
  CHECK(exponents.size() > 2000);
  CHECK(nans > 0);
  CHECK(subnormals > 0);
  CHECK(lengths == 0xFFFF);
}

TEST_CASE("a digest depends on every answer and on nothing else") {
  CHECK(digest_share(3, 5) != digest_share(3, 4));
  CHECK(digest_share(3, 5) != digest_share(5, 3));
  const ConversionRule rule = conversion_rule("cvt.rn.bf16.f16");
  const std::vector<std::uint64_t> slices = model_digests(rule, 1);
  CHECK(slices == model_digests(rule, 3));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 65536; i-- > 0;)
    sum += digest_share(i, convert_by_model(rule, conversion_input(rule, i)));
  CHECK(total_digest(slices) == sum);
  CHECK(model_digests(rule, {0x1000, 0x3FFF}, 2) ==
        std::vector<std::uint64_t>{slices[0x1000], slices[0x3FFF]});
  ConversionRule other = rule;
  other.rounding = formats::Rounding::toward_zero;
  CHECK(total_digest(model_digests(other)) != sum);
}

}  // namespace guardbit::gpu
