#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "emulator/functions/function.hpp"

// How far a function's results are from the exact ones, over all of its inputs. What is exact comes
// from the host's doubles: errors are right to about 10^-8 of a unit in the last place, so a result
// that close to a tie may be counted on the wrong side.
namespace guardbit::emulator {

/// The number that a code stands for.
double double_of(const formats::Format& format, std::uint64_t code);

/// The distance of neighbouring numbers of a format at a finite one.
double ulp_at(const formats::Format& format, double x);

/// An error in units of the last place of the exact result; 0 where both are the same infinity or
/// NaN, and NaN where only the exact result is one.
double error_in_ulp(const formats::Format& format, std::uint64_t result, double exact);

/// The same of a result that counts: its exact value is in the format's normal range, and it is a
/// finite number itself.
std::optional<double> counted_error(const formats::Format& format, std::uint64_t result,
                                    double exact);

/// The first exact result for operands, and the error of a first result that counts, of finite
/// ones.
double exact_result(const Function& function, const OperandCodes& codes);
std::optional<double> counted_error(const Function& function, const OperandCodes& codes,
                                    std::uint64_t result);

/// Errors of results that count, of finite arguments.
struct FunctionErrors {
  std::uint64_t results = 0;
  std::uint64_t correctly_rounded = 0;
  double largest = 0;
  /// an argument that has it
  std::uint32_t largest_at = 0;
  /// Signed errors: bin i has those of [(i - 32) / 8, (i - 31) / 8), the outer ones all beyond.
  std::array<std::uint64_t, 64> histogram{};
  /// Other arguments whose results are no neighbours of the exact ones: a flushed zero, a NaN.
  std::uint64_t unlike = 0;
  /// Neighbouring arguments between which the result falls where the function rises, or rises
  /// where it falls.
  std::uint64_t not_monotonic = 0;
  /// Arguments x > 0 of even and odd functions of which f(x) and f(-x) differ in more than sign.
  std::uint64_t not_symmetric = 0;
};

/// Of a function of one floating-point number of at most 32 bits and its first result, over every
/// `stride`th magnitude with both signs, on `threads`
/// threads (0: all); progress as in function_digest.
FunctionErrors function_errors(
    const Function& function, std::uint64_t stride = 1, int threads = 0,
    const std::function<void(std::uint64_t)>& progress = [](std::uint64_t) {});

}  // namespace guardbit::emulator
