#include "emulator/gemm/usual_plan.hpp"

#include <set>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/usual_instruction.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

/// "e4m3 x e5m2": what the machine multiplies.
std::string operands_of(std::string_view page) {
  std::set<std::string> pairs;
  for (const MatrixInstruction& x : catalogue())
    if (x.arch == page && x.sparsity.group_elements == 0 && x.scale.count == 0)
      pairs.insert(formats::name_of(x.a) + " x " + formats::name_of(x.b));
  std::string text;
  for (const std::string& pair : pairs) text += (text.empty() ? "" : ", ") + pair;
  return text;
}

/// What the machine's usual sums are kept in.
Format sums_of(const Format& a, const Format& b) {
  if (formats::is_integer(a) || formats::is_integer(b)) return formats::int32;
  return a == formats::fp64 ? formats::fp64 : formats::fp32;
}

}  // namespace

Format usual_result(const Format& a) {
  if (formats::is_integer(a)) return formats::int32;
  return formats::bits(a) <= 8 ? formats::fp32 : a;
}

GemmPlan usual_plan(std::string_view arch, const Format& a, const Format& b, const Format& output,
                    bool tf32, std::string_view where) {
  const std::string_view page = require_page(arch, where);
  if (tf32 && (a != formats::fp32 || b != formats::fp32))
    throw formats::Error(
        std::string(where),
        "TF32 is for operands in fp32, not " + formats::name_of(a) + " and " + formats::name_of(b));
  GemmPlan plan;
  plan.epilogue.output = output;
  const Format sums = sums_of(a, b);
  const ProductFormats wanted = {tf32 ? formats::tf32 : a, tf32 ? formats::tf32 : b, sums};
  plan.epilogue.compute = sums;
  if (const auto found = usual_instruction(page, wanted)) {
    plan.unit = {std::string(page), std::string(std::string_view(found->name))};
    return plan;
  }
  const bool is_nvidia = page.starts_with("sm_");
  if (!tf32 && is_nvidia && a == b && (a == formats::fp32 || a == formats::fp64)) {
    plan.unit = {"simt", a == formats::fp32 ? "fma.fp32" : "fma.fp64"};
    return plan;
  }
  throw formats::Error(std::string(where),
                       "no matrix instruction of " + std::string(page) + " multiplies " +
                           formats::name_of(wanted.a) + " by " + formats::name_of(wanted.b),
                       operands_of(page));
}

}  // namespace guardbit::emulator
