#include "emulator/catalogue/accumulator_fields.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <type_traits>

#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

using Values = std::vector<long>;

Values range(long first, long last) {
  Values list(static_cast<std::size_t>(last - first + 1));
  std::iota(list.begin(), list.end(), first);
  return list;
}
Values with(Values list, long value) {
  list.insert(list.begin(), value);
  return list;
}

// ---- Which operation and summation reads what --------------------------------------------------

bool sums_by(const Step& step, std::initializer_list<Summation> list) {
  return step.operation == Operation::dot &&
         std::find(list.begin(), list.end(), step.spec.summation) != list.end();
}

bool always(const MatrixInstruction&, const Step&) { return true; }
bool accumulates(const MatrixInstruction&, const Step& step) {
  return step.operation == Operation::dot;
}
bool adds_integers(const MatrixInstruction&, const Step& step) {
  return sums_by(step, {Summation::integer});
}
bool is_fused_with_scales(const MatrixInstruction& instruction, const Step& step) {
  return instruction.scale.count != 0 && sums_by(step, {Summation::fused});
}
bool aligns(const MatrixInstruction&, const Step& step) {
  return sums_by(step, {Summation::fused, Summation::two_stage, Summation::two_grids});
}
bool has_two_grids(const MatrixInstruction&, const Step& step) {
  return sums_by(step, {Summation::two_grids});
}
bool adds_products_apart(const MatrixInstruction&, const Step& step) {
  return sums_by(step, {Summation::two_stage, Summation::two_grids});
}
bool has_two_stages(const MatrixInstruction&, const Step& step) {
  return sums_by(step, {Summation::two_stage});
}
/// Everything that reads floating numbers and ends in `encode_result`.
bool converts(const MatrixInstruction& instruction, const Step& step) {
  return !adds_integers(instruction, step);
}
bool converts_a_whole_sum(const MatrixInstruction& instruction, const Step& step) {
  const Summation s = step.spec.summation;
  return converts(instruction, step) && s != Summation::fma_chain && s != Summation::pairwise;
}

// ---- Values ------------------------------------------------------------------------------------

/// Exponents that a zero or an overflow may stand for.
constexpr long least_exponent = -4000, greatest_exponent = 4000;

/// The field is part of the structure, which a probe takes from the order of additions.
Values never_tried(const MatrixInstruction&, const Step&) { return {}; }

/// Only operands of one bit are multiplied by anything but a multiplication.
Values products(const MatrixInstruction& instruction, const Step& step) {
  return adds_integers(instruction, step) && formats::bits(instruction.a) == 1 ? range(0, 2)
                                                                               : Values{};
}
Values group_lengths(const MatrixInstruction& instruction, const Step& step) {
  return is_fused_with_scales(instruction, step) ? Values{1, 2, 4, 8, 16, 32} : Values{};
}
/// A sum that is converted once; chains and trees convert after every addition.
bool converts_once(const Step& step) {
  return sums_by(step,
                 {Summation::fused, Summation::exact, Summation::two_stage, Summation::two_grids});
}
Values result_widths(const MatrixInstruction& instruction, const Step& step) {
  const int format = step.result.fraction_bits;
  Values list = converts_once(step) ? range(0, format - 1) : Values{};
  // Wider numbers, of which a narrow result is the upper part.
  for (int wide = format + 1; adds_products_apart(instruction, step) && wide <= 23; ++wide)
    list.push_back(wide);
  return list;
}
Values zero_signs(const MatrixInstruction&, const Step& step) {
  return converts_once(step) ? range(0, 1) : Values{};
}
/// A zero weighs less than every number of the result's format, and not less than matters.
Values zero_exponents(const MatrixInstruction& instruction, const Step& step) {
  if (!aligns(instruction, step)) return {};
  const int least = formats::min_exponent(step.result);
  return range(least - 60, least + 2);
}
Values zero_product_exponents(const MatrixInstruction& instruction, const Step& step) {
  return adds_products_apart(instruction, step) ? with(zero_exponents(instruction, step), -999)
                                                : Values{};
}
Values overflow_exponents(const MatrixInstruction& instruction, const Step& step) {
  const int top = formats::max_exponent(step.result);
  return has_two_stages(instruction, step) ? with(range(top - 3, top + 4), 0) : Values{};
}
template <long First, long Last>
Values of_two_stages(const MatrixInstruction& instruction, const Step& step) {
  return has_two_stages(instruction, step) ? range(First, Last) : Values{};
}
Values total_widths(const MatrixInstruction& instruction, const Step& step) {
  return has_two_stages(instruction, step) ? with(range(16, 60), 0) : Values{};
}
Values addend_cutoffs(const MatrixInstruction& instruction, const Step& step) {
  return has_two_stages(instruction, step) ? with(range(10, 45), 0) : Values{};
}
Values kept_widths(const MatrixInstruction& instruction, const Step& step) {
  return aligns(instruction, step) ? range(1, 46) : Values{};
}
Values addend_kept_widths(const MatrixInstruction& instruction, const Step& step) {
  return has_two_grids(instruction, step) ? range(1, 46) : Values{};
}

