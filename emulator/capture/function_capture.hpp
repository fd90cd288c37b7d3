#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/files/tensor_file.hpp"

// Recordings of a function's results on a device.
namespace guardbit::emulator {

/// What a device answered: a capture of kind `function`.
struct FunctionCapture {
  std::string path, arch;
  const Function* function = nullptr;
  /// of each operand and each result, as many codes
  std::vector<std::vector<std::uint64_t>> operands, recorded;

  std::int64_t outputs() const {
    return static_cast<std::int64_t>(recorded.size() * recorded.at(0).size());
  }
};

bool is_function_capture(const formats::TensorFile& file);

/// formats::Error for whatever does not fit: one line with file, place and choices.
FunctionCapture make_function_capture(const formats::TensorFile& file, const std::string& where);

}  // namespace guardbit::emulator
