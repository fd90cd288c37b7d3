#include "emulator/functions/rounded_instruction.hpp"

#include <string_view>

namespace guardbit::emulator {

namespace {

using formats::Rounding;

struct RoundingSuffix {
  std::string_view text;
  Rounding rounding;
};
constexpr std::array<RoundingSuffix, 5> rounding_suffixes = {{{"", Rounding::nearest_even},
                                                              {".rn", Rounding::nearest_even},
                                                              {".rz", Rounding::toward_zero},
                                                              {".rm", Rounding::downward},
                                                              {".rp", Rounding::upward}}};
struct LimitSuffix {
  std::string_view text;
  ResultLimit limit;
};
constexpr std::array<LimitSuffix, 3> limit_suffixes = {
    {{"", ResultLimit::none}, {".sat", ResultLimit::sat}, {".relu", ResultLimit::relu}}};

/// The types that names end in; packed ones have two elements.
struct TypeSuffix {
  std::string_view text;
  formats::Format format;
};
constexpr std::array<TypeSuffix, 6> type_suffixes = {{{".f32", formats::fp32},
                                                      {".f64", formats::fp64},
                                                      {".f16", formats::fp16},
                                                      {".f16x2", formats::fp16},
                                                      {".bf16", formats::bf16},
                                                      {".bf16x2", formats::bf16}}};

bool is_sum_or_product(RoundedOperation operation) {
  return operation == RoundedOperation::add || operation == RoundedOperation::sub ||
         operation == RoundedOperation::mul;
}

/// What ptxas takes of a type, beside what the operation rules out.
bool is_accepted(const RoundedInstruction& i, bool names_rounding) {
  const bool is_fp32 = i.format == formats::fp32, is_fp64 = i.format == formats::fp64;
  const bool is_fma = i.operation == RoundedOperation::fma;
  // A name without a rounding is a sum's or a product's.
  if (!names_rounding && !is_sum_or_product(i.operation)) return false;
  if (i.takes_out_of_bounds && !(is_fma && !is_fp32 && !is_fp64 && !i.flushes)) return false;
  if (is_fp32) {
    const bool is_division = !is_sum_or_product(i.operation) && operands_of(i.operation) < 3;
    return i.limit == ResultLimit::none || (i.limit == ResultLimit::sat && !is_division);
  }
  if (is_fp64) {
    // rcp alone takes .ftz, and does nothing with it.
    return i.limit == ResultLimit::none && (!i.flushes || i.operation == RoundedOperation::rcp);
  }
  if (!is_sum_or_product(i.operation) && !is_fma) return false;
  if (i.limit == ResultLimit::relu && !is_fma) return false;
  // ptxas takes fma.rz, .rm and .rp of BF16 too, which the ISA does not have, and makes other
  // instructions of them.
  if (i.rounding != Rounding::nearest_even) return false;
  return i.format == formats::fp16 || (!i.flushes && i.limit != ResultLimit::sat);
}

std::vector<NamedInstruction> all_names() {
  std::vector<NamedInstruction> all;
  const auto add = [&](RoundedOperation operation, const TypeSuffix& type,
                       const RoundingSuffix& rounding, bool oob, bool flushes,
                       const LimitSuffix& limit) {
    RoundedInstruction i = {operation, type.format, rounding.rounding, flushes, limit.limit, oob};
    if (!is_accepted(i, !rounding.text.empty())) return;
    if (type.format == formats::fp64) i.flushes = false;
    std::string name = words(operation)[static_cast<std::size_t>(operation)];
    name.append(rounding.text).append(oob ? ".oob" : "").append(flushes ? ".ftz" : "");
    all.push_back({name.append(limit.text).append(type.text), i});
  };
  for (const TypeSuffix& type : type_suffixes)
    for (std::size_t operation = 0; operation < words(RoundedOperation{}).size(); ++operation)
      for (const RoundingSuffix& rounding : rounding_suffixes)
        for (const bool oob : {false, true})
          for (const bool flushes : {false, true})
            for (const LimitSuffix& limit : limit_suffixes)
              add(static_cast<RoundedOperation>(operation), type, rounding, oob, flushes, limit);
  return all;
}

}  // namespace

const std::vector<NamedInstruction>& rounded_instructions() {
  static const std::vector<NamedInstruction> all = all_names();
  return all;
}

}  // namespace guardbit::emulator
