#include <algorithm>
#include <stdexcept>

#include "tests/mutation/mutants.hpp"

namespace guardbit::tests {

namespace {

using emulator::AccumulatorSpec;
using emulator::Operation;
using emulator::Step;
using emulator::Summation;

// The names are written as switches without a default: a new enumerator is a warning until it has
// one, and then takes part.

constexpr std::string_view name(Summation x) {
  switch (x) {
    case Summation::fused: return "fused";
    case Summation::exact: return "exact";
    case Summation::fma_chain: return "fma_chain";
    case Summation::pairwise: return "pairwise";
    case Summation::two_stage: return "two_stage";
    case Summation::integer: return "integer";
  }
  return "";
}

constexpr std::string_view name(emulator::Product x) {
  switch (x) {
    case emulator::Product::multiply: return "multiply";
    case emulator::Product::bit_and: return "bit_and";
    case emulator::Product::bit_xor: return "bit_xor";
  }
  return "";
}

constexpr std::string_view name(formats::Rounding x) {
  switch (x) {
    case formats::Rounding::nearest_even: return "nearest_even";
    case formats::Rounding::nearest_away: return "nearest_away";
    case formats::Rounding::toward_zero: return "toward_zero";
    case formats::Rounding::upward: return "upward";
    case formats::Rounding::downward: return "downward";
    case formats::Rounding::to_odd: return "to_odd";
    case formats::Rounding::stochastic: return "stochastic";
  }
  return "";
}

constexpr std::string_view name(emulator::Subnormals x) {
  switch (x) {
    case emulator::Subnormals::keep: return "keep";
    case emulator::Subnormals::flush: return "flush";
    case emulator::Subnormals::daz_ftz: return "daz_ftz";
  }
  return "";
}

constexpr std::string_view name(emulator::NanPolicy x) {
  switch (x) {
    case emulator::NanPolicy::all_ones: return "all_ones";
    case emulator::NanPolicy::operand_bca: return "operand_bca";
    case emulator::NanPolicy::operand_abc: return "operand_abc";
    case emulator::NanPolicy::unspecified: return "unspecified";
  }
  return "";
}

constexpr std::string_view name(emulator::ZeroSign x) {
  switch (x) {
    case emulator::ZeroSign::positive: return "positive";
    case emulator::ZeroSign::of_sum: return "of_sum";
  }
  return "";
}

constexpr std::string_view name(emulator::IntegerOverflow x) {
  switch (x) {
    case emulator::IntegerOverflow::wrap: return "wrap";
    case emulator::IntegerOverflow::saturate: return "saturate";
  }
  return "";
}

constexpr std::string_view name(emulator::Interleave x) {
  switch (x) {
    case emulator::Interleave::none: return "none";
    case emulator::Interleave::even_odd: return "even_odd";
  }
  return "";
}

// ---- Which operation and summation reads what --------------------------------------------------

bool always(const MatrixInstruction&, const Step&) { return true; }
bool accumulates(const MatrixInstruction&, const Step& step) {
  return step.operation == Operation::dot;
}
bool has_summation(const Step& step, std::initializer_list<Summation> list) {
  return step.operation == Operation::dot &&
         std::find(list.begin(), list.end(), step.spec.summation) != list.end();
}
bool integer(const MatrixInstruction&, const Step& step) {
  return has_summation(step, {Summation::integer});
}
bool fused_with_scales(const MatrixInstruction& row, const Step& step) {
  return row.scale.count != 0 && has_summation(step, {Summation::fused});
}
bool aligning(const MatrixInstruction&, const Step& step) {
  return has_summation(step, {Summation::fused, Summation::two_stage});
}
bool two_stage(const MatrixInstruction&, const Step& step) {
  return has_summation(step, {Summation::two_stage});
}
/// Everything that reads floating numbers and ends in `encode_result`. Only such operands can be
/// subnormal.
bool converting(const MatrixInstruction& row, const Step& step) { return !integer(row, step); }
bool unchained(const MatrixInstruction& row, const Step& step) {
  const Summation s = step.spec.summation;
  return converting(row, step) && s != Summation::fma_chain && s != Summation::pairwise;
}

// ---- Kinds of fields ---------------------------------------------------------------------------

template <auto Member>
long get(const AccumulatorSpec& spec) {
  return static_cast<long>(spec.*Member);
}
template <auto Member>
void set(AccumulatorSpec& spec, long value) {
  spec.*Member = static_cast<std::remove_reference_t<decltype(spec.*Member)>>(value);
}

using Read = bool (*)(const MatrixInstruction&, const Step&);

/// Every other enumerator is one step away.
template <auto Member>
SpecField choice(std::string_view field, Read read) {
  using Enum = std::remove_reference_t<decltype(AccumulatorSpec{}.*Member)>;
  return {field,
          get<Member>,
          set<Member>,
          [](long value) { return std::string(name(static_cast<Enum>(value))); },
          [](long value, const Step&) {
            std::vector<long> others;
            for (long x = 0; !name(static_cast<Enum>(x)).empty(); ++x) {
              if (x != value) others.push_back(x);
            }
            return others;
          },
          read};
}

std::string decimal(long value) { return std::to_string(value); }

std::vector<long> up_and_down(long value, const Step&) { return {value - 1, value + 1}; }

template <auto Member>
SpecField number(std::string_view field, Read read,
                 std::vector<long> (*neighbours)(long, const Step&) = up_and_down) {
  return {field, get<Member>, set<Member>, decimal, neighbours, read};
}

/// Fields that 0 switches off: one step from off is `On`, one step from on includes off.
template <long On>
std::vector<long> switched(long value, const Step&) {
  if (value == 0) return {On};
  return {0, value - 1, value + 1};
}

std::vector<long> block_lengths(long value, const Step&) {
  if (value == 0) return {1};
  if (value == 1) return {2};
  return {value - 1, value + 1};
}

std::vector<long> group_lengths(long value, const Step&) {
  if (value == 1) return {2};
  return {value / 2, value - 1, value + 1, 2 * value};
}

std::vector<long> result_fractions(long value, const Step& step) {
  if (value == 0) return {step.result.fraction_bits - 1};
  return {value - 1, value + 1};
}

/// Fails to compile when AccumulatorSpec has another number of fields.
constexpr std::size_t field_count(const AccumulatorSpec& spec) {
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15,
                                f16, f17, f18, f19, f20] = spec;
  return 20;
}

}  // namespace

