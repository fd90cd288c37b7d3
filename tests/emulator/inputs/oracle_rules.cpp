#include "tests/emulator/inputs/oracle_rules.hpp"

#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "formats/format_catalogue.hpp"
#include "tests/oracle/amd_dot.hpp"
#include "tests/oracle/rules.hpp"
#include "tests/oracle/x86_dot.hpp"

namespace guardbit::tests {

namespace {

using emulator::Family;
using oracle::FusedRule;
using oracle::Scalar;
using oracle::Vector;

bool has(const MatrixInstruction& instruction, std::string_view qualifier) {
  return std::string_view(instruction.name).find(qualifier) != std::string_view::npos;
}

std::string text_of(const FusedRule& rule) {
  std::ostringstream text;
  text << "L" << rule.block << " F" << rule.kept_bits << " e0 " << rule.zero_exponent << " to "
       << rule.result.bits << "/" << rule.result_fraction_bits;
  return text.str();
}

Vector a_of(const MatrixInstruction& instruction, const DotInputs& x) {
  return {oracle_format(instruction.a), x.a};
}
Vector b_of(const MatrixInstruction& instruction, const DotInputs& x) {
  return {oracle_format(instruction.b), x.b};
}
Scalar c_of(const MatrixInstruction& instruction, const DotInputs& x) {
  return {oracle_format(instruction.c), x.c};
}

using Rule = std::function<std::uint64_t(const Vector&, const Vector&, const Scalar&)>;

/// A rule over A, B and C, named.
Judge judge(const MatrixInstruction& instruction, std::string name, Rule rule,
            bool any_nan = false) {
  const oracle::FormatParameters a = oracle_format(instruction.a), b = oracle_format(instruction.b),
                                 c = oracle_format(instruction.c);
  return {std::move(name), any_nan, [a, b, c, rule = std::move(rule)](const DotInputs& x) {
            return rule({a, x.a}, {b, x.b}, {c, x.c});
          }};
}

Judge fused(const MatrixInstruction& instruction, const FusedRule& rule) {
  return judge(instruction, "fused " + text_of(rule),
               [rule](const Vector& a, const Vector& b, const Scalar& c) {
                 return oracle::nvidia_fused(rule, a, b, c);
               });
}

// ---- NVIDIA ----------------------------------------------------------------------------------

/// The units of one generation (NUMERICS 1.2); FP8 only where the warp-level instruction is native.
struct Generation {
  FusedRule fp32, fp16, tf32, wmma_tf32;
};

const Generation& generation_of(std::string_view arch) {
  using namespace oracle;
  static const Generation ampere = {ampere_fp32, ampere_fp16, ampere_tf32, ampere_tf32};
  static const Generation hopper = {hopper_fp32, hopper_fp16, hopper_tf32, hopper_wmma_tf32};
  static const std::map<std::string_view, Generation> generations = {
      {"sm_70", {volta_fp32, volta_fp16, {}, {}}},
      {"sm_75", {turing_fp32, turing_fp16, {}, {}}},
      {"sm_80", ampere},
      {"sm_86", ampere},
      {"sm_89", ampere},
      {"sm_90", hopper},
      {"sm_100", hopper},
      {"sm_103", hopper},
      {"sm_120", hopper}};
  return generations.at(arch);
}

bool is_narrow(const formats::Format& f) { return formats::bits(f) <= 8; }

bool is_warp_level(Family family) { return family == Family::mma || family == Family::mma_sp; }

/// FP8, FP6 and FP4 without scales.
Judge narrow(const MatrixInstruction& instruction) {
  const bool to_fp16 = instruction.d == formats::fp16;
  const std::string_view arch = instruction.arch;
  if (instruction.family == Family::wgmma || instruction.family == Family::wgmma_sp) {
    return fused(instruction, to_fp16 ? oracle::hopper_fp8_fp16 : oracle::hopper_fp8_fp32);
  }
  if (arch == "sm_89")
    return fused(instruction, to_fp16 ? oracle::ada_fp8_fp16 : oracle::ada_fp8_fp32);
  const bool native = !is_warp_level(instruction.family) || arch == "sm_120";
  if (native) {
    return fused(instruction,
                 to_fp16 ? oracle::blackwell_tcgen05_fp8_fp16 : oracle::blackwell_fp8_fp32);
  }
  const bool old = instruction.toolkit.until != 0 && instruction.toolkit.until <= 1300;
  const auto composition = old ? oracle::Composition::parallel : oracle::Composition::chained;
  const FusedRule half = to_fp16 ? generation_of(arch).fp16 : generation_of(arch).fp32;
  return judge(instruction, (old ? "parallel " : "chained ") + text_of(half),
               [half, composition](const Vector& a, const Vector& b, const Scalar& c) {
                 return oracle::fp8_by_halves(half, composition, a, b, c);
               });
}

/// kind::mx...: scales serve equal shares of the stored products.
Judge scaled(const MatrixInstruction& instruction) {
  const int scale_block =
      emulator::stored_k(instruction, instruction.shape.k) / instruction.scale.count;
  const oracle::FormatParameters scale = oracle_format(instruction.scale.format);
  const bool grouped = has(instruction, "kind::mxf4");
  const FusedRule rule = grouped ? oracle::blackwell_mxf4 : oracle::blackwell_fp8_fp32;
  std::ostringstream name;
  name << (grouped ? "grouped " : "scaled ") << text_of(rule) << " by " << scale_block << " "
       << name_of(instruction.scale.format);
  return {name.str(), false, [instruction, rule, scale, scale_block, grouped](const DotInputs& x) {
            const Vector sa{scale, x.a_scale}, sb{scale, x.b_scale};
            if (!grouped) {
              return oracle::nvidia_scaled(rule, a_of(instruction, x), b_of(instruction, x), sa, sb,
                                           scale_block, c_of(instruction, x));
            }
            return oracle::nvidia_grouped(rule, 16, a_of(instruction, x), b_of(instruction, x), sa,
                                          sb, scale_block, c_of(instruction, x));
          }};
}

/// mma.m8n8k4 on f16: one block of four where HMMA.884 exists, else CUDA cores.
Judge quad(const MatrixInstruction& instruction) {
  const Generation& generation = generation_of(instruction.arch);
  const bool to_fp16 = instruction.d == formats::fp16;
  if (instruction.arch == "sm_70" || instruction.arch == "sm_75") {
    return fused(instruction, to_fp16 ? generation.fp16 : generation.fp32);
  }
  return judge(instruction, to_fp16 ? "m8n8k4 to fp16" : "m8n8k4 to fp32",
               to_fp16 ? oracle::m8n8k4_to_fp16 : oracle::m8n8k4_to_fp32);
}

/// WMMA with C in f32 and D in f16: the f32 chain, then one more rounding.
Judge narrowed(const MatrixInstruction& instruction) {
  const FusedRule rule = generation_of(instruction.arch).fp32;
  return judge(instruction, "narrowed " + text_of(rule),
               [rule](const Vector& a, const Vector& b, const Scalar& c) -> std::uint64_t {
                 const oracle::Number wide =
                     oracle::decode(oracle::fp32, oracle::nvidia_fused(rule, a, b, c));
                 return wide.is_nan() ? 0x7FFF
                                      : oracle::encode(oracle::fp16, wide, oracle::nearest_even);
               });
}

/// WMMA with C in f16 and D in f32: C becomes f32 first (recorded on an H200), which matters for a
/// subnormal C. Volta's own HMMA.884 takes it as it is.
Judge widened(const MatrixInstruction& instruction) {
  const FusedRule rule = generation_of(instruction.arch).fp32;
  return judge(instruction, "widened " + text_of(rule),
               [rule](const Vector& a, const Vector& b, const Scalar& c) {
                 const std::uint64_t wide = oracle::encode(
                     oracle::fp32, oracle::decode(c.format, c.code), oracle::nearest_even);
                 return oracle::nvidia_fused(rule, a, b, {oracle::fp32, wide});
               });
}

Judge half_and_wider(const MatrixInstruction& instruction) {
  const Generation& generation = generation_of(instruction.arch);
  if (instruction.shape == Shape{8, 8, 4}) return quad(instruction);
  if (instruction.a == formats::tf32) {
    return fused(instruction,
                 instruction.family == Family::wmma ? generation.wmma_tf32 : generation.tf32);
  }
  if (instruction.c == formats::fp32 && instruction.d == formats::fp16)
    return narrowed(instruction);
  if (instruction.c == formats::fp16 && instruction.d == formats::fp32 &&
      instruction.arch != "sm_70")
    return widened(instruction);
  return fused(instruction, instruction.d == formats::fp16 ? generation.fp16 : generation.fp32);
}

// ---- Integers, FP64, other vendors --------------------------------------------------------------

Judge integers(const MatrixInstruction& instruction) {
  if (instruction.a == formats::b1) {
    const auto operation = has(instruction, ".xor.popc") ? oracle::BitOperation::xor_popc
                                                         : oracle::BitOperation::and_popc;
    return judge(instruction, has(instruction, ".xor.popc") ? "xor" : "and",
                 [operation](const Vector& a, const Vector& b, const Scalar& c) {
                   return oracle::bit_dot(operation, a, b, c);
                 });
  }
  // x86's saturating dot products end in one more S.
  const bool satfinite = has(instruction, ".satfinite") || has(instruction, ".clamp") ||
                         (instruction.arch == "x86" && has(instruction, "VPDP") &&
                          std::string_view(instruction.name).ends_with("SDS"));
  return judge(instruction, satfinite ? "saturated" : "wrapped",
               [satfinite](const Vector& a, const Vector& b, const Scalar& c) {
                 return oracle::integer_dot(a, b, c, satfinite);
               });
}

Judge chain(const MatrixInstruction& instruction) {
  const oracle::FormatParameters result = oracle_format(instruction.d);
  const oracle::Rounding rounding = has(instruction, ".rz.")   ? oracle::toward_zero
                                    : has(instruction, ".rm.") ? oracle::downward
                                    : has(instruction, ".rp.") ? oracle::upward
                                                               : oracle::nearest_even;
  return judge(
      instruction,
      "chain of " + name_of(instruction.d) + " " + std::to_string(static_cast<int>(rounding.mode)),
      [result, rounding](const Vector& a, const Vector& b, const Scalar& c) {
        return oracle::fma_chain(result, a, b, c, rounding);
      },
      true);
}

Judge cdna1(const MatrixInstruction& instruction) {
  const int block = instruction.a == formats::fp16 ? 4 : 2;
  return judge(
      instruction, "cdna1 exact " + std::to_string(block),
      [block](const Vector& a, const Vector& b, const Scalar& c) {
        return oracle::cdna1_exact(block, a, b, c);
      },
      true);
}

Judge cdna2(const MatrixInstruction& instruction) {
  const bool pairs = instruction.a == formats::bf16 && !has(instruction, "_1k");
  const int block = pairs ? 2 : 4;
  return judge(
      instruction, "cdna2 pairwise " + std::to_string(block),
      [block](const Vector& a, const Vector& b, const Scalar& c) {
        return oracle::cdna2_pairwise(block, a, b, c);
      },
      true);
}

/// Chains of FMAs, with the NaNs of the manual.
Judge x86(const MatrixInstruction& instruction) {
  if (instruction.family == Family::amx) {
    const oracle::X86Mode chain = {instruction.a == formats::bf16, true};
    return judge(instruction, chain.daz ? "x86 tile" : "x86 tile, subnormal operands honoured",
                 [chain](const Vector& a, const Vector& b, const Scalar& c) {
                   return oracle::x86_tile(chain, a, b, c);
                 });
  }
  if (instruction.a == formats::bf16)
    return judge(instruction, "x86 bf16 lane", oracle::x86_bf16_lane);
  const oracle::FormatParameters result = oracle_format(instruction.d);
  return judge(instruction, "x86 fma of " + name_of(instruction.d),
               [result](const Vector& a, const Vector& b, const Scalar& c) {
                 return oracle::x86_fma_chain(result, {}, a, b, c);
               });
}

/// A dot product shorter than a block is one shorter block: zeros fill it, which are exact here.
Vector filled(Vector v, int block) {
  const auto size = static_cast<std::size_t>(block);
  v.codes.resize((v.codes.size() + size - 1) / size * size, 0);
  return v;
}

Judge cdna3(const MatrixInstruction& instruction) {
  oracle::Cdna3Rule rule;
  if (instruction.a == formats::tf32) rule.block = 4;
  if (is_narrow(instruction.a)) {
    rule.block = 16;
    rule.even_and_odd = true;
  }
  return judge(
      instruction, "cdna3 truncated " + std::to_string(rule.block),
      [rule](const Vector& a, const Vector& b, const Scalar& c) {
        return oracle::cdna3_truncated(rule, filled(a, rule.block), filled(b, rule.block), c);
      },
      true);
}

Judge rdna(const MatrixInstruction& instruction) {
  oracle::RdnaRule rule;
  rule.rdna3 = instruction.arch == "rdna3";
  rule.result = oracle_format(instruction.d);
  rule.swapped = has(instruction, "_w32");
  rule.block = rule.rdna3 || has(instruction, "v_dot2") ? 2 : 4;
  rule.group = is_narrow(instruction.a) ? 4 : 2;
  return judge(instruction, "rdna " + std::to_string(rule.block) + (rule.swapped ? " swapped" : ""),
               [rule](const Vector& a, const Vector& b, const Scalar& c) {
                 return oracle::rdna_dot(rule, a, b, c);
               });
}

}  // namespace

oracle::FormatParameters oracle_format(const formats::Format& format) {
  static const std::map<std::string, oracle::FormatParameters> known = {
      {"fp64", oracle::fp64},   {"fp32", oracle::fp32},         {"tf32", oracle::tf32},
      {"bf16", oracle::bf16},   {"fp16", oracle::fp16},         {"e5m2", oracle::e5m2},
      {"e4m3", oracle::e4m3},   {"e4m3fnuz", oracle::e4m3fnuz}, {"e5m2fnuz", oracle::e5m2fnuz},
      {"e3m2", oracle::e3m2},   {"e2m3", oracle::e2m3},         {"e2m1", oracle::e2m1},
      {"ue4m3", oracle::ue4m3}, {"e8m0", oracle::e8m0},         {"int32", oracle::int32},
      {"int16", oracle::int16}, {"int8", oracle::int8},         {"uint8", oracle::uint8},
      {"int4", oracle::int4},   {"uint4", oracle::uint4},       {"b1", oracle::b1}};
  return known.at(name_of(format));
}

Judge judge_of(const MatrixInstruction& instruction) {
  if (formats::is_integer(instruction.a)) return integers(instruction);
  if (instruction.arch == "x86") return x86(instruction);
  if (instruction.d == formats::fp64 || instruction.a == formats::fp32 ||
      instruction.family == Family::tpu)
    return chain(instruction);
  if (instruction.arch == "cdna1") return cdna1(instruction);
  if (instruction.arch == "cdna2") return cdna2(instruction);
  if (instruction.arch == "cdna3") return cdna3(instruction);
  if (instruction.arch.starts_with("rdna")) return rdna(instruction);
  if (!instruction.arch.starts_with("sm_"))
    throw std::invalid_argument("no rule: " + text_of(instruction));
  if (instruction.scale.count != 0) return scaled(instruction);
  return is_narrow(instruction.a) ? narrow(instruction) : half_and_wider(instruction);
}

bool agree(const MatrixInstruction& instruction, const Judge& judge, std::uint64_t computed,
           std::uint64_t judged) {
  if (computed == judged) return true;
  const oracle::FormatParameters d = oracle_format(instruction.d);
  return judge.nan_is_any_nan && oracle::is_nan(d, computed) && oracle::is_nan(d, judged);
}

std::string text_of(const MatrixInstruction& instruction) {
  std::string text =
      std::string(instruction.arch) + " " + std::string(std::string_view(instruction.name));
  if (instruction.toolkit.from != 0) text += " from " + std::to_string(instruction.toolkit.from);
  if (instruction.toolkit.until != 0) text += " until " + std::to_string(instruction.toolkit.until);
  return text;
}

std::string text_of(const DotInputs& inputs) {
  std::ostringstream text;
  text << std::hex;
  const auto list = [&text](const char* name, const std::vector<std::uint64_t>& codes) {
    if (codes.empty()) return;
    text << name;
    for (const std::uint64_t code : codes) text << " " << code;
    text << "\n";
  };
  list("a", inputs.a);
  list("b", inputs.b);
  list("a_scale", inputs.a_scale);
  list("b_scale", inputs.b_scale);
  text << "c " << inputs.c;
  return text.str();
}

}  // namespace guardbit::tests
