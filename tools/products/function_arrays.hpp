#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/functions/function.hpp"
#include "formats/tensors/tensor.hpp"

// A function of the catalogue on arrays.
namespace guardbit::tools {

/// The code that a word of a number means, rounded to a format; nothing where it is none.
std::optional<std::uint64_t> code_of_number(const std::string& word, const formats::Format& format);

/// The function that a call means: of a name without its type, the overload for BF16 where that is
/// the format of the first array.
const emulator::Function& function_of_call(const std::string& arch, const std::string& name,
                                           emulator::CompileMode compile,
                                           const std::optional<formats::Format>& first);

/// An operand: an array, or one number for all elements.
struct FunctionOperand {
  /// what errors call it
  std::string place;
  /// nothing: a number
  std::optional<formats::Tensor> array;
  /// of the number
  std::uint64_t code = 0;
};

/// formats::Error where the function takes another number of operands.
void require_operand_count(const emulator::Function& function, std::size_t given);

/// The shape of the results: that of the operands, of which scalars count for all elements.
/// formats::Error if arrays have different shapes, or a format that the function does not take.
std::vector<std::int64_t> result_shape(const emulator::Function& function,
                                       const std::vector<FunctionOperand>& operands);

/// Computes every element on `threads` threads (0: all). Codes of each result go row by row to its
/// memory, in their containers. `between` is called now and then, on any thread; whatever that
/// throws ends the work.
void compute_elements(
    const emulator::Function& function, const std::vector<FunctionOperand>& operands,
    const std::vector<std::span<std::byte>>& results, int threads,
    const std::function<void()>& between = [] {});

}  // namespace guardbit::tools
