#include "formats/support/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "formats/support/stop.hpp"

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

namespace {

/// Gives way to other threads for as long as a short parallel_for may take to come or to end, while
/// which going to sleep and being woken would take longer. Returns early when `is_done`.
template <class IsDone>
void wait_awake(const IsDone& is_done) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(100);
  while (!is_done() && Clock::now() < end) std::this_thread::yield();
}

/// Threads that wait for work, as many as were ever wanted at once. They are never ended: the
/// process ends them, wherever that happens.
class Workers {
 public:
  static Workers& all() {
    static Workers& workers = *new Workers;
    return workers;
  }

  /// Runs `work` on up to `count` threads beside the caller's; returns when none runs it any more.
  /// Whoever comes while they are taken, a body that asks for threads itself for one, works alone.
  void help(std::size_t count, const std::function<void()>& work) {
    if (count == 0 || is_taken_.exchange(true)) return work();
    {
      const std::lock_guard lock(mutex_);
      grow(count);
      work_ = &work;
      wanted_ = std::min(count, threads_);
    }
    begin_.notify_all();
    work();
    {
      const std::lock_guard lock(mutex_);
      wanted_ = 0;  // who has not begun need not
    }
    wait_awake([this] { return running_ == 0; });
    std::unique_lock lock(mutex_);
    end_.wait(lock, [&] { return running_ == 0; });
    work_ = nullptr;
    is_taken_ = false;
  }

 private:
  void grow(std::size_t count) {
    try {
      for (; threads_ < count; ++threads_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      // The system has no more threads: those that run do all the work.
    }
  }
  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      lock.unlock();
      wait_awake([this] { return wanted_ > 0; });
      lock.lock();
      begin_.wait(lock, [&] { return wanted_ > 0; });
      --wanted_;
      ++running_;
      const std::function<void()>& work = *work_;
      lock.unlock();
      work();
      lock.lock();
      if (--running_ == 0) end_.notify_one();
    }
  }

  std::atomic<bool> is_taken_ = false;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void()>* work_ = nullptr;
  std::size_t threads_ = 0;
  /// change under the mutex
  std::atomic<std::size_t> wanted_ = 0, running_ = 0;
};

/// While it lives, this thread ends its work when another one, for which it works, does.
class OfThread {
 public:
  explicit OfThread(const StopWhen* stop) : before_(std::exchange(stop_of_thread(), stop)) {}
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;
  ~OfThread() { stop_of_thread() = before_; }

 private:
  const StopWhen* before_;
};

}  // namespace

void parallel_for(std::size_t count, std::size_t grain, int threads,
                  const std::function<void(std::size_t begin, std::size_t end)>& body) {
  assert(grain > 0);
  const std::size_t ranges = count / grain + (count % grain != 0 ? 1 : 0);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed_range = ranges;
  const StopWhen* const stop = stop_of_thread();
  const auto work = [&] {
    const OfThread taken_over(stop);
    while (!stopped) {
      const std::size_t range = next++;
      if (range >= ranges) return;
      try {
        check_stop();
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
  const auto wanted = std::min(ranges, static_cast<std::size_t>(thread_count(threads)));
  Workers::all().help(wanted == 0 ? 0 : wanted - 1, work);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace guardbit::formats
