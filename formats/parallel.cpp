#include "formats/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace guardbit::formats {

int thread_count(int requested) {
  if (requested > 0) return requested;
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t count, std::size_t grain, int threads,
                  const std::function<void(std::size_t begin, std::size_t end)>& body) {
  assert(grain > 0);
  const std::size_t ranges = count / grain + (count % grain != 0 ? 1 : 0);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed_range = ranges;
  const auto work = [&] {
    while (!stopped) {
      const std::size_t range = next++;
      if (range >= ranges) return;
      try {
        body(range * grain, std::min(count, (range + 1) * grain));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (range < failed_range) {
          failed_range = range;
          failure = std::current_exception();
        }
        stopped =
            true;  // ranges before this one have begun already, so the first failure is still seen
      }
    }
  };
  std::vector<std::thread> helpers;
  const auto wanted = std::min(ranges, static_cast<std::size_t>(thread_count(threads)));
  try {
    for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // The system has no more threads: those that run do all the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace guardbit::formats
