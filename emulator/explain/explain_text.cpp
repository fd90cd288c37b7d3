#include <algorithm>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/explain/explain.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

std::string rounding_text(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return "rounded to nearest even";
    case Rounding::nearest_away: return "rounded to nearest, ties away from zero";
    case Rounding::toward_zero: return "truncated";
    case Rounding::upward: return "rounded up";
    case Rounding::downward: return "rounded down";
    case Rounding::to_odd: return "rounded to odd";
    case Rounding::stochastic: return "rounded stochastically";
  }
  return "";
}

std::string conversion_text(const AccumulatorSpec& spec, const Format& format) {
  std::string text = rounding_text(spec.result) + " to " + formats::name_of(format);
  if (spec.result_fraction_bits > format.fraction_bits) {
    return rounding_text(spec.result) + " to " + std::to_string(spec.result_fraction_bits) +
           " fraction bits, cut to " + formats::name_of(format);
  }
  if (spec.result_fraction_bits != 0) {
    text += " with " + std::to_string(spec.result_fraction_bits) + " fraction bits";
  }
  return text;
}

namespace {

std::string power_text(int exponent) { return "2^" + std::to_string(exponent); }

std::string source_text(Source source) {
  switch (source) {
    case Source::positive_zero: return "+0";
    case Source::negative_zero: return "-0";
    case Source::c: return "c";
    default: return "step " + std::to_string(static_cast<int>(source) + 1);
  }
}

std::string hex(std::uint64_t x) {
  std::string digits;
  do digits.insert(digits.begin(), "0123456789abcdef"[x & 15U]);
  while ((x >>= 4U) != 0);
  return "0x" + digits;
}

/// Prints the blocks and steps of one explanation.
class Writer {
 public:
  explicit Writer(const Explanation& explanation) : explanation_(explanation) {}

  std::vector<std::string> lines() {
    for (std::size_t step = 0; step < explanation_.steps.size(); ++step) {
      if (explanation_.steps[step].operation != Operation::dot) {
        scalar_step(step);
        continue;
      }
      for (const ExplainedBlock& block : explanation_.blocks) {
        if (block.step == step) block_lines(block);
      }
    }
    return std::move(lines_);
  }

 private:
  const Step& step_of(std::size_t index) const {
    return explanation_.instruction.steps.list[index];
  }

  std::string step_label(std::size_t index) const {
    return explanation_.steps.size() == 1 ? "" : "step " + std::to_string(index + 1) + ", ";
  }

  void scalar_step(std::size_t index) {
    const Step& step = step_of(index);
    std::string what = source_text(step.addend);
    if (step.operation == Operation::add) what += " + " + source_text(step.other);
    lines_.push_back("step " + std::to_string(index + 1) + ": " + what + ", " +
                     conversion_text(step.spec, step.result) + ": " +
                     code_text(step.result, explanation_.steps[index].result.code));
  }

  std::string factors_text(const ExplainedTerm& term) const {
    if (term.pairs.size() != 1) {
      return "k=" + std::to_string(explanation_.pairs[term.pairs.front()].k) + ".." +
             std::to_string(explanation_.pairs[term.pairs.back()].k) +
             "  exact sum of the group, scaled";
    }
    const FactorPair& pair = explanation_.pairs[term.pairs.front()];
    return "k=" + std::to_string(pair.k) + "  " + code_text(explanation_.instruction.a, pair.a) +
           " * " + code_text(explanation_.instruction.b, pair.b);
  }

  /// "exponent 3, significand 0x1400 / 2^20, cut 2^-30 ..."
  std::string alignment_text(const ExplainedTerm& term, const Alignment& alignment) const {
    std::string text = "exponent " + std::to_string(term.exponent) + ", significand " +
                       hex(term.significand) + "/" + power_text(term.fraction_bits) + ", ";
    if (term.cut.digits == "0") return text + "nothing cut";
    return text + "cut " + number_text(term.cut) + " (" +
           number_text(formats::scaled(term.cut, -alignment.grid)) + " grid steps)";
  }

  void term_lines(const ExplainedTerm& term, const ExplainedBlock& block) {
    lines_.push_back("  " + factors_text(term) + " = " + number_text(term.value));
    if (block.alignment) lines_.push_back("    " + alignment_text(term, *block.alignment));
  }

  void head_line(const ExplainedBlock& block) {
    const AccumulatorSpec& spec = step_of(block.step).spec;
    std::string line = step_label(block.step) + std::to_string(block.products) +
                       " products, k=" + std::to_string(block.first_k) + ".." +
                       std::to_string(block.last_k);
    if (block.alignment && spec.summation == Summation::two_grids) {
      line += ": grid " + power_text(block.alignment->grid) +
              ", the coarser of the products' (F = " + std::to_string(spec.kept_fraction_bits) +
              ") and the addend's (F = " + std::to_string(spec.addend_kept_fraction_bits) + "), " +
              std::to_string(block.terms_cut) + (block.terms_cut == 1 ? " term cut" : " terms cut");
    } else if (block.alignment) {
      line += ": E = " + std::to_string(block.alignment->exponent) + ", grid " +
              power_text(block.alignment->grid) +
              " (F = " + std::to_string(spec.kept_fraction_bits) + "), " +
              std::to_string(block.terms_cut) + (block.terms_cut == 1 ? " term cut" : " terms cut");
    } else {
      line += ", " + std::string(summation_text(spec.summation));
    }
    lines_.push_back(line);
  }

