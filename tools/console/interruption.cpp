#include "tools/console/interruption.hpp"

#include <ctime>

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

}  // namespace

Interruption::Interruption() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = receive;
  sigaction(SIGINT, &action, &previous_interrupt_);
  sigaction(SIGTERM, &action, &previous_terminate_);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
}

bool Interruption::asked_for() const { return received != 0; }

int Interruption::exit_status() const { return 128 + received; }

}  // namespace guardbit::tools