/// 0 switches the field off: one step from off is `On`, one step from on includes off.
template <long On>
Values switched(long value, const Step&) {
  if (value == 0) return {On};
  return {0, value - 1, value + 1};
}
Values near_block_lengths(long value, const Step&) {
  if (value == 0) return {1};
  if (value == 1) return {2};
  return {value - 1, value + 1};
}
Values near_group_lengths(long value, const Step&) {
  if (value == 1) return {2};
  return {value / 2, value - 1, value + 1, 2 * value};
}
Values near_result_widths(long value, const Step& step) {
  if (value == 0) return {step.result.fraction_bits - 1};
  return {value - 1, value + 1};
}

Values near_total_widths(long value, const Step&) {
  if (value == 0) return {24};
  return {value - 1, value + 1};
}

// ---- The table ---------------------------------------------------------------------------------

using Read = bool (*)(const MatrixInstruction&, const Step&);
using Candidates = Values (*)(const MatrixInstruction&, const Step&);
using Neighbours = Values (*)(long, const Step&);

template <auto Member>
long get(const AccumulatorSpec& spec) {
  return static_cast<long>(spec.*Member);
}
template <auto Member>
void set(AccumulatorSpec& spec, long value) {
  spec.*Member = static_cast<std::remove_reference_t<decltype(spec.*Member)>>(value);
}
template <auto Member>
const void* address(const AccumulatorSpec& spec) {
  return &(spec.*Member);
}

template <auto Member>
constexpr AccumulatorField number(std::string_view name, FieldConcern concern, long least,
                                  long greatest, Read read, Candidates candidates,
                                  std::string_view meaning, Neighbours neighbours = nullptr) {
  return {name, meaning, concern,  get<Member>, set<Member>, address<Member>,
          {},   least,   greatest, read,        candidates,  neighbours};
}

template <auto Member>
constexpr AccumulatorField choice(std::string_view name, FieldConcern concern, Read read,
                                  Candidates candidates, std::string_view meaning) {
  using Enum = std::remove_reference_t<decltype(AccumulatorSpec{}.*Member)>;
  constexpr auto& words = formats::words_of<Enum>;
  // A model has no random bits.
  constexpr long last = std::is_same_v<Enum, Rounding> ? static_cast<long>(Rounding::to_odd)
                                                       : static_cast<long>(words.size()) - 1;
  return {name,  meaning, concern, get<Member>, set<Member>, address<Member>,
          words, 0,       last,    read,        candidates,  nullptr};
}

using S = AccumulatorSpec;
using enum FieldConcern;

