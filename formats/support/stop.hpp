#pragma once

#include <functional>
#include <utility>

// Work that is no longer wanted: a time limit has passed, or the user asked for an end.
namespace guardbit::formats {

/// Thrown by check_stop(); whoever has a StopWhen catches it.
struct Stopped {};

/// While it lives, check_stop() ends work on this thread, and on those that parallel_for takes for
/// it, once the function says true. Any of them may ask it. One inside of another adds to it.
class StopWhen {
 public:
  /// no function: nothing to add
  explicit StopWhen(std::function<bool()> is_over);
  StopWhen(const StopWhen&) = delete;
  StopWhen& operator=(const StopWhen&) = delete;
  ~StopWhen();

  bool is_over() const {
    return (is_over_ && is_over_()) || (outer_ != nullptr && outer_->is_over());
  }

 private:
  std::function<bool()> is_over_;
  const StopWhen* outer_;
};

/// What the calling thread has; null: nothing. A thread that works for another one takes it over.
const StopWhen*& stop_of_thread();

/// Runs `work`; false if it was ended because the function said true, or an outer one did.
template <class Work>
bool ends_before(std::function<bool()> is_over, const Work& work) {
  const StopWhen stop(std::move(is_over));
  try {
    work();
    return true;
  } catch (const Stopped&) {
    return false;
  }
}

/// Says true a tenth of a second after the function did: what is short may still be done. It must
/// be asked now and then.
std::function<bool()> shortly_after(std::function<bool()> is_over);

/// Throws Stopped if the work is no longer wanted. Asked at least every few milliseconds.
void check_stop();

}  // namespace guardbit::formats
