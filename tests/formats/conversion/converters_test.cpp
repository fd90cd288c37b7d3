#include "formats/conversion/converters.hpp"

#include <array>
#include <set>

#include "formats/random.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {

namespace {

std::uint64_t converted(std::string_view name, const Format& to, std::string_view number) {
  const Converter* row = find_converter(name, to);
  REQUIRE(row != nullptr);
  return convert(*row, parse_value(number, "test").value, to);
}

struct DeviceInstruction {
  const char* name;
  Format to;
};

/// The columns of the recording below, in its order.
constexpr std::array device_instructions = {DeviceInstruction{"cvt.rn.satfinite", e4m3},
                                            DeviceInstruction{"cvt.rn.satfinite", e5m2},
                                            DeviceInstruction{"cvt.rna", tf32},
                                            DeviceInstruction{"cvt.rn", tf32},
                                            DeviceInstruction{"cvt.rz", tf32},
                                            DeviceInstruction{"cvt.rn", fp16},
                                            DeviceInstruction{"cvt.rz", fp16},
                                            DeviceInstruction{"cvt.rn.satfinite", fp16},
                                            DeviceInstruction{"cvt.rn", bf16},
                                            DeviceInstruction{"cvt.rz", bf16},
                                            DeviceInstruction{"cvt.rn.satfinite", bf16},
                                            DeviceInstruction{"cvt.rz.satfinite", bf16},
                                            DeviceInstruction{"cvt.rna.satfinite", tf32},
                                            DeviceInstruction{"cvt.rz.satfinite", fp16},
                                            DeviceInstruction{"cvt.rp", bf16},
                                            DeviceInstruction{"cvt.rm", bf16},
                                            DeviceInstruction{"cvt.rp", fp16},
                                            DeviceInstruction{"cvt.rm", fp16}};

struct Recording {
  std::uint32_t input;
  std::array<std::uint32_t, device_instructions.size()> output;
};

/// What an H200 answered (driver 580.159.04, ptxas 13.0, sm_90a); TF32 as its register.
constexpr Recording recordings[] = {
    {0x7fffffff,
     {0x7f, 0x7f, 0x7fffe000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0x7fffc000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0xffffffff,
     {0x7f, 0x7f, 0xffffe000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0xffffc000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0x7fc00000,
     {0x7f, 0x7f, 0x7fc00000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0x7fbfe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0x7f800001,
     {0x7f, 0x7f, 0x7f800000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0x7f7fe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0xff800001,
     {0x7f, 0x7f, 0xff800000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0xff7fe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0xffd54321,
     {0x7f, 0x7f, 0xffd54000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0xffd52000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {0x7f800000,
     {0x7e, 0x7b, 0x7f800000, 0x7f800000, 0x7f800000, 0x7c00, 0x7c00, 0x7bff, 0x7f80, 0x7f80,
      0x7f7f, 0x7f7f, 0x7f7fe000, 0x7bff, 0x7f80, 0x7f80, 0x7c00, 0x7c00}},
    {0xff800000,
     {0xfe, 0xfb, 0xff800000, 0xff800000, 0xff800000, 0xfc00, 0xfc00, 0xfbff, 0xff80, 0xff80,
      0xff7f, 0xff7f, 0xff7fe000, 0xfbff, 0xff80, 0xff80, 0xfc00, 0xfc00}},
    {0x7f7fffff,
     {0x7e, 0x7b, 0x7f800000, 0x7f800000, 0x7f7fe000, 0x7c00, 0x7bff, 0x7bff, 0x7f80, 0x7f7f,
      0x7f7f, 0x7f7f, 0x7f7fe000, 0x7bff, 0x7f80, 0x7f7f, 0x7c00, 0x7bff}},
    {0xff7fffff,
     {0xfe, 0xfb, 0xff800000, 0xff800000, 0xff7fe000, 0xfc00, 0xfbff, 0xfbff, 0xff80, 0xff7f,
      0xff7f, 0xff7f, 0xff7fe000, 0xfbff, 0xff7f, 0xff80, 0xfbff, 0xfc00}},
    {0x43e80000,
     {0x7e, 0x5f, 0x43e80000, 0x43e80000, 0x43e80000, 0x5f40, 0x5f40, 0x5f40, 0x43e8, 0x43e8,
      0x43e8, 0x43e8, 0x43e80000, 0x5f40, 0x43e8, 0x43e8, 0x5f40, 0x5f40}},
    {0x43e88000,
     {0x7e, 0x5f, 0x43e88000, 0x43e88000, 0x43e88000, 0x5f44, 0x5f44, 0x5f44, 0x43e8, 0x43e8,
      0x43e8, 0x43e8, 0x43e88000, 0x5f44, 0x43e9, 0x43e8, 0x5f44, 0x5f44}},
    {0x4e6e6b28,
     {0x7e, 0x7b, 0x4e6e6000, 0x4e6e6000, 0x4e6e6000, 0x7c00, 0x7bff, 0x7bff, 0x4e6e, 0x4e6e,
      0x4e6e, 0x4e6e, 0x4e6e6000, 0x7bff, 0x4e6f, 0x4e6e, 0x7c00, 0x7bff}},
    {0x476fffff,
     {0x7e, 0x7b, 0x47700000, 0x47700000, 0x476fe000, 0x7b80, 0x7b7f, 0x7b80, 0x4770, 0x476f,
      0x4770, 0x476f, 0x47700000, 0x7b7f, 0x4770, 0x476f, 0x7b80, 0x7b7f}},
    {0x3a800000,
     {0x0, 0x14, 0x3a800000, 0x3a800000, 0x3a800000, 0x1400, 0x1400, 0x1400, 0x3a80, 0x3a80, 0x3a80,
      0x3a80, 0x3a800000, 0x1400, 0x3a80, 0x3a80, 0x1400, 0x1400}},
    {0x3a800001,
     {0x1, 0x14, 0x3a800000, 0x3a800000, 0x3a800000, 0x1400, 0x1400, 0x1400, 0x3a80, 0x3a80, 0x3a80,
      0x3a80, 0x3a800000, 0x1400, 0x3a81, 0x3a80, 0x1401, 0x1400}},
    {0x80000001,
     {0x80, 0x80, 0x80000000, 0x80000000, 0x80000000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000,
      0x8000, 0x8000, 0x80000000, 0x8000, 0x8000, 0x8001, 0x8000, 0x8001}},
    {0x00001fff,
     {0x0, 0x0, 0x2000, 0x2000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x2000, 0x0, 0x1, 0x0, 0x1,
      0x0}},
    {0x7f801000,
     {0x7f, 0x7f, 0x7f800000, 0x7fffe000, 0x7fffe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff,
      0x7fff, 0x7fff, 0x7f7fe000, 0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
};

struct LibraryRecording {
  const char* format;
  std::array<std::uint32_t, 13> output;
};

/// What ml_dtypes 0.6.0 makes of these FP32 codes: 465, 1e9, inf, -inf, nan, -nan, -1, 0, -0, 1.5,
/// 3, 2^-149, 2^-10.
constexpr std::array<std::uint32_t, 13> ml_dtypes_inputs = {
    0x43e88000, 0x4e6e6b28, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0xbf800000,
    0x00000000, 0x80000000, 0x3fc00000, 0x40400000, 0x00000001, 0x3a800000};
constexpr LibraryRecording ml_dtypes_recordings[] = {
    {"bf16",
     {0x43e8, 0x4e6e, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0xbf80, 0x0, 0x8000, 0x3fc0, 0x4040, 0x0,
      0x3a80}},
    {"e2m1", {0x7, 0x7, 0x7, 0xf, 0x8, 0x0, 0xa, 0x0, 0x8, 0x3, 0x5, 0x0, 0x0}},
    {"e2m3", {0x1f, 0x1f, 0x1f, 0x3f, 0x20, 0x0, 0x28, 0x0, 0x20, 0xc, 0x14, 0x0, 0x0}},
    {"e3m2", {0x1f, 0x1f, 0x1f, 0x3f, 0x20, 0x0, 0x2c, 0x0, 0x20, 0xe, 0x12, 0x0, 0x0}},
    {"e3m4", {0x70, 0x70, 0x70, 0xf0, 0x78, 0xf8, 0xb0, 0x0, 0x80, 0x38, 0x48, 0x0, 0x0}},
    {"e4m3:specials=ieee",
     {0x78, 0x78, 0x78, 0xf8, 0x7c, 0xfc, 0xb8, 0x0, 0x80, 0x3c, 0x44, 0x0, 0x0}},
    {"e4m3:bias=11:specials=fnuz",
     {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xd8, 0x0, 0x0, 0x5c, 0x64, 0x0, 0x8}},
    {"e4m3", {0x7f, 0x7f, 0x7f, 0xff, 0x7f, 0xff, 0xb8, 0x0, 0x80, 0x3c, 0x44, 0x0, 0x0}},
    {"e4m3fnuz", {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xc0, 0x0, 0x0, 0x44, 0x4c, 0x0, 0x1}},
    {"e5m2", {0x5f, 0x7c, 0x7c, 0xfc, 0x7e, 0xfe, 0xbc, 0x0, 0x80, 0x3e, 0x42, 0x0, 0x14}},
    {"e5m2fnuz", {0x63, 0x80, 0x80, 0x80, 0x80, 0x80, 0xc0, 0x0, 0x0, 0x42, 0x46, 0x0, 0x18}},
    {"e8m0", {0x88, 0x9d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0x81, 0x0, 0x75}},
};

}  // namespace

TEST_CASE("device converters answer as the H200 did") {
  for (const Recording& recording : recordings) {
    for (std::size_t i = 0; i < device_instructions.size(); ++i) {
      const auto& [name, to] = device_instructions[i];
      INFO(name << " " << name_of(to) << " " << hex_text(fp32, recording.input));
      const Converter* row = find_converter(name, to);
      REQUIRE(row != nullptr);
      const std::uint64_t code = convert(*row, exactly(decode(fp32, recording.input)), to);
      CHECK(code << container_shift(to) == recording.output[i]);
    }
  }
}

TEST_CASE("ml_dtypes answers as the library did") {
  for (const LibraryRecording& recording : ml_dtypes_recordings) {
    const Format to = require_format(recording.format, "test");
    const Converter* row = find_converter("ml_dtypes", to);
    REQUIRE(row != nullptr);
    for (std::size_t i = 0; i < ml_dtypes_inputs.size(); ++i) {
      INFO(recording.format << " " << hex_text(fp32, ml_dtypes_inputs[i]));
      CHECK(convert(*row, exactly(decode(fp32, ml_dtypes_inputs[i])), to) == recording.output[i]);
    }
  }
  // FP64 goes through FP32: just above the middle between 1 and 1.125, the excess is lost on the
  // way.
  CHECK(converted("ml_dtypes", e4m3, "0x1.1000000000001p0") == 0x38);
  CHECK(encode(e4m3, parse_value("0x1.1000000000001p0", "test").value) == 0x39);
  // Above 2^-127, FP32's subnormals round up in the library's E8M0.
  CHECK(converted("ml_dtypes", e8m0, "0x1.1p-127") == 1);
  CHECK(converted("ml_dtypes", e8m0, "0x1p-127") == 0);
}

TEST_CASE("the FP8 converters differ where their sources say") {
  // H200: eager PyTorch casts, recorded: 464 -> 448, 465 -> NaN, inf -> NaN; 61439 -> 57344, 61440
  // -> inf.
  CHECK(converted("pytorch", e4m3, "464") == 0x7e);
  CHECK(converted("pytorch", e4m3, "465") == 0x7f);
  CHECK(converted("pytorch", e4m3, "-465") == 0xff);
  CHECK(converted("pytorch", e4m3, "inf") == 0x7f);
  CHECK(converted("pytorch", e5m2, "61439") == 0x7b);
  CHECK(converted("pytorch", e5m2, "61440") == 0x7c);
  CHECK(converted("pytorch", e5m2, "nan") == 0x7f);
  CHECK(converted("pytorch", e5m2, "-nan") == 0xff);
  CHECK(converted("pytorch", e4m3fnuz, "-0") == 0);
  CHECK(converted("pytorch", e4m3fnuz, "248") == 0x80);
  CHECK(converted("pytorch", bf16, "-nan") == 0x7fc0);
  CHECK(converted("pytorch", fp16, "-nan") == 0xfe00);
  CHECK(converted("pytorch", e8m0, "-3") == 129);
  CHECK(converted("pytorch", e8m0, "0") == 0);
  // cuda_fp8.hpp 13.0: a NaN loses its sign, a number that overflows to NaN keeps it; from double a
  // NaN keeps it too.
  CHECK(converted("cuda_fp8.nosat", e4m3, "-nan") == 0x7f);
  CHECK(converted("cuda_fp8.nosat", e4m3, "-465") == 0xff);
  CHECK(converted("cuda_fp8.nosat", e4m3, "-inf") == 0xff);
  CHECK(converted("cuda_fp8.nosat", e5m2, "-inf") == 0xfc);
  CHECK(converted("cuda_fp8.nosat.f64", e4m3, "-nan") == 0xff);
  CHECK(converted("cuda_fp8.nosat.f64", e5m2, "-nan") == 0xfe);
  CHECK(converted("cuda_fp8.nosat.f64", e5m2, "0x7ff4000000000000:fp64") == 0x7f);
  CHECK(converted("cuda_fp8.satfinite", e4m3, "-1e9") == 0xfe);
  CHECK(converted("cuda_fp8.satfinite", e5m2, "inf") == 0x7b);
  // Double keeps what float loses.
  CHECK(converted("cuda_fp8.nosat.f64", e4m3, "0x1.1000000000001p0") == 0x39);
  CHECK(converted("cuda_fp8.nosat", e4m3, "0x1.1000000000001p0") == 0x38);
}

TEST_CASE("narrow device formats clamp, and scales take the magnitude") {
  CHECK(converted("cvt.rn.satfinite", e2m1, "nan") == 0x7);
  CHECK(converted("cvt.rn.satfinite", e2m1, "-nan") == 0x7);
  CHECK(converted("cvt.rn.satfinite", e2m1, "-inf") == 0xf);
  CHECK(converted("cvt.rn.satfinite", e2m3, "-100") == 0x3f);
  CHECK(converted("cvt.rz", e8m0, "-3") == 128);
  CHECK(converted("cvt.rp", e8m0, "3") == 129);
  CHECK(converted("cvt.rp", e8m0, "0x1.8p127") == 0xff);
  CHECK(converted("cvt.rp.satfinite", e8m0, "0x1.8p127") == 0xfe);
  CHECK(converted("cvt.rz", e8m0, "inf") == 0xff);
  CHECK(converted("cvt.rz.satfinite", e8m0, "inf") == 0xfe);
  CHECK(converted("cvt.rz.satfinite", e8m0, "nan") == 0xff);
  CHECK(converted("cvt.rz", e8m0, "0") == 0);
}

TEST_CASE("cvt.rs adds its bits below the last place") {
  const Converter* row = find_converter("cvt.rs", bf16);
  REQUIRE(row != nullptr);
  const Unrounded x = exactly(decode(fp32, 0x3f804001));  // 1 + (2^14 + 1) / 2^16 of an ulp
  CHECK(convert(*row, x, bf16, {0, 16}) == 0x3f80);
  CHECK(convert(*row, x, bf16, {0xffff - 0x4001, 16}) == 0x3f80);
  CHECK(convert(*row, x, bf16, {0x10000 - 0x4001, 16}) == 0x3f81);
}

TEST_CASE("rows are found by name and destination") {
  CHECK(find_converter("PyTorch", e4m3) != nullptr);
  CHECK(find_converter("pytorch", fp32) == nullptr);
  CHECK(find_converter("nobody", e4m3) == nullptr);
  std::set<std::string> keys;
  for (const Converter& row : converters) {
    for (const Format& to : row.destinations)
      CHECK(keys.insert(std::string(row.name) + " " + name_of(to)).second);
    CHECK((row.rounding == Rounding::stochastic) == (row.random_bits > 0));
    CHECK_FALSE(row.reference.empty());
  }
  CHECK(converters_to(e4m3).size() >= 7);
  CHECK(require_word<Rounding>("rounding", "To_Odd", "test") == Rounding::to_odd);
  CHECK_THROWS_AS(require_word<Rounding>("rounding", "nearest", "test"), Error);
  const std::string table = converters_markdown();
  for (const std::string_view name : converter_names())
    CHECK(table.find("| " + std::string(name) + " |") != std::string::npos);
  CHECK(table.find("| pytorch | 7e (448) | 7f (nan) | ff (-nan) |") != std::string::npos);
}

TEST_CASE("Philox4x32-10 gives the published answers") {
  // Random123's kat_vectors.
  using Block = std::array<std::uint32_t, 4>;
  STATIC_REQUIRE(philox4x32({0, 0, 0, 0}, {0, 0}) ==
                 Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  STATIC_REQUIRE(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
                 Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  STATIC_REQUIRE(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
      Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(random_bits(0, 5, 8).bits == philox4x32({1, 0, 0, 0}, {0, 0})[1] >> 24);
  CHECK(random_bits(0, 5, 8).count == 8);
  CHECK(random_bits(std::uint64_t{7} << 32, 0).bits == philox4x32({0, 0, 0, 0}, {0, 7})[0]);
}

}  // namespace guardbit::formats
