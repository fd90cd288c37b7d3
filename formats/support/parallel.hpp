#pragma once

#include <cstddef>
#include <functional>

namespace guardbit::formats {

/// Threads that a request means: itself, or for 0 one per processor that this process may use.
int thread_count(int requested);

/// Calls body(begin, end) for the consecutive ranges of `grain` indices (the last one shorter) that
/// make up [0, count), on up to `threads` threads (0: all). The ranges do not depend on the number
/// of threads; their order does. Returns when all have run; of the exceptions thrown, the one of
/// the first range is thrown again.
void parallel_for(std::size_t count, std::size_t grain, int threads,
                  const std::function<void(std::size_t begin, std::size_t end)>& body);

}  // namespace guardbit::formats
