#include <string>

#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

namespace {

std::string order_words(SumOrder order) {
  switch (order) {
    case SumOrder::ascending: return "in ascending order";
    case SumOrder::descending: return "in descending order";
    case SumOrder::adjacent: return "as a tree of neighbours";
    case SumOrder::adjacent_last: return "as a tree of neighbours from the last one on";
    case SumOrder::by_four: return "by four sums, which take them in turn,";
    case SumOrder::halves: return "as a tree of halves";
    case SumOrder::shuffles: return "as a tree of powers of two, the greatest distance first,";
    case SumOrder::buffers:
      return "by way of half as many buffers, which the last one takes in turn,";
    case SumOrder::last_first: return "from the last one on, then in ascending order,";
    case SumOrder::in_place: return "in D, one after the other,";
  }
  return "";
}

/// Parts are kept in a format and added in that of the epilogue.
std::string sum_words(SumOrder order, const Format& kept, const Format& compute) {
  std::string text = ", added " + order_words(order) + " in " + formats::name_of(compute);
  if (kept != formats::fp32 && kept != compute)
    text += " as " + formats::name_of(kept) + " has them";
  return text;
}

std::string partition_words(const Partition& p, const std::string& owner, const Format& compute) {
  std::string text =
      std::to_string(p.parts) + " " + owner + " of K in tiles of " + std::to_string(p.tile);
  switch (p.division) {
    case Division::ceil: break;
    case Division::balanced: text += ", evenly"; break;
    case Division::balanced_last: text += ", evenly, the last ones longer"; break;
    case Division::round_robin: text += ", taken in turn"; break;
  }
  text += sum_words(p.order, p.sums, compute);
  if (p.group != 0) text += ", those of " + std::to_string(p.group) + " neighbours first";
  return text;
}

std::string stream_k_words(const StreamK& x, const Format& compute) {
  std::string text = "stream-K: " + std::to_string(x.blocks) + " blocks share tiles of " +
                     std::to_string(x.tile_m) + " x " + std::to_string(x.tile_n) + " x " +
                     std::to_string(x.tile_k) + (x.along_m ? " in columns" : " in rows");
  if (x.division == Division::balanced) text += ", evenly";
  switch (x.tiles) {
    case StreamK::Tiles::all: break;
    case StreamK::Tiles::one_tile: text += ", of the incomplete wave"; break;
    case StreamK::Tiles::two_tile: text += ", of the last two waves"; break;
  }
  return text + sum_words(x.order, x.sums, compute);
}

std::string input_words(const InputConversion& input) {
  std::string text;
  switch (input.rounding) {
    case Rounding::nearest_away: text = "inputs rounded to nearest, ties away"; break;
    case Rounding::toward_zero: text = "inputs truncated"; break;
    default: text = "inputs rounded to nearest even"; break;
  }
  if (input.pieces > 1 || input.has_integer_slices())
    text += " in " + std::to_string(input.pieces) +
            (input.has_integer_slices() ? " slices" : " pieces");
  if (input.last == Rounding::toward_zero) text += ", the last one truncated";
  if (input.last == Rounding::nearest_even) text += ", the last one to nearest even";
  if (input.last == Rounding::nearest_away) text += ", the last one to nearest, ties away";
  if (input.run != 0)
    text += ", " + std::to_string(input.run) + " elements of K of each pair of pieces in turn";
  if (input.b_first) text += ", B's smaller pieces before A's";
  if (input.cut == InputConversion::Cut::scaled_rest)
    text += ", each scaled by 2^" + std::to_string(input.shift) + " more";
  return text;
}

std::string addition_words(Epilogue::Addition addition) {
  switch (addition) {
    case Epilogue::Addition::fma_product: return "";
    case Epilogue::Addition::fma_addend: return "fma(beta, c, alpha * sum)";
    case Epilogue::Addition::separate: return "alpha * sum and the addend added separately";
    case Epilogue::Addition::rounded:
      return "alpha * sum rounded to the result before the addition";
    case Epilogue::Addition::initial: return "the chain begins with the addend";
  }
  return "";
}

std::string activation_words(Activation activation) {
  switch (activation) {
    case Activation::none: return "";
    case Activation::relu: return "negative results are zero (ReLU)";
    case Activation::gelu: return "GELU by erf";
    case Activation::gelu_cuda12: return "GELU by the erff of CUDA 12.0";
    case Activation::gelu_erfc: return "GELU by XLA's erfc, each step rounded to the result";
    case Activation::gelu_tanh: return "GELU by tanh";
    case Activation::silu: return "SiLU";
  }
  return "";
}

}  // namespace

std::string describe(const GemmPlan& plan) {
  std::string text =
      (plan.products == ProductOrder::tree ? "a tree of neighbours of " : "a chain of ") +
      plan.unit.instruction + " over ascending k";
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
  if (!plan.slices.whole()) add(partition_words(plan.slices, "slices", plan.epilogue.compute));
  if (!plan.split.whole()) add(partition_words(plan.split, "splits", plan.epilogue.compute));
  if (!plan.stream_k.none()) add(stream_k_words(plan.stream_k, plan.epilogue.compute));
  if (plan.epilogue.alpha_on == Epilogue::AlphaOn::a) add("alpha times A first");
  if (plan.epilogue.alpha_on == Epilogue::AlphaOn::b) add("alpha times B first");
  if (plan.epilogue.alpha_on == Epilogue::AlphaOn::d)
    add("the sum rounded to the result before it is multiplied by alpha");
  add(addition_words(plan.epilogue.addition));
  if (plan.epilogue.via) add("stored as " + formats::name_of(*plan.epilogue.via) + " first");
  add(activation_words(plan.epilogue.activation));
  return text + "; result in " + formats::name_of(plan.epilogue.output);
}

}  // namespace guardbit::emulator
