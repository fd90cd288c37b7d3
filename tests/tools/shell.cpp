#include "tests/tools/shell.hpp"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

[[noreturn]] void become_command(const std::vector<std::string>& words,
                                 const std::vector<std::string>& environment) {
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  for (const std::string& setting : environment) putenv(const_cast<char*>(setting.c_str()));
  std::vector<char*> arguments = {const_cast<char*>("guardbit")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(command_path().c_str(), arguments.data());
  _exit(127);
}

}  // namespace

CommandResult run_shell(const TemporaryFolder& folder, const std::string& script) {
  const std::string file = folder.path("script.sh");
  write_text(file, "command='" + command_path() +
                       "'\nguardbit() { \"$command\" \"$@\"; }\nfolder='" + folder.path("") +
                       "'\n" + script + "\n");
  const std::string line = "bash '" + file + "' > '" + folder.path("script.out") + "' 2> '" +
                           folder.path("script.error") + "' < /dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_text(folder.path("script.out")),
          read_text(folder.path("script.error"))};
}

CommandResult run_until_interrupted(const TemporaryFolder& folder, const std::string& words,
                                    double seconds, int most) {
  return run_shell(folder, R"(
    cd "$folder"
    set -m  # or background jobs would ignore Ctrl-C
    "$command" )" + words + R"( > output.txt &
    # A slow build takes a while until it catches Ctrl-C (bit 2 of the mask).
    for (( i = 0; i < 200; ++i )); do
      mask=$(sed -n 's/^SigCgt:\t*//p' /proc/$!/status 2>/dev/null)
      [[ $(readlink /proc/$!/exe) -ef $command ]] && (( 16#${mask:-0} & 2 )) && break
      sleep 0.01
    done
    sleep )" + std::to_string(seconds) +
                               R"(
    start=${EPOCHREALTIME/./}
    kill -INT $!
    wait $!
    echo "status $?"
    (( ${EPOCHREALTIME/./} - start < )" +
                               std::to_string(most) + R"(000 )) && echo prompt)");
}

std::string run_on_terminal(const std::vector<std::string>& words,
                            const std::vector<std::string>& environment) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("no terminal");
  if (child == 0) become_command(words, environment);
  std::string text;
  std::array<char, 4096> buffer = {};
  for (ssize_t count = 0; (count = read(terminal, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  close(terminal);
  waitpid(child, nullptr, 0);
  return text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto columns =
        std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
    longest = std::max(longest, static_cast<std::size_t>(columns));
  }
  return longest;
}

}  // namespace guardbit::tests
