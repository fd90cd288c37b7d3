#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>

// Work without Python's lock that Ctrl-C ends.
namespace guardbit::python {

/// Thrown by work that was told to stop.
struct Stopped {};

/// Whether the work is to stop; asked from any thread.
class Stop {
 public:
  bool asked() const { return asked_.load(std::memory_order_relaxed); }
  void ask() { asked_.store(true, std::memory_order_relaxed); }
  /// Throws Stopped where it is asked for.
  void check() const {
    if (asked()) throw Stopped();
  }

 private:
  std::atomic<bool> asked_ = false;
};

/// Does the work on a thread of its own, in the default floating-point environment and without
/// Python's lock, while the caller's thread waits for it or for Ctrl-C. What it throws is thrown
/// again; nb::python_error (KeyboardInterrupt) after Ctrl-C.
void run_interruptibly(const std::function<void(const Stop&)>& work);

/// The same of work that returns something.
template <class Work>
auto interruptibly(const Work& work) {
  std::optional<std::invoke_result_t<Work, const Stop&>> result;
  run_interruptibly([&](const Stop& stop) { result.emplace(work(stop)); });
  return *std::move(result);
}

}  // namespace guardbit::python
