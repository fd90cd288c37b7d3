#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/operands/packing.hpp"
#include "gpu/operands/tensor_core_batch.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "gpu/validation/coverage.hpp"

// What a screening asks of a matrix instruction: operands, and the results that the model gives for
// them on this host. No GPU takes part.
namespace guardbit::gpu {

/// One instruction's operands and expected results.
struct ScreenCase {
  const TensorCoreInstruction* instruction = nullptr;
  ImageLayout layout;
  Batch batch;
  PackedOperands operands;
  /// d images
  std::vector<std::byte> expected;
};

/// Mixed rows (inputs.hpp) of that seed, 64 rows of A at least, and as many of each generated
/// family; forms of 64 columns and more, whose arithmetic narrower ones have too, get the mixed
/// rows alone, three times in different registers.
ScreenCase make_screen_case(const TensorCoreInstruction& instruction, std::uint64_t seed);

/// Which events happened in the outputs of a case, of those that its instruction can show: all rows
/// of its first columns, of which each family of rows meets every kind.
struct CaseCoverage {
  emulator::Coverage coverage;
  emulator::EventSet possible;
  /// possible, and not seen
  std::vector<std::string_view> never;
};
CaseCoverage coverage_of(const ScreenCase& x);

struct OutputPlace {
  int execution = 0, row = 0, column = 0;
};
/// The first output with wrong bits in a word of the results: `lane` of the warp or warpgroup and
/// its register, or, where a wrapper stores the results itself, the word of the image.
OutputPlace wrong_output_at(const ScreenCase& x, std::uint32_t image, std::uint32_t lane,
                            std::uint32_t word, std::uint32_t wrong_bits);

/// The operands of one output, as hexadecimal codes: "a=3c00,… b=… c=…".
std::string operands_text(const ScreenCase& x, const OutputPlace& place);

}  // namespace guardbit::gpu
