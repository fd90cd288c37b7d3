#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/capture/bound_operands.hpp"
#include "formats/files/tensor_file.hpp"

// Recordings of one instruction on a device: reading them, and comparing them with what is
// computed.
namespace guardbit::emulator {

/// What a device answered, checked and ready to be executed again. A `dot` recording becomes a
/// batch with M = N = 1.
struct Capture {
  std::string path;
  /// instruction or dot
  std::string kind;
  /// as the file names it
  std::string arch;
  MatrixInstruction instruction;
  BoundBatch operands;
};

/// Reads a capture file (safetensors). formats::Error for whatever does not fit: one line with
/// file, place and choices.
Capture read_capture(const std::string& path);

/// The same from tensors already read; `where` names them in errors.
Capture make_capture(formats::TensorFile file, const std::string& where);

/// The metadata of a capture of kind `instruction`.
std::map<std::string, std::string> capture_metadata(const MatrixInstruction& instruction,
                                                    std::string_view arch, int toolkit,
                                                    const Modifiers& modifiers);

/// Does the computed code agree with the recorded one? Two NaNs of FP64, or of an instruction that
/// does not know its NaNs, are equal whatever sign and payload; everything else is compared bit by
/// bit.
bool same_result(const MatrixInstruction& instruction, std::uint64_t recorded,
                 std::uint64_t computed);

/// Codes apart on the number line of the format, both zeros counted as one; nothing for a NaN.
std::optional<std::uint64_t> code_distance(const Format& format, std::uint64_t x, std::uint64_t y);

/// One output element.
struct Element {
  std::int64_t execution = 0;
  int row = 0, column = 0;

  friend bool operator==(const Element&, const Element&) = default;
};

/// Where recorded and computed results differ: how often, and the first `limit` places.
struct Comparison {
  std::int64_t mismatches = 0;
  std::vector<Element> first;
};
Comparison compare(const MatrixInstruction& instruction, const MatrixBatch& batch,
                   const ConstCodes& recorded, const ConstCodes& computed, std::size_t limit);

}  // namespace guardbit::emulator
