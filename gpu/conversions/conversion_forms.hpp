#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/conversions/conversion_rule.hpp"

// The forms of PTX `cvt`, read from their names.
namespace guardbit::gpu {

/// One form of PTX `cvt` that ptxas 13.0 accepts for sm_90a (gpu/conversions/conversions.txt).
struct ConversionForm {
  /// as PTX spells it: "cvt.rn.satfinite.relu.e4m3x2.f32"
  std::string_view name;
  ConversionRule rule;
  /// index of the device kernel, one per pair of types
  int kernel = 0;
  /// which instruction of that kernel
  int variant = 0;
};

/// Every form, in the order of gpu/conversions/conversions.txt.
std::span<const ConversionForm> conversion_forms();

/// Forms that ptxas 13.0 accepts for sm_100a and not for sm_90a.
std::span<const std::string_view> conversions_of_sm_100a();

/// The forms of these names, in the order of the table; `*` in a name stands for any text.
/// formats::Error for a name that fits none.
std::vector<ConversionForm> find_conversions(const std::vector<std::string>& names);

/// What a form of that name does. The behaviour of sm_90a where it is none of the PTX ISA's:
/// conversion_forms.cpp cites the machine code. formats::Error for a name that PTX has not.
ConversionRule conversion_rule(std::string_view name);

/// "2^32", "2^16", "2^24 samples".
std::string input_count_text(const ConversionRule& rule);

/// The generated table: the names, and which kernel of which variant runs each.
struct ConversionName {
  std::string_view name;
  int kernel, variant;
};
std::span<const ConversionName> conversion_names();

}  // namespace guardbit::gpu
