#include "formats/support/stop.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {
namespace {

TEST_CASE("work that is no longer wanted ends where it asks, on every thread") {
  std::atomic<int> ranges = 0;
  const auto work = [&] { parallel_for(1000, 1, 4, [&](std::size_t, std::size_t) { ++ranges; }); };
  CHECK(ends_before({}, work));
  CHECK(ranges == 1000);
  ranges = 0;
  CHECK_FALSE(ends_before([&] { return ranges >= 10; }, work));
  CHECK(ranges < 1000);
  // Nothing is left of it.
  ranges = 0;
  work();
  CHECK(ranges == 1000);
}

TEST_CASE("an end that is asked for outside ends what is inside") {
  bool is_inside_done = true;
  const bool is_done = ends_before([] { return true; },
                                   [&] {
                                     is_inside_done =
                                         ends_before([] { return false; }, [] { check_stop(); });
                                     check_stop();
                                   });
  CHECK_FALSE(is_inside_done);
  CHECK_FALSE(is_done);
  CHECK_NOTHROW(check_stop());
}

TEST_CASE("what is short may be done shortly after an end was asked for") {
  CHECK_FALSE(shortly_after({})());
  const auto is_over = shortly_after([] { return true; });
  CHECK_FALSE(is_over());
  CHECK_FALSE(is_over());
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK(is_over());
}

}  // namespace
}  // namespace guardbit::formats
