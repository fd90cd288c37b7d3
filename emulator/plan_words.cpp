#include <string>

#include "emulator/gemm_plan.hpp"

namespace guardbit::emulator {

namespace {

std::string partition_words(const Partition& p, const std::string& owner) {
  std::string text =
      std::to_string(p.parts) + " " + owner + " of K in tiles of " + std::to_string(p.tile);
  switch (p.division) {
    case Division::ceil: break;
    case Division::balanced: text += ", evenly"; break;
    case Division::round_robin: text += ", dealt in turn"; break;
  }
  switch (p.order) {
    case SumOrder::ascending: text += ", added in ascending order"; break;
    case SumOrder::descending: text += ", added in descending order"; break;
    case SumOrder::adjacent: text += ", added as a tree of neighbours"; break;
    case SumOrder::halves: text += ", added as a tree of halves"; break;
  }
  return text + " in " + formats::name_of(p.sums);
}

std::string input_words(const InputConversion& input) {
  std::string text;
  switch (input.rounding) {
    case Rounding::nearest_away: text = "inputs rounded to nearest, ties away"; break;
    case Rounding::toward_zero: text = "inputs truncated"; break;
    default: text = "inputs rounded to nearest even"; break;
  }
  if (input.pieces > 1) text += " in " + std::to_string(input.pieces) + " pieces";
  return text;
}

std::string addition_words(Epilogue::Addition addition) {
  switch (addition) {
    case Epilogue::Addition::fma_product: return "";
    case Epilogue::Addition::fma_addend: return "fma(beta, c, alpha * sum)";
    case Epilogue::Addition::separate: return "alpha * sum and the addend added separately";
    case Epilogue::Addition::rounded:
      return "alpha * sum rounded to the result before the addition";
    case Epilogue::Addition::initial: return "the chain begins with c";
  }
  return "";
}

}  // namespace

std::string describe(const GemmPlan& plan) {
  std::string text = "a chain of " + plan.unit.instruction + " over ascending k";
  if (plan.unit.arch != "simt") text += " (" + plan.unit.arch + ")";
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += "; " + part;
  };
  if (plan.input != InputConversion{}) add(input_words(plan.input));
  if (plan.convolution.channel_block != 0)
    add("channels in blocks of " + std::to_string(plan.convolution.channel_block));
  if (plan.convolution.walk == ConvolutionOrder::Walk::crs) add("channels outermost");
  if (plan.convolution.walk == ConvolutionOrder::Walk::src) add("filter columns outermost");
  if (plan.loads.lanes != 0)
    add("K permuted by loads of " + std::to_string(plan.loads.run) + " in " +
        std::to_string(plan.loads.lanes) + " lanes");
  if (plan.residue_first != 0)
    add("the incomplete tile of " + std::to_string(plan.residue_first) + " first");
  if (plan.promotion.interval != 0)
    add("added to an FP32 sum every " + std::to_string(plan.promotion.interval));
  if (!plan.lanes.whole()) add(partition_words(plan.lanes, "lanes"));
  if (!plan.split.whole()) add(partition_words(plan.split, "slices"));
  add(addition_words(plan.epilogue.addition));
  return text + "; result in " + formats::name_of(plan.epilogue.output);
}

}  // namespace guardbit::emulator
