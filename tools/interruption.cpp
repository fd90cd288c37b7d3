#include "tools/interruption.hpp"

namespace guardbit::tools {

namespace {

volatile std::sig_atomic_t received = 0;

}  // namespace

Interruption::Interruption() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { received = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
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