constexpr auto fields = std::to_array<AccumulatorField>({
    choice<&S::summation>("summation", structure, always, never_tried,
                          "how the products and the addend become one number"),
    number<&S::terms>("terms", structure, 0, max_k, accumulates, never_tried,
                      "products accumulated together; longer dot products are chained; 0: all",
                      near_block_lengths),
    choice<&S::product>("product", precision, adds_integers, products,
                        "what one pair of operands contributes"),
    number<&S::exact_group>("exact_group", precision, 1, 256, is_fused_with_scales, group_lengths,
                            "products summed exactly before they are aligned", near_group_lengths),
    number<&S::kept_fraction_bits>("kept_fraction_bits", precision, 0, 46, aligns, kept_widths,
                                   "F: bits kept below the largest exponent E of a block"),
    choice<&S::alignment>("alignment", precision, aligns, nullptr,
                          "how an aligned term is rounded to the bits that are kept"),
    choice<&S::result>("result", precision, converts, nullptr,
                       "how a sum is rounded to its result"),
    number<&S::result_fraction_bits>(
        "result_fraction_bits", precision, 0, 51, converts, result_widths,
        "fraction bits a result is rounded to, if fewer or more than its format has; 0: its own",
        near_result_widths),
    choice<&S::interleave>("interleave", precision, has_two_stages, nullptr,
                           "which products of a two-stage block are fused together"),
    number<&S::sum_kept_fraction_bits>(
        "sum_kept_fraction_bits", precision, 0, 44, has_two_stages, of_two_stages<16, 44>,
        "bits of the product sum kept below the larger of its and the addend's exponent"),
    number<&S::total_kept_fraction_bits>(
        "total_kept_fraction_bits", precision, 0, 60, has_two_stages, total_widths,
        "bits of the total kept below its leading bit before the final rounding; 0: all",
        near_total_widths),
    number<&S::addend_kept_fraction_bits>(
        "addend_kept_fraction_bits", precision, 0, 46, has_two_grids, addend_kept_widths,
        "bits below the addend's exponent at which its grid lies"),
    choice<&S::subtraction>("subtraction", precision, has_two_grids, nullptr,
                            "how a term whose sign is not the addend's is subtracted"),
    number<&S::addend_cutoff>(
        "addend_cutoff", precision, 0, 200, has_two_stages, addend_cutoffs,
        "an addend whose exponent is this much below E counts as zero; 0: never", switched<25>),
    number<&S::min_exponent>("min_exponent", small_numbers, least_exponent, greatest_exponent,
                             aligns, zero_exponents,
                             "e0: the exponent that a zero product and a zero addend contribute"),
    number<&S::zero_product_exponent>("zero_product_exponent", small_numbers, least_exponent,
                                      greatest_exponent, adds_products_apart,
                                      zero_product_exponents,
                                      "the exponent that a zero product contributes"),
    choice<&S::input>("input", small_numbers, converts, nullptr,
                      "what becomes of subnormal operands"),
    choice<&S::output>("output", small_numbers, converts, nullptr,
                       "what becomes of subnormal results"),
    choice<&S::underflowed_sum>("underflowed_sum", small_numbers, converts_a_whole_sum, zero_signs,
                                "the sign of a nonzero sum that the conversion makes zero"),
    choice<&S::nan>("nan", specials, converts, nullptr, "sign and payload of a NaN result"),
    number<&S::product_overflow_exponent>(
        "product_overflow_exponent", specials, least_exponent, greatest_exponent, has_two_stages,
        overflow_exponents, "a product of this exponent or more is an infinity at once; 0: never",
        switched<128>),
    choice<&S::integer_overflow>("integer_overflow", specials, adds_integers, nullptr,
                                 "what an integer sum out of range becomes"),
});

/// Converts to the type of any member.
struct Anything {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor)
};

/// The number of members of an aggregate: of the values that can initialise it.
template <class Aggregate, class... Values>
constexpr std::size_t member_count() {
  if constexpr (requires { Aggregate{Values{}..., Anything{}}; })
    return member_count<Aggregate, Values..., Anything>();
  else
    return sizeof...(Values);
}
static_assert(fields.size() == member_count<AccumulatorSpec>(),
              "a field of AccumulatorSpec is missing from this table");

}  // namespace

std::vector<long> AccumulatorField::values(const MatrixInstruction& instruction,
                                           const Step& step) const {
  if (candidates != nullptr) return candidates(instruction, step);
  return read(instruction, step) ? range(least, greatest) : Values{};
}

std::vector<long> AccumulatorField::neighbours(long value, const Step& step) const {
  if (words.empty())
    return number_neighbours != nullptr ? number_neighbours(value, step)
                                        : Values{value - 1, value + 1};
  Values others = range(0, static_cast<long>(words.size()) - 1);
  std::erase(others, value);
  return others;
}

std::span<const AccumulatorField> accumulator_fields() { return fields; }

const AccumulatorField& accumulator_field(std::string_view name) {
  return *std::find_if(fields.begin(), fields.end(),
                       [&](const AccumulatorField& field) { return field.name == name; });
}

}  // namespace guardbit::emulator
