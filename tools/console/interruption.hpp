#pragma once

#include <csignal>

namespace guardbit::tools {

/// While it lives, the first Ctrl-C or SIGTERM asks for a clean end; another one ends the program
/// at once. One at a time.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  bool asked_for() const;
  /// What a shell reports of a program that a signal ended: 130 for Ctrl-C.
  int exit_status() const;

 private:
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

}  // namespace guardbit::tools
