#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"

// The instruction that libraries take for a product of given formats on a given machine.
namespace guardbit::emulator {

/// Where a family stands in the order in which the libraries of a machine take its matrix units:
/// 0 for the newest. A sparse family stands beside its dense one.
int usual_rank(Family family);

/// What an instruction is to multiply: the formats of A and B, and that of C and D.
struct ProductFormats {
  Format a, b, result;
};

/// The instruction that libraries of a machine with this page take for dense products: of the
/// newest unit that has one, the first of those with the longest K. `suits` says what else it must
/// be; without it, it is one without block scales. An instruction that the machine emulates by
/// scalar arithmetic is none.
std::optional<MatrixInstruction> usual_instruction(
    std::string_view page, const ProductFormats& formats, int toolkit = newest_toolkit,
    const std::function<bool(const MatrixInstruction&)>& suits = {});

}  // namespace guardbit::emulator
