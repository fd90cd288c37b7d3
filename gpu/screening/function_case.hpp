#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// What a screening asks of instructions that are functions of numbers, and of integers: operands,
// and the results that the models give for them on this host.
namespace guardbit::gpu {

/// Inputs of each function.
inline constexpr std::uint32_t screened_inputs = 1 << 16;

/// What a screening calls the integer operations.
inline constexpr const char* integer_operations = "integer operations";

/// Codes one after the other, each in `bits` / 8 bytes.
struct FunctionCase {
  /// ex2.approx.ftz.f32
  std::string name;
  int bits = 32;
  std::vector<std::vector<std::byte>> operands;
  std::vector<std::byte> expected;
  /// Is the model's evidence results of hardware, not the manual alone?
  bool is_proven = false;
};

/// Of FP32 and FP16 all codes or codes from all over, where there is one operand; else drawn
/// operands (emulator/functions/drawn_operands.hpp). formats::Error for a name that is not in the
/// catalogue of functions.
FunctionCase make_function_case(const std::string& name, int threads = 0);
std::vector<FunctionCase> make_function_cases(std::span<const std::string> names, int threads = 0);

/// The integer operations (integer_rounds.hpp) as one function of 64 bits.
FunctionCase make_integer_case();

/// The operands of an input, in hexadecimal: "x=0x3f800000 y=…".
std::string operands_text(const FunctionCase& x, std::uint32_t input);

}  // namespace guardbit::gpu
