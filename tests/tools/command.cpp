#include "tests/tools/command.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::string line = quoted(command_path());
  for (const std::string& word : words) line += " " + quoted(word);
  line +=
      " > " + quoted(folder.path("out")) + " 2> " + quoted(folder.path("error")) + " < /dev/null";
  const int status = std::system(line.c_str());
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  result.out = read_text(folder.path("out"));
  result.error = read_text(folder.path("error"));
  return result;
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "guardbit_test_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

bool is_one_error_line(const std::string& text) {
  return text.starts_with("guardbit: ") && text.ends_with('\n') &&
         std::count(text.begin(), text.end(), '\n') == 1;
}

}  // namespace guardbit::tests
