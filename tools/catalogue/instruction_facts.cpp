#include "tools/catalogue/instruction_facts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/explain/explain.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

namespace guardbit::tools {

namespace {

using emulator::AccumulatorSpec;
using emulator::MatrixInstruction;
using emulator::Operation;
using emulator::Product;
using emulator::Selection;
using emulator::Source;
using emulator::Step;
using emulator::Subtraction;
using emulator::Summation;
using formats::Format;

std::string number(int x) { return std::to_string(x); }

/// "s1" is the result of step 1.
std::string source_name(Source source) {
  return source == Source::c ? "C" : emulator::source_text(source);
}

bool takes_all(const Selection& selection) { return selection == Selection{}; }

std::string selection_text(const Selection& selection) {
  std::string residues;
  for (int r = 0; r < selection.modulus; ++r) {
    if (selection.contains(r)) residues += (residues.empty() ? "" : ",") + number(r);
  }
  return "k mod " + number(selection.modulus) + " in {" + residues + "}";
}

std::string flushes(const AccumulatorSpec& spec) {
  const bool daz = spec.input == emulator::Subnormals::daz_ftz;
  const bool ftz = spec.output == emulator::Subnormals::daz_ftz;
  if (daz || ftz) return daz && ftz ? ", DAZ and FTZ" : daz ? ", DAZ" : ", FTZ";
  const bool input = spec.input == emulator::Subnormals::flush;
  const bool output = spec.output == emulator::Subnormals::flush;
  if (input && output) return ", subnormals flushed";
  return input ? ", subnormal operands flushed" : output ? ", subnormal results flushed" : "";
}

std::string integer_summary(const AccumulatorSpec& spec) {
  const std::string product = spec.product == Product::multiply  ? "exact sum"
                              : spec.product == Product::bit_and ? "popcount of A and B"
                                                                 : "popcount of A xor B";
  return product + (spec.integer_overflow == emulator::IntegerOverflow::wrap ? ", wraps"
                                                                             : ", saturates once");
}

/// The accumulation of one dot step.
std::string dot_summary(const AccumulatorSpec& spec, const Format& result) {
  const std::string blocks = spec.terms == 0 ? "all K at once" : "blocks of " + number(spec.terms);
  const std::string end = ", " + emulator::conversion_text(spec, result) + flushes(spec);
  switch (spec.summation) {
    case Summation::fused: {
      const std::string groups =
          spec.exact_group > 1 ? " in exact groups of " + number(spec.exact_group) : "";
      return blocks + groups + ", F = " + number(spec.kept_fraction_bits) +
             ", e0 = " + number(spec.min_exponent) + end;
    }
    case Summation::exact: return blocks + ", exact sum" + end;
    case Summation::fma_chain: return "chain of fused multiply-adds" + end;
    case Summation::pairwise: return blocks + ", added in pairs, every step" + end.substr(1);
    case Summation::two_stage: {
      const std::string sets = spec.interleave == emulator::Interleave::even_odd
                                   ? ", even and odd k apart"
                               : spec.interleave == emulator::Interleave::pairs ? " in pairs"
                                                                                : "";
      const std::string total =
          spec.total_kept_fraction_bits == 0 ? "" : " and " + number(spec.total_kept_fraction_bits);
      return blocks + sets + ", F = " + number(spec.kept_fraction_bits) + ", then C with " +
             (total.empty() ? "a floor" : "floors") + " at " + number(spec.sum_kept_fraction_bits) +
             total + " bits" + end;
    }
    case Summation::two_grids: {
      const std::string inverted =
          spec.subtraction == Subtraction::ones_complement ? ", subtraction by inverted bits" : "";
      return blocks + ", F = " + number(spec.kept_fraction_bits) + " of products and " +
             number(spec.addend_kept_fraction_bits) + " of C" + inverted + end;
    }
    case Summation::integer: return integer_summary(spec);
  }
  return "";
}

/// "s1 = 0 + dot(k mod 4 in {0,1})"
std::string step_formula(const Step& step, const std::string& name) {
  switch (step.operation) {
    case Operation::dot:
      return name + " = " + source_name(step.addend) + " + dot(" +
             (takes_all(step.selection) ? "all k" : selection_text(step.selection)) + ")";
    case Operation::add:
      return name + " = " + source_name(step.addend) + " + " + source_name(step.other);
    case Operation::convert: return name + " = " + source_name(step.addend);
  }
  return "";
}

std::vector<std::string> fused_description(const AccumulatorSpec& spec) {
  std::vector<std::string> lines;
  if (spec.exact_group > 1) {
    lines.push_back(
        "The " + number(spec.exact_group) +
        " products of a group are added exactly, then multiplied by the significands of their two scales; "
        "the group is one term, whose exponent is the sum of the scales' exponents.");
  } else {
    lines.push_back(
        "Each product is exact and not normalised: its exponent is the sum of its factors' exponents, its significand lies in [0, 4). "
        "Subnormal operands count in full.");
  }
  lines.push_back(
      "Every term, and the addend as one of them, is cut toward zero to a multiple of 2^(E-" +
      number(spec.kept_fraction_bits) +
      "), where E is the largest exponent among them; what remains is added exactly, in no particular order.");
  lines.push_back("A zero product or addend takes part in the choice of E with exponent " +
                  number(spec.min_exponent) + ".");
  return lines;
}

std::vector<std::string> two_stage_description(const AccumulatorSpec& spec) {
  const bool apart = spec.interleave == emulator::Interleave::even_odd;
  const bool pairs = spec.interleave == emulator::Interleave::pairs;
  const bool floors = spec.alignment == formats::Rounding::downward;
  std::vector<std::string> lines = {
      std::string(apart   ? "The products of even and of odd k are each aligned"
                  : pairs ? "Neighbouring products are aligned in pairs"
                          : "The products are aligned") +
      " to their own largest exponent, " + (floors ? "floored " : "cut toward zero ") +
      number(spec.kept_fraction_bits) + " bits below it and added exactly" +
      (apart ? "; the two sums are brought together with a floor." : ".")};
  lines.push_back(
      std::string(pairs ? "The sums of the pairs are each floored " : "That sum is floored ") +
      number(spec.sum_kept_fraction_bits) + " bits below the larger of " +
      (pairs ? "their" : "its") + " and the addend's exponent, the addend " +
      number(spec.kept_fraction_bits) + " bits" +
      (spec.total_kept_fraction_bits == 0
           ? "."
           : "; the total keeps " + number(spec.total_kept_fraction_bits) +
                 " bits below its leading one."));
  if (spec.addend_cutoff != 0) {
    lines.push_back("An addend more than " + number(spec.addend_cutoff) +
                    " exponents below counts as zero.");
  }
  if (spec.product_overflow_exponent != 0) {
    lines.push_back("A product of 2^" + number(spec.product_overflow_exponent) +
                    " or more is an infinity at once.");
  }
  return lines;
}

std::vector<std::string> two_grids_description(const AccumulatorSpec& spec) {
  std::vector<std::string> lines = {
      "Each product is exact and not normalised: its exponent is the sum of its factors' exponents, its significand lies in [0, 4).",
      "Products ask for a grid of 2^(E-" + number(spec.kept_fraction_bits) +
          "), E being the largest exponent of those that are not zero, the addend for one of " +
          number(spec.addend_kept_fraction_bits) +
          " bits below its own exponent, that of a zero being " + number(spec.min_exponent) +
          ". Every term is cut toward zero on the coarser of the two, then all are added."};
  if (spec.subtraction == Subtraction::ones_complement) {
    lines.push_back(
        "A term whose sign is not the addend's is subtracted by inverting its bits, which takes one unit of the grid too many; so is a zero of the other sign.");
  }
  return lines;
}

std::vector<std::string> sum_description(const AccumulatorSpec& spec) {
  switch (spec.summation) {
    case Summation::fused: return fused_description(spec);
    case Summation::exact:
      return {"Products and addend are added without any loss and rounded once."};
    case Summation::fma_chain:
      return {
          "One fused multiply-add per product, k ascending, each rounded: the addend starts the chain."};
    case Summation::pairwise:
      return {
          "Products are rounded, then added in a balanced tree whose every sum is rounded; the addend comes last."};
    case Summation::two_stage: return two_stage_description(spec);
    case Summation::two_grids: return two_grids_description(spec);
    case Summation::integer:
      return {"The exact total with the addend: " + integer_summary(spec) + "."};
  }
  return {};
}

std::string nan_description(emulator::NanPolicy policy) {
  switch (policy) {
    case emulator::NanPolicy::all_ones:
      return "A NaN operand, infinity times zero, or infinities of both signs give the NaN of all ones.";
    case emulator::NanPolicy::operand_bca:
      return "A NaN is the quieted B, else the running sum, else A; an invalid operation gives the negative quiet NaN.";
    case emulator::NanPolicy::operand_abc:
      return "A NaN is the quieted A, else B, else the running sum; "
             "of an addition the first operand, else the second; an invalid operation gives the negative quiet NaN.";
    case emulator::NanPolicy::products_addend:
      return "A NaN factor gives the negative quiet NaN whose payload ends in the bits of a3d; infinity times zero and infinite products of both signs give the negative quiet NaN; "
             "else a NaN addend is quieted; an infinite addend against an infinite product gives the negative quiet NaN.";
    case emulator::NanPolicy::products_alike:
      return "A NaN factor and every invalid operation give the negative quiet NaN whose payload ends in the bits of a3d; "
             "else a NaN addend is quieted.";
    case emulator::NanPolicy::unspecified:
      return "Sign and payload of a NaN are not known: NaNs are compared as NaNs only.";
  }
  return "";
}

std::vector<std::string> result_description(const AccumulatorSpec& spec, const Format& result) {
  if (spec.summation == Summation::integer) return {};
  std::vector<std::string> lines = {"The result is " + emulator::conversion_text(spec, result) +
                                    flushes(spec) + "."};
  if (spec.summation == Summation::fused || spec.summation == Summation::two_stage ||
      spec.summation == Summation::two_grids || spec.summation == Summation::exact) {
    lines.push_back(
        std::string("Past the largest number it is an infinity, whatever the rounding") +
        (spec.underflowed_sum == emulator::ZeroSign::positive
             ? "; a negative sum that becomes zero gives +0."
             : "; a negative sum that becomes zero gives -0."));
  }
  lines.push_back(nan_description(spec.nan));
  return lines;
}

}  // namespace

std::string arithmetic_summary(const MatrixInstruction& instruction) {
  if (instruction.steps.count == 1)
    return dot_summary(instruction.steps.list[0].spec, instruction.steps.list[0].result);
  std::string formulas;
  std::string text;
  int index = 0;
  for (const Step& step : instruction.steps) {
    ++index;
    const bool last = index == instruction.steps.count;
    formulas +=
        (formulas.empty() ? "" : "; ") + step_formula(step, last ? "D" : "s" + number(index));
    if (step.operation == Operation::dot && text.empty())
      text = dot_summary(step.spec, step.result);
    if (last)
      formulas += ", " + emulator::conversion_text(step.spec, step.result) + flushes(step.spec);
  }
  return formulas + "; each dot: " + text;
}

std::vector<std::string> arithmetic_description(const MatrixInstruction& instruction) {
  std::vector<std::string> lines;
  const Step& dot =
      *std::find_if(instruction.steps.begin(), instruction.steps.end(),
                    [](const Step& step) { return step.operation == Operation::dot; });
  if (instruction.steps.count > 1) {
    std::string formulas;
    int index = 0;
    for (const Step& step : instruction.steps) {
      ++index;
      formulas += (index == 1 ? " " : "; ") +
                  step_formula(step, index == instruction.steps.count ? "D" : "s" + number(index));
      if (step.operation != Operation::dot)
        formulas +=
            " (" + emulator::conversion_text(step.spec, step.result) + flushes(step.spec) + ")";
    }
    lines.push_back("What runs is a sequence:" + formulas + ".");
    lines.push_back("Each dot works as follows.");
    if (dot.widened) {
      lines.push_back("The operands are first widened, exactly, to " +
                      formats::name_of(*dot.widened) + ".");
    }
  }
  if (dot.spec.terms != 0 && dot.spec.summation != Summation::integer) {
    lines.push_back("The products are taken in blocks of " + number(dot.spec.terms) +
                    ", k ascending; the result of a block, already in " +
                    formats::name_of(dot.result) + ", is the addend of the next.");
  }
  for (const std::string& line : sum_description(dot.spec)) lines.push_back(line);
  for (const std::string& line : result_description(dot.spec, dot.result)) lines.push_back(line);
  return lines;
}

std::string shape_name(const emulator::Shape& shape) {
  const auto size = [](int x, const char* open) { return x == 0 ? std::string(open) : number(x); };
  return "m" + size(shape.m, "M") + "n" + size(shape.n, "N") + "k" + number(shape.k);
}

std::string toolkit_text(const emulator::Toolkit& toolkit) {
  using emulator::version_text;
  std::string text;
  if (toolkit.from != 0) text += "from ptxas " + version_text(toolkit.from);
  if (toolkit.until != 0)
    text += (text.empty() ? "" : ", ") + std::string("before ptxas ") + version_text(toolkit.until);
  return text;
}

std::string sparsity_text(const emulator::Sparsity& sparsity) {
  if (sparsity.group_elements == 0) return "";
  const int stored = sparsity.stored_per_group / sparsity.chunk;
  const int places = sparsity.group_elements / sparsity.chunk;
  const std::string noun = sparsity.chunk == 1 ? "elements" : "pairs";
  return number(stored) + " of every " + number(places) + " " + noun + " of A";
}

std::string scale_text(const MatrixInstruction& instruction) {
  if (instruction.scale.count == 0) return "";
  return formats::name_of(instruction.scale.format) + ", one per " +
         number(instruction.shape.k / instruction.scale.count) + " of K";
}

const Columns<MatrixInstruction>& instruction_columns() {
  using I = MatrixInstruction;
  const auto format = [](const char* key, Format I::*operand) {
    return Column<I>{key, "", Side::none,
                     [operand](const I& i) { return formats::name_of(i.*operand); }};
  };
  const auto pair = [](const char* head, Format I::*first, Format I::*second) {
    return Column<I>{"", head, Side::left, {}, [first, second](const I& i) {
                       return formats::name_of(i.*first) + ", " + formats::name_of(i.*second);
                     }};
  };
  static const Columns<I> columns = {
      {"name", "", Side::none, [](const I& i) { return std::string_view(i.name); }},
      {"arch", "", Side::none, [](const I& i) { return i.arch; }},
      {"family", "family", Side::left, [](const I& i) { return formats::word_of(i.family); }},
      {"shape", "shape", Side::left,
       [](const I& i) -> nlohmann::ordered_json {
         return {{"m", i.shape.m}, {"n", i.shape.n}, {"k", i.shape.k}};
       },
       [](const I& i) { return shape_name(i.shape); }},
      format("a", &I::a),
      format("b", &I::b),
      format("c", &I::c),
      format("d", &I::d),
      pair("A, B", &I::a, &I::b),
      pair("C, D", &I::c, &I::d),
      {"arithmetic", "", Side::none, arithmetic_summary},
      {"description", "", Side::none, arithmetic_description},
      {"sparsity", "sparsity", Side::left, [](const I& i) { return sparsity_text(i.sparsity); }},
      {"scales", "scales", Side::left, scale_text},
      {"toolkit", "toolkit", Side::left, [](const I& i) { return toolkit_text(i.toolkit); }},
      {"basis", "basis", Side::left, [](const I& i) { return formats::word_of(i.evidence.basis); }},
      {"source", "", Side::none, [](const I& i) { return i.evidence.source; }}};
  return columns;
}

}  // namespace guardbit::tools
