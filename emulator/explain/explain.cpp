#include "emulator/explain/explain.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator {

namespace {

constexpr std::size_t shown_terms = 3;

Decimal negated(Decimal x) {
  x.negative = !x.negative;
  return x;
}

Decimal sum(const Decimal& x, const Decimal& y) { return formats::difference(x, negated(y)); }

bool is_zero(const Decimal& x) { return x.digits == "0"; }

/// |x| < |y|
bool smaller(const Decimal& x, const Decimal& y) {
  if (is_zero(x) || is_zero(y)) return is_zero(x) && !is_zero(y);
  const auto top = [](const Decimal& d) { return static_cast<int>(d.digits.size()) + d.exponent; };
  return top(x) != top(y) ? top(x) < top(y) : x.digits < y.digits;
}

Decimal dyadic(bool negative, std::uint64_t significand, int exponent) {
  if (significand == 0) return {};
  return formats::exact_decimal({Kind::finite, negative, exponent, significand});
}

/// The value of a finite sum whose bits are all in the significand.
Decimal decimal_of(const Unrounded& x) {
  const Decimal high =
      dyadic(x.negative, static_cast<std::uint64_t>(x.significand >> 64), x.exponent + 64);
  return sum(high, dyadic(x.negative, static_cast<std::uint64_t>(x.significand), x.exponent));
}

Decimal decimal_of(const Value& x) {
  return x.kind == Kind::finite ? formats::exact_decimal(x) : Decimal{};
}

bool is_special(Kind kind) { return kind == Kind::infinity || kind == Kind::nan; }

/// Called by the model for each block in turn: computes the block as the model does and adds an
/// ExplainedBlock to the explanation.
class Observer {
 public:
  explicit Observer(Explanation& explanation) : explanation_(explanation) {}

  std::uint64_t operator()(std::size_t step, const Block& block) {
    if (explanation_.blocks.empty() || explanation_.blocks.back().step != step) begin_step(step);
    ExplainedBlock report;
    report.step = step;
    report.products = block.a.size();
    indices_.assign(selected_.begin() + next_,
                    selected_.begin() + next_ + static_cast<std::ptrdiff_t>(block.a.size()));
    next_ += static_cast<std::ptrdiff_t>(block.a.size());
    const auto [first, last] = std::minmax_element(
        indices_.begin(), indices_.end(),
        [this](auto x, auto y) { return explanation_.pairs[x].k < explanation_.pairs[y].k; });
    report.first_k = explanation_.pairs[*first].k;
    report.last_k = explanation_.pairs[*last].k;
    report.result = {accumulate_block(block), block.result_format};
    report.addend.value = decimal_of(block.addend);
    report.addend_register = {formats::encode(block.addend_format, block.addend),
                              block.addend_format};
    find_specials(block, report);
    if (!report.special) describe(block, report);
    explanation_.blocks.push_back(report);
    return report.result.code;
  }

 private:
  void begin_step(std::size_t step) {
    selected_.clear();
    next_ = 0;
    const Selection& selection = explanation_.instruction.steps.list[step].selection;
    for (std::size_t i = 0; i < explanation_.pairs.size(); ++i) {
      if (selection.contains(static_cast<int>(i))) selected_.push_back(i);
    }
  }

  void find_specials(const Block& block, ExplainedBlock& report) const {
    if (block.spec.summation == Summation::integer) return;
    report.special = special_sum(block).any();
    for (std::size_t i = 0; i < block.a.size() && !report.special_pair; ++i) {
      if (is_special(formats::multiply(block.a[i], block.b[i]).kind))
        report.special_pair = indices_[i];
    }
  }

  void describe(const Block& block, ExplainedBlock& report) const {
    std::vector<ExplainedTerm> products;
    if (block.spec.summation == Summation::fused) {
      products = fused_terms(block, report);
    } else if (block.spec.summation == Summation::two_grids) {
      products = terms_on_two_grids(block, report);
    } else {
      products = plain_terms(block);
    }
    report.exact_sum = report.addend.value;
    for (const ExplainedTerm& t : products) report.exact_sum = sum(report.exact_sum, t.value);
    if (block.spec.summation == Summation::fma_chain) report.worst = worst_step(block);
    const std::size_t shown = std::min(shown_terms, products.size());
    std::stable_sort(
        products.begin(), products.end(),
        [](const ExplainedTerm& x, const ExplainedTerm& y) { return smaller(y.value, x.value); });
    std::copy_if(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(shown),
                 std::back_inserter(report.largest),
                 [](const ExplainedTerm& t) { return !is_zero(t.value); });
  }

