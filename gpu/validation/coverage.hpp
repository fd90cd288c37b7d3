#pragma once

// Coverage of the model's rules: which events (a bit cut, a tie, an overflow, ...) happened while
// an output was computed. Inputs that never meet a rule prove nothing about it, so a validation
// counts these events beside the results. `possible_events` gives those that an instruction can
// show at all.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/model/dot.hpp"

namespace guardbit::emulator {

enum class Event : std::uint8_t {
  term_cut,
  term_lost,
  sum_carried,
  sum_cancelled,
  zero_set_grid,
  rounded,
  tie,
  rounded_up,
  subnormal,
  zero_of_zeros,
  zero_by_cancellation,
  zero_by_alignment,
  zero_by_underflow,
  infinity_from_overflow,
  infinity_from_operand,
  largest_instead_of_infinity,
  nan_from_operand,
  nan_from_infinity_times_zero,
  nan_from_opposite_infinities,
  integer_above,
  integer_below,
};

struct EventEntry {
  Event event;
  std::string_view name;
  std::string_view what;
};

/// Every event, in the order of the enumeration.
inline constexpr std::array events = {
    EventEntry{Event::term_cut, "term_cut", "alignment cut bits off a term"},
    EventEntry{Event::term_lost, "term_lost", "alignment lost a whole term"},
    EventEntry{Event::sum_carried, "sum_carried", "the sum reached four times 2^E"},
    EventEntry{Event::sum_cancelled, "sum_cancelled",
               "the sum's leading bit is eight or more below the largest term's"},
    EventEntry{Event::zero_set_grid, "zero_set_grid",
               "a zero's exponent set the grid of terms that are not zero"},
    EventEntry{Event::rounded, "rounded", "the final conversion lost bits"},
    EventEntry{Event::tie, "tie", "it lost exactly half a unit, rounding to nearest"},
    EventEntry{Event::rounded_up, "rounded_up", "it went to the larger magnitude"},
    EventEntry{Event::subnormal, "subnormal", "a subnormal result"},
    EventEntry{Event::zero_of_zeros, "zero_of_zeros", "zero: nothing but zeros was added"},
    EventEntry{Event::zero_by_cancellation, "zero_by_cancellation",
               "zero: terms cancel, none was cut"},
    EventEntry{Event::zero_by_alignment, "zero_by_alignment",
               "zero: what alignment kept of the terms cancels, or is nothing"},
    EventEntry{Event::zero_by_underflow, "zero_by_underflow",
               "zero: the final conversion lost the sum"},
    EventEntry{Event::infinity_from_overflow, "infinity_from_overflow", "infinity by overflow"},
    EventEntry{Event::infinity_from_operand, "infinity_from_operand", "infinity of an operand"},
    EventEntry{Event::largest_instead_of_infinity, "largest_instead_of_infinity",
               "overflow that the rounding stops at the largest finite number"},
    EventEntry{Event::nan_from_operand, "nan_from_operand", "NaN of an operand"},
    EventEntry{Event::nan_from_infinity_times_zero, "nan_from_infinity_times_zero",
               "NaN of infinity times zero"},
    EventEntry{Event::nan_from_opposite_infinities, "nan_from_opposite_infinities",
               "NaN of infinities of both signs"},
    EventEntry{Event::integer_above, "integer_above",
               "the total lies above the range and wraps or saturates"},
    EventEntry{Event::integer_below, "integer_below", "the total lies below the range"},
};
inline constexpr std::size_t event_count = std::tuple_size_v<decltype(events)>;

/// Events of one output, each once.
struct EventSet {
  std::uint32_t bits = 0;

  constexpr void include(Event e) { bits |= std::uint32_t{1} << static_cast<unsigned>(e); }
  constexpr void include(Event e, bool happened) {
    if (happened) include(e);
  }
  constexpr void include(EventSet other) { bits |= other.bits; }
  constexpr bool contains(Event e) const { return (bits >> static_cast<unsigned>(e) & 1U) != 0; }
  friend constexpr bool operator==(const EventSet&, const EventSet&) = default;
};

/// The number of outputs in which each event happened.
struct Coverage {
  std::uint64_t outputs = 0;
  std::array<std::uint64_t, event_count> counts{};

