#pragma once

#include <cstdint>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <string>

namespace guardbit::formats {

/// Counts comparisons and keeps the first few that failed, from any thread: Catch2's assertions are
/// slow, and not for threads.
class Mismatches {
 public:
  /// `describe` writes the inputs to a stream; it runs only for the failures that are kept.
  template <typename Describe>
  void compare(bool equal, std::uint64_t model, std::uint64_t judge, const Describe& describe) {
    if (equal) return;
    const std::scoped_lock lock(mutex_);
    if (++count_ > kept) return;
    text_ << std::hex << "model " << model << " judge " << judge << ": ";
    describe(text_);
    text_ << '\n';
  }

  /// Empty when all were equal.
  std::string report() const {
    const std::scoped_lock lock(mutex_);
    return count_ == 0 ? "" : std::to_string(count_) + " mismatches:\n" + text_.str();
  }

 private:
  static constexpr std::uint64_t kept = 10;
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::ostringstream text_;
};

}  // namespace guardbit::formats
