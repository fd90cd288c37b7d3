#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace guardbit::formats {

/// Receives bytes, in order.
using BytesVisitor = std::function<void(std::span<const std::byte> bytes)>;

/// Runs `work` in a child process, for code that hostile input may crash; what it sends arrives at
/// `receive` here, in the same pieces. What `work` throws is thrown here as an Error of the same
/// text; an Error of `where` says that the child crashed, or used more than `seconds` of the
/// processor without sending anything. What `receive` throws ends the child.
void run_in_child(const std::string& where, const std::string& what, unsigned seconds,
                  const std::function<void(const BytesVisitor& send)>& work,
                  const BytesVisitor& receive);

}  // namespace guardbit::formats