  constexpr void add(EventSet set) {
    ++outputs;
    for (std::size_t i = 0; i < event_count; ++i) counts[i] += set.bits >> i & 1U;
  }
  constexpr std::uint64_t of(Event e) const { return counts[static_cast<std::size_t>(e)]; }
  constexpr Coverage& operator+=(const Coverage& other) {
    outputs += other.outputs;
    for (std::size_t i = 0; i < event_count; ++i) counts[i] += other.counts[i];
    return *this;
  }
};

/// A sum whose leading bit lies this far below its largest term has cancelled.
inline constexpr int cancelled_bits = 8;

/// The events of one rounding of a finite nonzero number to `code`.
constexpr EventSet conversion_events(const AccumulatorSpec& spec, const Format& format,
                                     const Unrounded& exact, std::uint64_t code) {
  EventSet set;
  const std::uint64_t magnitude = code & formats::magnitude_mask(format);
  if (formats::has_infinity(format) && magnitude == formats::infinity_code(format)) {
    set.include(Event::infinity_from_overflow);
    return set;
  }
  const int kept =
      spec.result_fraction_bits != 0 ? spec.result_fraction_bits : format.fraction_bits;
  const int top = exact.exponent + formats::leading_bit(exact.significand);
  if (top > formats::max_exponent(format)) {
    set.include(Event::largest_instead_of_infinity);
    return set;
  }
  const int lowest = formats::min_exponent(format);
  const int lowest_bit = (top < lowest ? lowest : top) - kept;
  const formats::Lost lost =
      formats::lost_by_shift(exact.significand, lowest_bit - exact.exponent, exact.sticky);
  const bool nearest =
      spec.result == Rounding::nearest_even || spec.result == Rounding::nearest_away;
  AccumulatorSpec truncating = spec;
  truncating.result = Rounding::toward_zero;
  const std::uint64_t truncated =
      encode_result(truncating, format, exact) & formats::magnitude_mask(format);
  set.include(Event::rounded, lost != formats::Lost::nothing);
  set.include(Event::tie, nearest && lost == formats::Lost::half);
  set.include(Event::rounded_up, magnitude > truncated);
  set.include(Event::zero_by_underflow, magnitude == 0);
  set.include(Event::subnormal, magnitude != 0 && magnitude < formats::min_normal_code(format));
  return set;
}

/// The events of infinities and NaNs among the products and the addend.
constexpr EventSet special_events(const Block& block) {
  EventSet set;
  bool nan_operand = block.addend.kind == Kind::nan;
  bool invalid_product = false;
  SpecialSum infinities;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const bool nan = block.a[i].kind == Kind::nan || block.b[i].kind == Kind::nan ||
                     (!block.a_scale.empty() &&
                      (block.a_scale[i].kind == Kind::nan || block.b_scale[i].kind == Kind::nan));
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    nan_operand = nan_operand || nan;
    invalid_product = invalid_product || (!nan && product.kind == Kind::nan);
    if (product.kind == Kind::infinity) infinities.include(product);
  }
  if (block.addend.kind == Kind::infinity) infinities.include(formats::exactly(block.addend));
  const bool opposite = infinities.positive_infinity && infinities.negative_infinity;
  set.include(Event::nan_from_operand, nan_operand);
  set.include(Event::nan_from_infinity_times_zero, invalid_product);
  set.include(Event::nan_from_opposite_infinities, opposite);
  set.include(Event::infinity_from_operand,
              infinities.any() && !opposite && !nan_operand && !invalid_product);
  return set;
}

constexpr EventSet fused_events(const Block& block, std::uint64_t code) {
  EventSet set = special_events(block);
  if (set.bits != 0) return set;
  const AccumulatorSpec& spec = block.spec;
  const int largest = largest_exponent(block);
  const int lowest_bit = largest - spec.kept_fraction_bits;
  std::int64_t sum = 0;
  bool any = false, cut = false;
  for_each_term(block, [&](const Term& t) {
    if (t.significand == 0) return;
    any = true;
    const int shift = lowest_bit - (t.exponent - t.fraction_bits);
    const std::int64_t kept = align(t, lowest_bit, spec.alignment);
    sum += kept;
    if (formats::lost_by_shift(t.significand, shift, false) == formats::Lost::nothing) return;
    cut = true;
    set.include(kept == 0 ? Event::term_lost : Event::term_cut);
  });
  set.include(Event::zero_of_zeros, !any);
  set.include(Event::zero_set_grid, any && largest == spec.min_exponent);
  if (sum == 0) {
    set.include(cut ? Event::zero_by_alignment : Event::zero_by_cancellation, any);
    return set;
  }
  const Unrounded exact = fixed_point(sum, lowest_bit);
  const int above = formats::leading_bit(exact.significand) - spec.kept_fraction_bits;
  set.include(Event::sum_carried, above >= 2);
  set.include(Event::sum_cancelled, above <= -cancelled_bits);
  set.include(conversion_events(spec, block.result_format, exact, code));
  return set;
}

constexpr int top_exponent(const Unrounded& x) {
  return x.exponent + formats::leading_bit(x.significand);
}

