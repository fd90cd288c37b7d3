#pragma once

#include <optional>
#include <vector>

#include "emulator/replay/call.hpp"

// The types that PyTorch computes mixed operands in.
namespace guardbit::emulator::replay {

/// An operand of a pointwise operator: a tensor, or a number of Python.
struct Operand {
  /// of Python's number: one element, in FP32 where it is no integer
  Tensor tensor;
  /// Is it a number to the kernel? Python's are, and tensors without dimensions on the CPU.
  bool is_number = false;
  /// the number itself, in FP64
  double number = 0;
  /// A number that is a tensor on the CPU has a say in the common type as tensors have.
  bool is_tensor = false;

  bool is_of_python() const { return is_number && !is_tensor; }
};

/// The argument of that position or name. UnknownArguments where it is neither.
Operand operand(const Call& call, std::size_t position, std::string_view name);
Operand operand_of_number(double number);

/// The type that operands of these types are converted to (torch.result_type).
formats::Format common_type(const std::vector<Operand>& operands);

/// What the kernel reads of an operand: a tensor without dimensions is converted to the common
/// type first, where that has fewer bits; Python's numbers are not, but of FP64.
Tensor read_as(const Operand& operand, const formats::Format& common);

}  // namespace guardbit::emulator::replay
