#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace guardbit::formats {

inline constexpr Format fp64 = floating(11, 52);
inline constexpr Format fp32 = floating(8, 23);
inline constexpr Format tf32 = floating(8, 10);
inline constexpr Format bf16 = floating(8, 7);
inline constexpr Format fp16 = floating(5, 10);
inline constexpr Format e5m2 = floating(5, 2);
inline constexpr Format e4m3 = floating(4, 3, Specials::nan_all_ones);
inline constexpr Format e5m2fnuz = {Encoding::floating,          true, 5, 2, 16,
                                    Specials::nan_negative_zero, true};
inline constexpr Format e4m3fnuz = {Encoding::floating,          true, 4, 3, 8,
                                    Specials::nan_negative_zero, true};
inline constexpr Format e3m2 = floating(3, 2, Specials::none);
inline constexpr Format e2m3 = floating(2, 3, Specials::none);
inline constexpr Format e2m1 = floating(2, 1, Specials::none);
inline constexpr Format e8m0 = {Encoding::power_of_two, false, 8, 0, 127,
                                Specials::nan_all_ones, false};
inline constexpr Format ue4m3 = {Encoding::floating, false, 4, 3, 7, Specials::nan_all_ones, true};
inline constexpr Format int64 = integer(64, true);
inline constexpr Format int32 = integer(32, true);
inline constexpr Format int16 = integer(16, true);
inline constexpr Format int8 = integer(8, true);
inline constexpr Format int4 = integer(4, true);
inline constexpr Format uint64 = integer(64, false);
inline constexpr Format uint32 = integer(32, false);
inline constexpr Format uint16 = integer(16, false);
inline constexpr Format uint8 = integer(8, false);
inline constexpr Format uint4 = integer(4, false);
inline constexpr Format b1 = integer(1, false);

/// One line of the format table.
struct FormatEntry {
  std::string_view name;
  Format format;
  /// comma separated
  std::string_view aliases;
  /// the document that defines it
  std::string_view standard;
};

/// Every named format. The command line, the files, the tests and the documents read this table.
inline constexpr std::array format_catalogue = {
    FormatEntry{"fp64", fp64, "f64,float64,double", "IEEE 754-2019 binary64"},
    FormatEntry{"fp32", fp32, "f32,float32,float,single", "IEEE 754-2019 binary32"},
    FormatEntry{"tf32", tf32, "tensorfloat32", "NVIDIA A100 whitepaper; PTX ISA .tf32"},
    FormatEntry{"bf16", bf16, "bfloat16", "Google bfloat16; PTX ISA .bf16"},
    FormatEntry{"fp16", fp16, "f16,float16,half", "IEEE 754-2019 binary16"},
    FormatEntry{"e5m2", e5m2, "f8_e5m2,float8_e5m2", "OCP 8-bit Floating Point (OFP8) 1.0"},
    FormatEntry{"e4m3", e4m3, "e4m3fn,f8_e4m3,f8_e4m3fn,float8_e4m3fn",
                "OCP 8-bit Floating Point (OFP8) 1.0"},
    FormatEntry{"e5m2fnuz", e5m2fnuz, "f8_e5m2fnuz,float8_e5m2fnuz",
                "Noune et al., arXiv 2206.02915; AMD CDNA3 ISA (bf8)"},
    FormatEntry{"e4m3fnuz", e4m3fnuz, "f8_e4m3fnuz,float8_e4m3fnuz",
                "Noune et al., arXiv 2206.02915; AMD CDNA3 ISA (fp8)"},
    FormatEntry{"e3m2", e3m2, "f6_e3m2,float6_e3m2fn", "OCP Microscaling Formats (MX) 1.0"},
    FormatEntry{"e2m3", e2m3, "f6_e2m3,float6_e2m3fn", "OCP Microscaling Formats (MX) 1.0"},
    FormatEntry{"e2m1", e2m1, "f4,f4_e2m1,float4_e2m1fn", "OCP Microscaling Formats (MX) 1.0"},
    FormatEntry{"e8m0", e8m0, "ue8m0,f8_e8m0,float8_e8m0fnu", "OCP Microscaling Formats (MX) 1.0"},
    FormatEntry{"ue4m3", ue4m3, "", "PTX ISA .ue4m3 (scale factors of NVFP4)"},
    FormatEntry{"int64", int64, "i64,s64", "two's complement"},
    FormatEntry{"int32", int32, "i32,s32", "two's complement"},
    FormatEntry{"int16", int16, "i16,s16", "two's complement"},
    FormatEntry{"int8", int8, "i8,s8", "two's complement"},
    FormatEntry{"int4", int4, "i4,s4", "two's complement"},
    FormatEntry{"uint64", uint64, "u64", "binary"},
    FormatEntry{"uint32", uint32, "u32", "binary"},
    FormatEntry{"uint16", uint16, "u16", "binary"},
    FormatEntry{"uint8", uint8, "u8", "binary"},
    FormatEntry{"uint4", uint4, "u4", "binary"},
    FormatEntry{"b1", b1, "bit,u1", "PTX ISA .b1"},
};

/// Is `name` among the comma-separated aliases?
bool is_alias(std::string_view aliases, std::string_view name);

/// The format of that name or alias, or a user-defined one: `e<E>m<F>`, optionally followed by
/// colon-separated `bias=<B>`, `specials=ieee|fn|fnuz|none`, `unsigned`, `nosubnormals`, as in
/// `e5m6:bias=20:specials=none`. A catalogued name wins over the same pattern. Empty when the name
/// says nothing.
std::optional<Format> find_format(std::string_view name);

/// find_format, or an Error that names `where` and lists the catalogue.
Format require_format(std::string_view name, std::string_view where);

/// The catalogue's name of a format, else the user-defined spelling that find_format reads back.
std::string name_of(const Format& format);

/// All catalogued names, comma separated.
std::string format_names();

}  // namespace guardbit::formats
