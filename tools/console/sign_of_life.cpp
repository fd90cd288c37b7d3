#include "tools/console/sign_of_life.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "tools/console/elapsed.hpp"

namespace guardbit::tools {

namespace {

/// What the thread that gives signs shares with the one that works.
struct Work {
  std::mutex mutex;
  std::condition_variable ended;
  std::string text;
  bool is_shown = false, has_ended = false;
};

// Never destroyed: a command may end by exit() while the thread waits.
Work& work() {
  static Work& shared = *new Work;
  return shared;
}

void give_signs(const std::string& command, std::chrono::milliseconds interval) {
  const auto start = std::chrono::steady_clock::now();
  Work& x = work();
  std::unique_lock lock(x.mutex);
  for (auto next = start + interval;; next += interval) {
    if (x.ended.wait_until(lock, next, [&] { return x.has_ended; })) return;
    const std::string seconds = std::to_string(static_cast<long>(seconds_since(start)));
    std::string line =
        x.text.empty() ? command + (command.empty() ? "" : ": ") + "at work" : x.text;
    line += ", " + seconds + " s";
    line = x.is_shown ? "\r" + line + "\033[K" : "guardbit: " + line + "\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
}

}  // namespace

SignOfLife::SignOfLife(std::string command, std::chrono::milliseconds interval) {
  work().has_ended = false;
  try {
    thread_ =
        std::thread([command = std::move(command), interval] { give_signs(command, interval); });
  } catch (const std::system_error&) {
    // Where no thread can be had the command works all the same.
  }
}

void end_signs_of_life() {
  {
    const std::lock_guard lock(work().mutex);
    work().has_ended = true;
  }
  work().ended.notify_all();
}

SignOfLife::~SignOfLife() {
  if (!thread_.joinable()) return;
  end_signs_of_life();
  thread_.join();
}

void set_present_work(const std::string& text, bool is_shown) {
  const std::lock_guard lock(work().mutex);
  work().text = text;
  work().is_shown = is_shown;
}

}  // namespace guardbit::tools
