#pragma once

#include <chrono>
#include <string>
#include <thread>

namespace guardbit::tools {

/// While it lives, standard error gets a line about what the command is at, again and again, where
/// nothing else shows that it is at work: "guardbit: converting  42%, 18 s". What a StatusLine
/// shows on a terminal is such a sign. One at a time.
class SignOfLife {
 public:
  explicit SignOfLife(std::string command,
                      std::chrono::milliseconds interval = std::chrono::seconds(9));
  SignOfLife(const SignOfLife&) = delete;
  SignOfLife& operator=(const SignOfLife&) = delete;
  ~SignOfLife();

 private:
  std::thread thread_;
};

/// What the command is at, as a StatusLine says it; empty: nothing that has a name. `is_shown`: it
/// stands on the terminal.
void set_present_work(const std::string& text, bool is_shown);

/// From now on there are no signs: another process gives them.
void end_signs_of_life();

}  // namespace guardbit::tools
