#pragma once

#include <cstddef>
#include <functional>
#include <span>

// Work of several devices of this host at a time.
namespace guardbit::gpu {

/// work(i) for each of these devices, by a thread each, whose current device it is. Throws what the
/// first of them threw, when all have ended.
void on_each_device(std::span<const int> devices, const std::function<void(std::size_t)>& work);

/// Pieces of work of which each device takes the next one when it is free.
struct DividedWork {
  std::size_t count = 0;
  /// on a device
  std::function<void(std::size_t)> work;
  /// what follows of each piece: in the order of the pieces, one at a time
  std::function<void(std::size_t)> finished;
  /// False: no more pieces are begun.
  std::function<bool()> goes_on;
};
void divide_among(std::span<const int> devices, const DividedWork& divided);

}  // namespace guardbit::gpu
