#pragma once

#include <csignal>
#include <string>

// Ctrl-C, as commands notice it.
namespace guardbit::tools {

/// Ends a command that the user asked to end. Only the programs' `main` ends on it.
struct Interrupted {
  /// what a shell reports of a program that a signal ended: 130 for Ctrl-C
  int exit_status;
  /// what follows "interrupted", as ": nothing written"
  std::string remark;
};

/// Says on standard error that the command was interrupted; the status to exit with.
int report(const Interrupted& interrupted);

/// While it lives, a function handles Ctrl-C and SIGTERM. One at a time.
class SignalHandler {
 public:
  explicit SignalHandler(void (*handler)(int));
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;
  ~SignalHandler();

 private:
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

/// While it lives, the first Ctrl-C or SIGTERM asks for a clean end; another one ends the program
/// at once. One at a time.
class Interruption {
 public:
  Interruption();

  bool asked_for() const;
  /// Throws Interrupted where an end is asked for.
  void check(const std::string& remark = {}) const;

 private:
  SignalHandler handler_;
};

/// While it lives, Ctrl-C or SIGTERM ends the program at once, with the usual line and status: for
/// commands that write no files, and others while they write none. `remark` is a literal, as of
/// Interrupted.
class EndAtOnce {
 public:
  explicit EndAtOnce(const char* remark = "");

 private:
  SignalHandler handler_;
};

}  // namespace guardbit::tools
