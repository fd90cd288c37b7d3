#pragma once

#include <array>
#include <random>
#include <span>

#include "formats/arithmetic.hpp"
#include "formats/support/parallel.hpp"
#include "tests/formats/judged_formats.hpp"
#include "tests/formats/mismatches.hpp"
#include "tests/formats/patterns.hpp"
#include "tests/oracle/arithmetic.hpp"

/// One scalar operation by the model and by the judge.
namespace guardbit::formats {

enum class Operation { add, sub, mul, div, sqrt, fma };
inline constexpr std::array two_operands = {Operation::add, Operation::sub, Operation::mul,
                                            Operation::div};
inline constexpr std::array all_operations = {Operation::add, Operation::sub,  Operation::mul,
                                              Operation::div, Operation::sqrt, Operation::fma};
inline constexpr std::array<std::string_view, 6> operation_names = {"add", "sub",  "mul",
                                                                    "div", "sqrt", "fma"};

struct Operand {
  const JudgedFormat& format;
  std::uint64_t code;
};
struct Destination {
  JudgedFormat format;
  JudgedRounding rounding;
  JudgedOverflow overflow = ieee;
  RandomBits random = {};
};

inline Unrounded model_operation(Operation operation, const Value& x, const Value& y,
                                 const Value& z, bool toward_minus) {
  switch (operation) {
    case Operation::add: return add(exactly(x), exactly(y), toward_minus);
    case Operation::sub: return subtract(exactly(x), exactly(y), toward_minus);
    case Operation::mul: return multiply(x, y);
    case Operation::div: return divide(x, y);
    case Operation::sqrt: return square_root(x);
    case Operation::fma: break;
  }
  return fused_multiply_add(x, y, z, toward_minus);
}

inline std::uint64_t judge_result(Operation operation, const oracle::Number& x,
                                  const oracle::Number& y, const oracle::Number& z,
                                  const Destination& to) {
  const auto& [format, rounding, overflow, random] = to;
  switch (operation) {
    case Operation::add: return oracle::add(format.judge, x, y, rounding.judge, overflow.judge);
    case Operation::sub: return oracle::sub(format.judge, x, y, rounding.judge, overflow.judge);
    case Operation::mul: return oracle::mul(format.judge, x, y, rounding.judge, overflow.judge);
    case Operation::div: return oracle::div(format.judge, x, y, rounding.judge, overflow.judge);
    case Operation::sqrt: return oracle::sqrt(format.judge, x, rounding.judge, overflow.judge);
    case Operation::fma: break;
  }
  return oracle::fma(format.judge, x, y, z, rounding.judge, overflow.judge);
}

/// Compares the rounded results for every destination; sqrt takes x, fma x * y + z.
inline void judge_operation(Operation operation, const Operand& x, const Operand& y,
                            const Operand& z, std::span<const Destination> destinations,
                            Mismatches& mismatches) {
  const oracle::Number a = oracle::decode(x.format.judge, x.code);
  const oracle::Number b = oracle::decode(y.format.judge, y.code);
  const oracle::Number c = oracle::decode(z.format.judge, z.code);
  for (const Destination& to : destinations) {
    const bool toward_minus = to.rounding.model == Rounding::downward;
    const Unrounded exact =
        model_operation(operation, decode(x.format.model, x.code), decode(y.format.model, y.code),
                        decode(z.format.model, z.code), toward_minus);
    const std::uint64_t judge = judge_result(operation, a, b, c, to);
    if (exact.kind == Kind::nan && is_integer(to.format.model)) continue;
    const std::uint64_t model =
        encode(to.format.model, exact, to.rounding.model, to.overflow.model, to.random);
    mismatches.compare(same_code(to.format, model, judge), model, judge, [&](auto& out) {
      out << operation_names[static_cast<std::size_t>(operation)];
      for (const Operand& operand : {x, y, z})
        out << ' ' << operand.code << ':' << operand.format.name;
      out << " to " << to.format.name << ' ' << to.rounding.name << ' ' << to.overflow.name;
    });
  }
}

inline Operand random_operand(const JudgedFormat& format, std::mt19937_64& generator) {
  return {format, random_code(format.model, generator(), generator)};
}

/// `count` random cases of every operation in one format, the roundings in turn.
inline void judge_random_cases(const JudgedFormat& format, std::size_t count,
                               Mismatches& mismatches) {
  constexpr std::size_t grain = 10'000;
  parallel_for(count, grain, 0, [&](std::size_t begin, std::size_t end) {
    std::mt19937_64 generator(begin + static_cast<std::size_t>(bits(format.model)));
    for (std::size_t i = begin; i < end; ++i) {
      const std::array to = {Destination{format, judged_roundings[i % judged_roundings.size()]}};
      for (const Operation operation : all_operations) {
        const std::uint64_t x = random_code(format.model, generator(), generator);
        const std::uint64_t y = random_code(format.model, x, generator);
        // A third operand beside the product: x where y is near one, and anything otherwise.
        const std::uint64_t z = random_code(format.model, x, generator);
        judge_operation(operation, {format, x}, {format, y}, {format, z}, to, mismatches);
      }
    }
  });
}

}  // namespace guardbit::formats
