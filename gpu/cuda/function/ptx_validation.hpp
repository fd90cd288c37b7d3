#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Instructions of PTX that compute functions of numbers, compared with their models on the device.
namespace guardbit::gpu {

/// One evaluation that differs.
struct FunctionMismatch {
  std::array<std::uint64_t, 3> operands{};
  std::uint64_t device = 0, model = 0;
};

/// Of which a digest is kept beside that of all.
inline constexpr std::uint64_t first_inputs = 1 << 14;

struct FunctionReport {
  std::string function;
  std::uint64_t compared = 0, mismatches = 0;
  /// Sums of shares of the device's results (emulator/functions/function_digest.hpp), a result of
  /// 64 bits as its halves' exclusive or: of all, and of the
  /// first_inputs first ones.
  std::uint64_t digest = 0, first_digest = 0;
  /// some that differ
  std::vector<FunctionMismatch> examples;
};

/// Names of every instruction that has a model.
std::vector<std::string> modelled_instructions();

/// Compares an instruction with its model. Inputs are all codes, or all high words of a unit's FP64
/// form, where an instruction has one operand; else `count` of drawn_operands. `goes_on(inputs
/// done)` is asked between launches. formats::Error for a name that has no model.
FunctionReport validate_instruction(const std::string& name, std::uint64_t count,
                                    const std::function<bool(std::uint64_t)>& goes_on);

/// The first inputs of an instruction and the device's results, as codes.
struct FunctionRecording {
  std::vector<std::vector<std::uint64_t>> operands;
  std::vector<std::uint64_t> results;
};
FunctionRecording record_instruction(const std::string& name, std::uint32_t count);

}  // namespace guardbit::gpu
