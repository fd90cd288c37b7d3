#include "formats/support/stop.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace guardbit::formats {

const StopWhen*& stop_of_thread() {
  thread_local const StopWhen* innermost = nullptr;
  return innermost;
}

StopWhen::StopWhen(std::function<bool()> is_over)
    : is_over_(std::move(is_over)), outer_(std::exchange(stop_of_thread(), this)) {}

StopWhen::~StopWhen() { stop_of_thread() = outer_; }

std::function<bool()> shortly_after(std::function<bool()> is_over) {
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration shortly = std::chrono::milliseconds(100);
  const auto none = Clock::time_point::max();
  const auto first = std::make_shared<std::atomic<Clock::time_point>>(none);
  return [first, none, is_over = std::move(is_over)] {
    if (!is_over || !is_over()) return false;
    const Clock::time_point now = Clock::now();
    Clock::time_point seen = none;
    first->compare_exchange_strong(seen, now);
    return seen != none && now - seen > shortly;
  };
}

void check_stop() {
  const StopWhen* const stop = stop_of_thread();
  if (stop != nullptr && stop->is_over()) throw Stopped();
}

}  // namespace guardbit::formats
