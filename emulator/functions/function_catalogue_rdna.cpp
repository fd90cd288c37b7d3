#include <cmath>
#include <numbers>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/unit/rdna_unit.hpp"

// AMD's special functions, of its Radeon cards.
namespace guardbit::emulator {

namespace {

constexpr Evidence whole_digests = {
    Basis::documented,
    "AMD's emulator rocjitsu; digests of a Radeon PRO W7900's and a Radeon AI PRO R9700's results for every significand, published with it; no recording here"};
constexpr Evidence root_digest = {
    Basis::documented,
    "AMD's emulator rocjitsu; a digest of a Radeon AI PRO R9700's results for 2^20 inputs, published with it; no recording here"};
constexpr Evidence published_results = {
    Basis::documented,
    "AMD's emulator rocjitsu; 35 results of a Radeon PRO W7900 and a Radeon AI PRO R9700, published with it; subnormal numbers kept; no recording here"};

template <rdna::Code (*evaluate)(rdna::Code)>
Function rdna_function(std::string_view arch, std::string_view name, std::string_view meaning,
                       const Evidence& evidence, double (*exact)(double)) {
  Function function;
  function.name = name;
  function.arch = arch;
  function.meaning = meaning;
  function.evidence = evidence;
  function.run = [](const CodeArrays<std::uint32_t>& arrays) {
    for (std::size_t i = 0; i < arrays.results[0].size(); ++i)
      arrays.results[0][i] = evaluate(arrays.operands[0][i]);
  };
  function.reference = [](const OperandCodes& codes) {
    return ResultCodes{evaluate(static_cast<rdna::Code>(codes[0]))};
  };
  function.steps = [](const OperandCodes&) { return std::vector<ProgramStep>(); };
  function.in_doubles = [exact](const std::array<double, most_operands>& a) {
    return std::array{exact(a[0]), 0.0};
  };
  return function;
}

/// An angle in turns, without whole ones and in radians.
double radians(double turns) { return 2 * std::numbers::pi * std::remainder(turns, 1); }

}  // namespace

std::vector<Function> rdna_functions() {
  std::vector<Function> all;
  for (const std::string_view arch : {"rdna3", "rdna4"}) {
    const auto add = [&](const Function& function) { all.push_back(function); };
    add(rdna_function<rdna::exponential>(arch, "v_exp_f32", "2^x", whole_digests,
                                         [](double x) { return std::exp2(x); }));
    add(rdna_function<rdna::logarithm>(arch, "v_log_f32", "log2(x)", whole_digests,
                                       [](double x) { return std::log2(x); }));
    add(rdna_function<rdna::reciprocal>(arch, "v_rcp_f32", "1 / x", whole_digests,
                                        [](double x) { return 1 / x; }));
    add(rdna_function<rdna::reciprocal_root>(arch, "v_rsq_f32", "1 / sqrt(x)", whole_digests,
                                             [](double x) { return 1 / std::sqrt(x); }));
    add(rdna_function<rdna::root>(arch, "v_sqrt_f32", "sqrt(x)", root_digest,
                                  [](double x) { return std::sqrt(x); }));
    add(rdna_function<rdna::sine>(arch, "v_sin_f32", "sin(2 pi x)", published_results,
                                  [](double x) { return std::sin(radians(x)); }));
    add(rdna_function<rdna::cosine>(arch, "v_cos_f32", "cos(2 pi x)", published_results,
                                    [](double x) { return std::cos(radians(x)); }));
  }
  return all;
}

}  // namespace guardbit::emulator
