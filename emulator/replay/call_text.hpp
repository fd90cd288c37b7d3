#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/replay/call.hpp"

// The list of calls in a recording's metadata: JSON as Python writes it, with NaN and Infinity.
namespace guardbit::emulator::replay {

/// Finds the content of a tensor by its name; null where the file has none.
using FindTensor = std::function<const Tensor*(std::string_view name)>;

/// The calls of such a text. formats::Error of `where`, with the number of the call, for whatever
/// does not fit.
std::vector<Call> parse_calls(const std::string& where, std::string_view text,
                              const FindTensor& find);

}  // namespace guardbit::emulator::replay
