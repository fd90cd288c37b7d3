#pragma once

#include <string>
#include <vector>

namespace guardbit::tests {

/// What the command printed and how it ended.
struct CommandResult {
  int status = -1;
  std::string out, error;
};

/// Runs `guardbit` with these words, each one argument.
CommandResult run_command(const std::vector<std::string>& words);

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& content);

/// One line that ends the output, naming the command: what bad input gives.
bool is_one_error_line(const std::string& text);

}  // namespace guardbit::tests