  std::vector<ExplainedTerm> fused_terms(const Block& block, ExplainedBlock& report) const {
    const Terms terms = block_terms(block);
    const int exponent = largest_exponent(terms.view());
    const int grid = exponent - block.spec.kept_fraction_bits;
    report.alignment = {exponent, grid};
    report.kept_sum = Decimal{};
    std::vector<ExplainedTerm> list;
    const auto group = static_cast<std::size_t>(block.spec.exact_group);
    for (std::size_t i = 0; i < terms.count; ++i) {
      const Term& t = terms.list[i];
      ExplainedTerm term;
      const bool is_addend = i + 1 == terms.count;
      const std::size_t end = is_addend ? 0 : std::min((i + 1) * group, block.a.size());
      for (std::size_t k = i * group; k < end; ++k) term.pairs.push_back(indices_[k]);
      term.value = dyadic(t.negative, t.significand, t.exponent - t.fraction_bits);
      term.exponent = t.exponent;
      term.significand = t.significand;
      term.fraction_bits = t.fraction_bits;
      const std::int64_t kept = align(t, grid, block.spec.alignment);
      const Decimal kept_value = decimal_of(fixed_point(kept, grid));
      term.cut = formats::difference(term.value, kept_value);
      report.kept_sum = sum(*report.kept_sum, kept_value);
      if (!is_zero(term.cut)) ++report.terms_cut;
      if (is_addend) {
        report.addend = term;
      } else {
        list.push_back(term);
      }
    }
    return list;
  }

  std::vector<ExplainedTerm> terms_on_two_grids(const Block& block, ExplainedBlock& report) const {
    const TwoGrids grids = two_grids_of(block);
    report.alignment = {grids.largest, grids.last_place};
    report.kept_sum = Decimal{};
    const auto explained = [&](const Term& t) {
      ExplainedTerm term;
      term.value = dyadic(t.negative, t.significand, t.exponent - t.fraction_bits);
      term.exponent = t.exponent;
      term.significand = t.significand;
      term.fraction_bits = t.fraction_bits;
      const std::int64_t kept = units_on_grid(block, t, grids.last_place);
      const Decimal kept_value = decimal_of(fixed_point(kept, grids.last_place));
      term.cut = formats::difference(term.value, kept_value);
      report.kept_sum = sum(*report.kept_sum, kept_value);
      if (!is_zero(term.cut)) ++report.terms_cut;
      return term;
    };
    std::vector<ExplainedTerm> list;
    for (std::size_t i = 0; i < block.a.size(); ++i) {
      list.push_back(explained(lone_product(block, i)));
      list.back().pairs = {indices_[i]};
    }
    report.addend = explained(addend_term(block.addend, block.addend_format, block.spec));
    return list;
  }

  std::vector<ExplainedTerm> plain_terms(const Block& block) const {
    std::vector<ExplainedTerm> list;
    for (std::size_t i = 0; i < block.a.size(); ++i) {
      ExplainedTerm term;
      term.pairs = {indices_[i]};
      if (block.spec.summation == Summation::integer) {
        const std::int64_t product = integer_product(block.spec.product, block.a[i], block.b[i]);
        term.value = decimal_of(fixed_point(product, 0));
      } else {
        term.value = decimal_of(formats::multiply(block.a[i], block.b[i]));
      }
      list.push_back(std::move(term));
    }
    return list;
  }

  /// The fused multiply-add with the largest rounding error, or the first with an infinity or NaN.
  std::optional<ChainStep> worst_step(const Block& block) const {
    std::optional<ChainStep> worst;
    Value total = block.addend;
    for (std::size_t i = 0; i < block.a.size(); ++i) {
      const Block one = one_product(block, i, total);
      const std::uint64_t code = accumulate_block(one);
      const Decimal exact =
          sum(decimal_of(formats::multiply(block.a[i], block.b[i])), decimal_of(total));
      total = formats::decode(block.result_format, code);
      if (is_special(total.kind)) return ChainStep{indices_[i], exact, code, {}};
      const Decimal error = formats::difference(decimal_of(total), exact);
      if (!worst || smaller(worst->error, error))
        worst = ChainStep{indices_[i], exact, code, error};
    }
    return worst;
  }

  Explanation& explanation_;
  /// pairs of the current step
  std::vector<std::size_t> selected_;
  /// pairs of the current block
  std::vector<std::size_t> indices_;
  std::ptrdiff_t next_ = 0;
};

}  // namespace

Explanation explain(const MatrixInstruction& instruction, const MatrixBatch& batch,
                    std::int64_t execution, int m, int n) {
  const GatheredOperands gathered = gather(instruction, batch, execution, m, n);
  const DotOperands operands = gathered.view();
  Explanation explanation;
  explanation.instruction = instruction;
  explanation.c = operands.c;
  explanation.a_scale.assign(operands.a_scale.begin(), operands.a_scale.end());
  explanation.b_scale.assign(operands.b_scale.begin(), operands.b_scale.end());
  for (std::size_t i = 0; i < operands.a.size(); ++i) {
    const int s = static_cast<int>(i);
    const std::int64_t place =
        (execution * batch.shape.m + m) * std::int64_t{stored_k(instruction, batch.shape.k)} + s;
    const int e = instruction.sparsity.group_elements != 0 ? static_cast<int>(batch.e[place]) : 0;
    explanation.pairs.push_back(
        {dense_k(instruction.sparsity, s, e), operands.a[i], operands.b[i]});
  }
  explanation.result = run_steps(instruction, operands, Observer(explanation));
  // An instruction cut short after a step ends in that step's result.
  for (int i = 0; i < instruction.steps.count; ++i) {
    MatrixInstruction prefix = instruction;
    prefix.steps.count = i + 1;
    const Step& step = instruction.steps.list[static_cast<std::size_t>(i)];
    explanation.steps.push_back({step.operation, {dot(prefix, operands), step.result}});
  }
  return explanation;
}

}  // namespace guardbit::emulator