const std::vector<SpecField>& spec_fields() {
  using S = AccumulatorSpec;
  static const std::vector<SpecField> fields = {
      choice<&S::summation>("summation", always),
      choice<&S::product>("product", integer),
      number<&S::terms>("terms", accumulates, block_lengths),
      number<&S::exact_group>("exact_group", fused_with_scales, group_lengths),
      number<&S::kept_fraction_bits>("kept_fraction_bits", aligning),
      choice<&S::alignment>("alignment", aligning),
      number<&S::min_exponent>("min_exponent", aligning),
      number<&S::result_fraction_bits>("result_fraction_bits", converting, result_fractions),
      choice<&S::result>("result", converting),
      choice<&S::input>("input", converting),
      choice<&S::output>("output", converting),
      choice<&S::nan>("nan", converting),
      choice<&S::underflowed_sum>("underflowed_sum", unchained),
      choice<&S::integer_overflow>("integer_overflow", integer),
      choice<&S::interleave>("interleave", two_stage),
      number<&S::zero_product_exponent>("zero_product_exponent", two_stage),
      number<&S::sum_kept_fraction_bits>("sum_kept_fraction_bits", two_stage),
      number<&S::total_kept_fraction_bits>("total_kept_fraction_bits", two_stage),
      number<&S::addend_cutoff>("addend_cutoff", two_stage, switched<25>),
      number<&S::product_overflow_exponent>("product_overflow_exponent", two_stage, switched<128>),
  };
  if (fields.size() != field_count({})) {
    throw std::logic_error("a field of AccumulatorSpec is not in the table of the mutation test");
  }
  return fields;
}

const SpecField& spec_field(std::string_view field) {
  return *std::find_if(spec_fields().begin(), spec_fields().end(),
                       [&](const SpecField& f) { return f.name == field; });
}

std::string_view summation_name(Summation summation) { return name(summation); }

}  // namespace guardbit::tests
