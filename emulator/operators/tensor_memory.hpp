#pragma once

#include <cstddef>
#include <memory>

namespace guardbit::emulator::operators {

/// Memory for a tensor's elements, uninitialised. What large tensors leave is kept, up to 128 MiB,
/// for the next ones of their size: fresh pages cost more than most operators.
std::shared_ptr<std::byte[]> tensor_memory(std::size_t size);

}  // namespace guardbit::emulator::operators
