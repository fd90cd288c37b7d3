#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

/// What a file's dtype means. `numpy` is the type string without its byte order; empty where NumPy
/// has none.
struct Dtype {
  std::string_view safetensors;
  std::string_view numpy;
  Format format;
  Packing packing;
};

/// safetensors: the dtypes of its reference implementation; NumPy: numpy.dtype.str.
inline constexpr std::array dtypes = {
    Dtype{"F64", "f8", fp64, Packing::container},
    Dtype{"F32", "f4", fp32, Packing::container},
    Dtype{"F16", "f2", fp16, Packing::container},
    Dtype{"BF16", "", bf16, Packing::container},
    Dtype{"F8_E4M3", "", e4m3, Packing::container},
    Dtype{"F8_E5M2", "", e5m2, Packing::container},
    Dtype{"F8_E8M0", "", e8m0, Packing::container},
    Dtype{"F8_E4M3FNUZ", "", e4m3fnuz, Packing::container},
    Dtype{"F8_E5M2FNUZ", "", e5m2fnuz, Packing::container},
    Dtype{"F6_E2M3", "", e2m3, Packing::dense},
    Dtype{"F6_E3M2", "", e3m2, Packing::dense},
    Dtype{"F4", "", e2m1, Packing::dense},
    Dtype{"I64", "i8", int64, Packing::container},
    Dtype{"I32", "i4", int32, Packing::container},
    Dtype{"I16", "i2", int16, Packing::container},
    Dtype{"I8", "i1", int8, Packing::container},
    Dtype{"U64", "u8", uint64, Packing::container},
    Dtype{"U32", "u4", uint32, Packing::container},
    Dtype{"U16", "u2", uint16, Packing::container},
    Dtype{"U8", "u1", uint8, Packing::container},
    Dtype{"BOOL", "b1", b1, Packing::container},
};

/// The row of that safetensors name; null when there is none.
constexpr const Dtype* find_safetensors_dtype(std::string_view name) {
  for (const Dtype& row : dtypes) {
    if (row.safetensors == name) return &row;
  }
  return nullptr;
}

/// The row of that NumPy type string, without byte order; null when there is none.
constexpr const Dtype* find_numpy_dtype(std::string_view name) {
  for (const Dtype& row : dtypes) {
    if (!name.empty() && row.numpy == name) return &row;
  }
  return nullptr;
}

/// The row that says exactly this; null when there is none.
constexpr const Dtype* find_dtype(const Format& format, Packing packing) {
  for (const Dtype& row : dtypes) {
    if (row.packing == packing && row.format == format) return &row;
  }
  return nullptr;
}

/// Whether the container word, read as FP32, is the very value: TF32 and other truncated FP32
/// registers.
constexpr bool is_truncated_fp32(const Format& format) {
  return container_shift(format) > 0 && format == floating(8, format.fraction_bits);
}

/// The row in whose words the containers of a format are kept: its own, FP32 for a truncated FP32,
/// else unsigned words.
constexpr const Dtype& container_dtype(const Format& format) {
  if (const Dtype* own = find_dtype(format, Packing::container)) return *own;
  const Format word = is_truncated_fp32(format) ? fp32 : integer(container_bits(format), false);
  return *find_dtype(word, Packing::container);
}

/// Whether the stored elements can be read as `format` instead: the same bits per element.
constexpr bool can_be_read_as(const Format& stored, Packing packing, const Format& format) {
  return packing == Packing::dense ? bits(stored) == bits(format)
                                   : container_bits(stored) == container_bits(format);
}

/// Comma separated, for messages.
inline std::string safetensors_dtype_names() {
  std::string names;
  for (const Dtype& row : dtypes)
    names += (names.empty() ? "" : ", ") + std::string(row.safetensors);
  return names;
}

inline std::string numpy_dtype_names() {
  std::string names;
  for (const Dtype& row : dtypes) {
    if (!row.numpy.empty()) names += std::string(row.numpy) + ", ";
  }
  return names + "V1, V2, V4, V8 (with a format)";
}

}  // namespace guardbit::formats
