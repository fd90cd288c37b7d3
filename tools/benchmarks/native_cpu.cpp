#include "tools/benchmarks/native_cpu.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "formats/support/instruction_sets.hpp"

namespace guardbit::tools {

#if defined(GUARDBIT_NATIVE) && !defined(__clang__)

namespace {

/// What the compiler's macro __NAME__ allows it to use.
struct InstructionSet {
  std::string_view name;
  bool is_here = false;
};

auto instruction_sets() {
  return std::to_array<InstructionSet>({
      {"SSE3", __builtin_cpu_supports("sse3") != 0},
      {"SSSE3", __builtin_cpu_supports("ssse3") != 0},
      {"SSE4_1", __builtin_cpu_supports("sse4.1") != 0},
      {"SSE4_2", __builtin_cpu_supports("sse4.2") != 0},
      {"SSE4A", __builtin_cpu_supports("sse4a") != 0},
      {"CRC32", __builtin_cpu_supports("sse4.2") != 0},
      {"AVX", __builtin_cpu_supports("avx") != 0},
      {"AVX2", __builtin_cpu_supports("avx2") != 0},
      {"FMA", __builtin_cpu_supports("fma") != 0},
      {"FMA4", __builtin_cpu_supports("fma4") != 0},
      {"XOP", __builtin_cpu_supports("xop") != 0},
      {"F16C", __builtin_cpu_supports("f16c") != 0},
      {"BMI", __builtin_cpu_supports("bmi") != 0},
      {"BMI2", __builtin_cpu_supports("bmi2") != 0},
      {"LZCNT", __builtin_cpu_supports("lzcnt") != 0},
      {"ABM", __builtin_cpu_supports("lzcnt") != 0},
      {"POPCNT", __builtin_cpu_supports("popcnt") != 0},
      {"MOVBE", __builtin_cpu_supports("movbe") != 0},
      {"ADX", __builtin_cpu_supports("adx") != 0},
      {"AES", __builtin_cpu_supports("aes") != 0},
      {"PCLMUL", __builtin_cpu_supports("pclmul") != 0},
      {"VAES", __builtin_cpu_supports("vaes") != 0},
      {"VPCLMULQDQ", __builtin_cpu_supports("vpclmulqdq") != 0},
      {"GFNI", __builtin_cpu_supports("gfni") != 0},
      {"SHA", __builtin_cpu_supports("sha") != 0},
      {"AVXVNNI", __builtin_cpu_supports("avxvnni") != 0},
      {"AVX512F", __builtin_cpu_supports("avx512f") != 0},
      {"AVX512CD", __builtin_cpu_supports("avx512cd") != 0},
      {"AVX512BW", __builtin_cpu_supports("avx512bw") != 0},
      {"AVX512DQ", __builtin_cpu_supports("avx512dq") != 0},
      {"AVX512VL", __builtin_cpu_supports("avx512vl") != 0},
      {"AVX512IFMA", __builtin_cpu_supports("avx512ifma") != 0},
      {"AVX512VBMI", __builtin_cpu_supports("avx512vbmi") != 0},
      {"AVX512VBMI2", __builtin_cpu_supports("avx512vbmi2") != 0},
      {"AVX512VNNI", __builtin_cpu_supports("avx512vnni") != 0},
      {"AVX512BITALG", __builtin_cpu_supports("avx512bitalg") != 0},
      {"AVX512VPOPCNTDQ", __builtin_cpu_supports("avx512vpopcntdq") != 0},
      {"AVX512BF16", __builtin_cpu_supports("avx512bf16") != 0},
      {"AVX512FP16", __builtin_cpu_supports("avx512fp16") != 0},
      {"AVX512VP2INTERSECT", __builtin_cpu_supports("avx512vp2intersect") != 0},
      {"CLFLUSHOPT", __builtin_cpu_supports("clflushopt") != 0},
      {"CLWB", __builtin_cpu_supports("clwb") != 0},
      {"CLZERO", __builtin_cpu_supports("clzero") != 0},
      {"FSGSBASE", __builtin_cpu_supports("fsgsbase") != 0},
      {"LAHF_SAHF", __builtin_cpu_supports("lahf_lm") != 0},
      {"MWAITX", __builtin_cpu_supports("mwaitx") != 0},
      {"PKU", __builtin_cpu_supports("pku") != 0},
      {"PRFCHW", __builtin_cpu_supports("prfchw") != 0},
      {"RDPID", __builtin_cpu_supports("rdpid") != 0},
      {"RDRND", __builtin_cpu_supports("rdrnd") != 0},
      {"RDSEED", __builtin_cpu_supports("rdseed") != 0},
      {"RTM", __builtin_cpu_supports("rtm") != 0},
      {"SHSTK", __builtin_cpu_supports("shstk") != 0},
      {"WBNOINVD", __builtin_cpu_supports("wbnoinvd") != 0},
      {"XSAVE", __builtin_cpu_supports("xsave") != 0},
      {"XSAVEC", __builtin_cpu_supports("xsavec") != 0},
      {"XSAVEOPT", __builtin_cpu_supports("xsaveopt") != 0},
      {"XSAVES", __builtin_cpu_supports("xsaves") != 0},
  });
}

}  // namespace

std::string native_obstacle() {
  if (formats::allowed_instruction_sets() != formats::InstructionSets::all)
    return "compiled for this CPU, of which GUARDBIT_CPU masks a part";
  const auto known = instruction_sets();
  std::istringstream needed(GUARDBIT_NATIVE);
  for (std::string name; needed >> name;) {
    const auto set = std::find_if(known.begin(), known.end(),
                                  [&](const InstructionSet& x) { return x.name == name; });
    if (set == known.end()) return "compiled for " + name + ", which it cannot ask this CPU for";
    if (!set->is_here) return "compiled for " + name + ", which this CPU lacks";
  }
  return "";
}

#else

std::string native_obstacle() { return "not compiled"; }

#endif

}  // namespace guardbit::tools
