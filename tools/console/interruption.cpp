#include "tools/console/interruption.hpp"

#include <unistd.h>

#include <ctime>
#include <iostream>
#include <string_view>

namespace guardbit::tools {

namespace {

volatile std::sig_atomic_t received = 0;
timespec first_time{};

/// One request may arrive as two signals: timeout(1) sends its own to the process and to its group.
constexpr double same_request_seconds = 0.2;

void receive(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (received == 0) {
    received = signal;
    first_time = now;
    return;
  }
  const double since = static_cast<double>(now.tv_sec - first_time.tv_sec) +
                       static_cast<double>(now.tv_nsec - first_time.tv_nsec) * 1e-9;
  if (since < same_request_seconds) return;
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  raise(signal);
}

const char* volatile remark_at_end = "";

void end(int signal) {
  // What a progress line left is removed first.
  constexpr std::string_view line = "\r\033[Kguardbit: interrupted";
  for (const std::string_view shown : {line.substr(isatty(STDERR_FILENO) != 0 ? 0 : line.find('g')),
                                       std::string_view(remark_at_end), std::string_view("\n")}) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, shown.data(), shown.size());
  }
  _exit(128 + signal);
}

void (*end_with(const char* remark))(int) {
  remark_at_end = remark;
  return end;
}

/// A new interruption knows nothing of an earlier one's signal.
void (*fresh_receiver())(int) {
  received = 0;
  return receive;
}

}  // namespace

SignalHandler::SignalHandler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, &previous_interrupt_);
  sigaction(SIGTERM, &action, &previous_terminate_);
}

SignalHandler::~SignalHandler() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
}

Interruption::Interruption() : handler_(fresh_receiver()) {}

EndAtOnce::EndAtOnce(const char* remark) : handler_(end_with(remark)) {}

bool Interruption::asked_for() const { return received != 0; }

void Interruption::check(const std::string& remark) const {
  if (asked_for()) throw Interrupted{128 + received, remark};
}

int report(const Interrupted& interrupted) {
  std::cout.flush();
  std::cerr << "guardbit: interrupted" << interrupted.remark << '\n';
  return interrupted.exit_status;
}

}  // namespace guardbit::tools
