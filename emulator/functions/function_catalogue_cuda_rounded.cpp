#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/function_catalogue.hpp"

// CUDA's arithmetic that says how it rounds: instructions of PTX by other names.
namespace guardbit::emulator {

namespace {

struct RoundedIntrinsic {
  /// without its rounding
  const char* name;
  /// PTX's operation
  const char* operation;
  /// __fmaf_ieee_* keeps subnormal numbers in every mode
  bool flushes = true;
};
constexpr std::array rounded_intrinsics = {RoundedIntrinsic{"__fadd", "add"},
                                           RoundedIntrinsic{"__fsub", "sub"},
                                           RoundedIntrinsic{"__fmul", "mul"},
                                           RoundedIntrinsic{"__fmaf", "fma"},
                                           RoundedIntrinsic{"__fmaf_ieee", "fma", false},
                                           RoundedIntrinsic{"__fdiv", "div"},
                                           RoundedIntrinsic{"__frcp", "rcp"},
                                           RoundedIntrinsic{"__fsqrt", "sqrt"}};

/// CUDA's word of a rounding, and PTX's.
struct RoundingWord {
  const char *cuda, *ptx;
};
constexpr std::array rounding_words = {RoundingWord{"rn", "rn"}, RoundingWord{"rz", "rz"},
                                       RoundingWord{"rd", "rm"}, RoundingWord{"ru", "rp"}};

/// Names live as long as the program.
std::string_view kept(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name));
}

std::vector<Function> named(CompileMode mode, const std::vector<Function>& instructions) {
  std::vector<Function> all;
  for (const RoundedIntrinsic& intrinsic : rounded_intrinsics) {
    for (const RoundingWord& rounding : rounding_words) {
      const bool flushes = mode != CompileMode::standard && intrinsic.flushes;
      const std::string instruction =
          std::string(intrinsic.operation) + "." + rounding.ptx + (flushes ? ".ftz.f32" : ".f32");
      const auto found = std::ranges::find(instructions, instruction, &Function::name);
      if (found == instructions.end()) continue;
      Function function = *found;
      function.name = kept(std::string(intrinsic.name) + "_" + rounding.cuda);
      function.compile = mode;
      function.evidence = cuda_evidence(function.operands, mode);
      all.push_back(function);
    }
  }
  return all;
}

}  // namespace

std::vector<Function> cuda_rounded_functions(CompileMode mode) {
  std::vector<Function> instructions = ptx_functions();
  const std::vector<Function> more = ptx_functions_of_formats();
  instructions.insert(instructions.end(), more.begin(), more.end());
  return named(mode, instructions);
}

}  // namespace guardbit::emulator