/// The events of a sum of two finite numbers, not both zero, rounded to `code`.
constexpr EventSet sum_events(const AccumulatorSpec& spec, const Format& format, const Unrounded& x,
                              const Unrounded& y, const Unrounded& exact, std::uint64_t code) {
  EventSet set;
  if (exact.kind == Kind::zero) {
    set.include(Event::zero_by_cancellation);
    return set;
  }
  if (x.kind == Kind::finite && y.kind == Kind::finite) {
    const int largest = top_exponent(x) > top_exponent(y) ? top_exponent(x) : top_exponent(y);
    set.include(Event::sum_cancelled, top_exponent(exact) <= largest - cancelled_bits);
  }
  set.include(conversion_events(spec, format, exact, code));
  return set;
}

/// The events of x + y of any kinds, rounded to `code`.
constexpr EventSet addition_events(const AccumulatorSpec& spec, const Format& format,
                                   const Unrounded& x, const Unrounded& y, std::uint64_t code) {
  EventSet set;
  if (x.kind == Kind::nan || y.kind == Kind::nan) {
    set.include(Event::nan_from_operand);
  } else if (x.kind == Kind::infinity && y.kind == Kind::infinity && x.negative != y.negative) {
    set.include(Event::nan_from_opposite_infinities);
  } else if (x.kind == Kind::infinity || y.kind == Kind::infinity) {
    set.include(Event::infinity_from_operand);
  } else if (x.kind == Kind::zero && y.kind == Kind::zero) {
    set.include(Event::zero_of_zeros);
  } else {
    set = sum_events(spec, format, x, y, formats::add(x, y), code);
  }
  return set;
}

/// The events of all fused multiply-adds of a chain.
constexpr EventSet chain_events(const Block& block) {
  EventSet all;
  Value sum = block.addend;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const Block one = one_product(block, i, sum);
    const std::uint64_t code = fma_chain(one);
    EventSet set = special_events(one);
    if (set.bits == 0) {
      set = addition_events(block.spec, block.result_format,
                            formats::multiply(block.a[i], block.b[i]), formats::exactly(sum), code);
    }
    all.include(set);
    sum = formats::decode(block.result_format, code);
  }
  return all;
}

constexpr EventSet integer_events(const Block& block) {
  std::int64_t total = signed_integer(block.addend);
  for (std::size_t i = 0; i < block.a.size(); ++i)
    total += integer_product(block.spec.product, block.a[i], block.b[i]);
  const Format& f = block.result_format;
  EventSet set;
  set.include(Event::integer_above,
              total > static_cast<std::int64_t>(formats::integer_limit(f, false)));
  set.include(Event::integer_below,
              total < -static_cast<std::int64_t>(formats::integer_limit(f, true)));
  return set;
}

/// The events of a block whose result is `code`. For the summations exact, pairwise and two_stage
/// only infinities, NaNs, zeros and subnormal results are counted.
constexpr EventSet block_events(const Block& block, std::uint64_t code) {
  switch (block.spec.summation) {
    case Summation::fused: return fused_events(block, code);
    case Summation::fma_chain: return chain_events(block);
    case Summation::integer: return integer_events(block);
    default: break;
  }
  EventSet set = special_events(block);
  if (set.bits != 0) return set;
  const std::uint64_t magnitude = code & formats::magnitude_mask(block.result_format);
  const bool infinite = formats::decode(block.result_format, code).kind == Kind::infinity;
  set.include(Event::infinity_from_overflow, infinite);
  set.include(Event::zero_by_cancellation, magnitude == 0);
  set.include(Event::subnormal,
              magnitude != 0 && magnitude < formats::min_normal_code(block.result_format));
  return set;
}

/// `dot` that also gives the events of its blocks, additions and conversions.
template <std::size_t Capacity = max_k>
constexpr std::uint64_t observed_dot(const MatrixInstruction& instruction,
                                     const DotOperands& operands, EventSet& set) {
  Registers registers{};
  const std::uint64_t result =
      run_steps<Capacity>(instruction, operands, [&](std::size_t index, const Block& block) {
        const std::uint64_t code = accumulate_block(block);
        set.include(block_events(block, code));
        registers[index] = {code, block.result_format};
        return code;
      });
  std::size_t index = 0;
  for (const Step& step : instruction.steps) {
    const std::size_t at = index++;
    if (step.operation == Operation::dot) continue;
    const auto source = [&](Source from) {
      return formats::exactly(decode_register(
          step.spec, read_source(from, instruction, operands, registers, step.result)));
    };
    const bool adds = step.operation == Operation::add;
    const Unrounded x = source(step.addend);
    const Unrounded y = adds ? source(step.other) : formats::exactly(formats::zero_value(false));
    const std::uint64_t code = scalar_step(instruction, step, operands, registers);
    registers[at] = {code, step.result};
    set.include(addition_events(step.spec, step.result, x, y, code));
  }
  return result;
}

/// The events that some input of the instruction shows. Derived from the ranges of its formats and
/// its steps; NVIDIA's summations only (nothing for others).
EventSet possible_events(const MatrixInstruction& instruction);

}  // namespace guardbit::emulator