  static std::string_view summation_text(Summation summation) {
    switch (summation) {
      case Summation::fused: return "aligned and added";
      case Summation::exact: return "added exactly, rounded once";
      case Summation::fma_chain: return "one fused multiply-add after the other";
      case Summation::pairwise: return "products and sums rounded in pairs";
      case Summation::two_stage:
        return "products aligned among themselves, then added to the addend";
      case Summation::two_grids: return "aligned to the coarser of two grids";
      case Summation::integer: return "added exactly";
    }
    return "";
  }

  void block_lines(const ExplainedBlock& block) {
    head_line(block);
    const Register& addend = block.addend_register;
    lines_.push_back("  addend  " + code_text(addend.format, addend.code));
    if (block.special) {
      special_line(block);
    } else {
      if (block.alignment)
        lines_.push_back("    " + alignment_text(block.addend, *block.alignment));
      for (const ExplainedTerm& term : block.largest) term_lines(term, block);
      sum_lines(block);
    }
    lines_.push_back("  result  " + code_text(block.result.format, block.result.code) + ", " +
                     result_text(block));
  }

  void special_line(const ExplainedBlock& block) {
    if (!block.special_pair) {
      lines_.push_back("  an infinity or NaN as addend or scale decides");
      return;
    }
    const FactorPair& pair = explanation_.pairs[*block.special_pair];
    lines_.push_back("  the product at k=" + std::to_string(pair.k) +
                     " is an infinity or NaN: " + code_text(explanation_.instruction.a, pair.a) +
                     " * " + code_text(explanation_.instruction.b, pair.b));
  }

  void sum_lines(const ExplainedBlock& block) {
    lines_.push_back("  exact sum  " + number_text(block.exact_sum));
    if (block.kept_sum) lines_.push_back("  kept sum   " + number_text(*block.kept_sum));
    if (!block.worst || block.worst->error.digits == "0") return;
    const ChainStep& worst = *block.worst;
    lines_.push_back(
        "  largest rounding error at k=" + std::to_string(explanation_.pairs[worst.pair].k) + ": " +
        number_text(worst.exact) + " to " + code_text(block.result.format, worst.rounded) +
        ", error " + number_text(worst.error));
  }

  std::string result_text(const ExplainedBlock& block) const {
    const AccumulatorSpec& spec = step_of(block.step).spec;
    if (spec.summation == Summation::integer) {
      return spec.integer_overflow == IntegerOverflow::wrap ? "wrapped modulo 2^32"
                                                            : "saturated once";
    }
    return conversion_text(spec, block.result.format);
  }

  const Explanation& explanation_;
  std::vector<std::string> lines_;
};

bool is_zero(const Format& format, std::uint64_t code) {
  return formats::decode(format, code).kind == Kind::zero;
}

/// True if the pair's product is not zero. Under XOR, 0 and 1 give 1.
bool contributes(const Explanation& explanation, const FactorPair& pair) {
  const bool a_zero = is_zero(explanation.instruction.a, pair.a);
  const bool b_zero = is_zero(explanation.instruction.b, pair.b);
  if (explanation.instruction.steps.list[0].spec.product == Product::bit_xor)
    return a_zero != b_zero;
  if (a_zero && b_zero) return false;
  const auto special = [](const Format& f, std::uint64_t code) {
    return formats::decode(f, code).kind >= Kind::infinity;
  };
  return (!a_zero && !b_zero) || special(explanation.instruction.a, pair.a) ||
         special(explanation.instruction.b, pair.b);
}

}  // namespace

std::string value_text(const Format& format, std::uint64_t code) {
  constexpr std::size_t most = 12;
  const Value value = formats::decode(format, code);
  const bool exactly =
      value.kind == Kind::finite && formats::exact_decimal(value).digits.size() <= most;
  return exactly ? formats::exact_text(value) : formats::shortest_text(format, code);
}

std::string code_text(const Format& format, std::uint64_t code) {
  return formats::hex_text(format, code) + " (" + value_text(format, code) + ")";
}

std::string number_text(const Decimal& x) {
  constexpr std::size_t most = 20;
  return formats::to_string(x, most) + (x.digits.size() > most ? "..." : "");
}

std::vector<std::string> operand_lines(const Explanation& explanation, std::size_t limit) {
  const MatrixInstruction& instruction = explanation.instruction;
  std::vector<std::string> lines = {"c  " + code_text(instruction.c, explanation.c)};
  for (std::size_t i = 0; i < explanation.a_scale.size(); ++i) {
    lines.push_back("scale " + std::to_string(i) + "  a " +
                    code_text(instruction.scale.format, explanation.a_scale[i]) + "  b " +
                    code_text(instruction.scale.format, explanation.b_scale[i]));
  }
  std::size_t shown = 0, left = 0, zeros = 0;
  for (const FactorPair& pair : explanation.pairs) {
    if (!contributes(explanation, pair)) {
      ++zeros;
    } else if (shown == limit) {
      ++left;
    } else {
      ++shown;
      lines.push_back("k=" + std::to_string(pair.k) + "  a " + code_text(instruction.a, pair.a) +
                      "  b " + code_text(instruction.b, pair.b));
    }
  }
  if (left != 0) lines.push_back("and " + std::to_string(left) + " more pairs");
  if (zeros != 0) lines.push_back(std::to_string(zeros) + " pairs contribute nothing");
  return lines;
}

std::vector<std::string> explanation_lines(const Explanation& explanation) {
  return Writer(explanation).lines();
}

}  // namespace guardbit::emulator
