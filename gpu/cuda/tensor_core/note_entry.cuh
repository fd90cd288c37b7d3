#pragma once
#include "gpu/screening/screen_log.hpp"

// How a thread adds a wrong result to a log.
namespace guardbit::gpu {

/// Where there is room.
template <class Entry, unsigned most>
__device__ inline void note_entry(MismatchLog<Entry, most>* log, const Entry& entry) {
  const unsigned place = atomicAdd(&log->recorded, 1U);
  if (place < most) log->entries[place] = entry;
}

}  // namespace guardbit::gpu
