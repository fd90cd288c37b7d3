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

/// While it lives, the first Ctrl-C or SIGTERM asks for a clean end; another one ends the program
/// at once. One at a time.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  bool asked_for() const;
  /// Throws Interrupted where an end is asked for.
  void check(const std::string& remark = {}) const;

 private:
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

/// While it lives, Ctrl-C or SIGTERM ends the program at once, with the usual line and status: for
/// commands that write no files. One at a time, and none beside an Interruption.
class EndAtOnce {
 public:
  EndAtOnce();
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;
  ~EndAtOnce();

 private:
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

}  // namespace guardbit::tools
