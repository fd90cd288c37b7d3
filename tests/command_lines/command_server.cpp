// Runs command lines of guardbit, each in a child process of its own that begins where this one
// stands: nothing is loaded and no table is made again for each. tests/fuzz/commands.py gives the
// command lines and reads what they print.
//
//   guardbit_command_server OUT ERROR SECONDS [UID]
//
// A request is the length in bytes, four of them, of the words, each with a zero behind it; the
// answer is a line: "exit STATUS CPU_SECONDS", "signal NUMBER CPU_SECONDS", "silent 0 CPU_SECONDS"
// of a command that said nothing for so many seconds, "deaf 0 CPU_SECONDS" of one that gave signs
// of life and did not end on Ctrl-C.

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "tools/commands/commands.hpp"

namespace {

struct Settings {
  const char *out, *error;
  int seconds;
  unsigned user;
};

void set_limit(__rlimit_resource resource, rlim_t most) {
  const rlimit limit{most, most};
  setrlimit(resource, &limit);
}

bool read_all(void* to, std::size_t size) { return std::fread(to, 1, size, stdin) == size; }

/// Where the child's files are its own and nothing of ours can be overwritten.
[[noreturn]] void run_command(std::vector<std::string> words, const Settings& settings) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open(settings.out, O_WRONLY | O_TRUNC | O_CLOEXEC);
  const int error = open(settings.error, O_WRONLY | O_TRUNC | O_CLOEXEC);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  close(in), close(out), close(error);
  constexpr rlim_t gigabyte = rlim_t{1} << 30U;
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_AS, 8 * gigabyte);
  set_limit(RLIMIT_FSIZE, gigabyte);
  if (settings.user != 0) {
    if (setgroups(0, nullptr) != 0 || setgid(settings.user) != 0 || setuid(settings.user) != 0)
      _exit(99);
    prctl(PR_SET_DUMPABLE, 1);
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::exit(guardbit::tools::command_line(static_cast<int>(words.size()), pointers.data()));
}

/// Waits for the child for so many seconds; false where it still runs.
bool ended(pid_t child, int& status, rusage& used, double seconds) {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double last =
      static_cast<double>(end.tv_sec) + static_cast<double>(end.tv_nsec) * 1e-9 + seconds;
  while (true) {
    if (wait4(child, &status, WNOHANG, &used) == child) return true;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double left =
        last - static_cast<double>(now.tv_sec) - static_cast<double>(now.tv_nsec) * 1e-9;
    if (left <= 0) return false;
    timespec wait{static_cast<time_t>(left), 0};
    wait.tv_nsec = static_cast<long>((left - static_cast<double>(wait.tv_sec)) * 1e9);
    sigtimedwait(&child_signal, nullptr, &wait);
  }
}

off_t size_of(const char* path) {
  struct stat state {};
  return stat(path, &state) == 0 ? state.st_size : 0;
}

void serve(std::vector<std::string> words, const Settings& settings) {
  words.insert(words.begin(), "guardbit");
  for (const char* path : {settings.out, settings.error})
    close(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666));
  const pid_t child = fork();
  if (child == 0) run_command(std::move(words), settings);
  int status = 0;
  rusage used{};
  const char* word = nullptr;
  if (!ended(child, status, used, settings.seconds)) {
    const bool gave_signs = size_of(settings.error) != 0;
    kill(child, SIGINT);
    if (!ended(child, status, used, 2)) {
      word = "deaf";
      kill(-child, SIGKILL);
      wait4(child, &status, 0, &used);
    }
    if (!gave_signs) word = "silent";
  }
  kill(-child, SIGKILL);  // what it started
  const double seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
  const int number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  if (word == nullptr) word = WIFEXITED(status) ? "exit" : "signal";
  std::printf("%s %d %.6f\n", word, number, seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const Settings settings{words[1], words[2], std::atoi(words[3]),
                          count > 4 ? static_cast<unsigned>(std::atoi(words[4])) : 0};
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_signal, nullptr);
  guardbit::emulator::catalogue();  // once for all children
  for (std::uint32_t size = 0; read_all(&size, sizeof size);) {
    std::string text(size, '\0');
    if (!read_all(text.data(), size)) return 2;
    std::vector<std::string> list;
    for (std::size_t begin = 0; begin < text.size();) {
      list.emplace_back(text.c_str() + begin);
      begin += list.back().size() + 1;
    }
    serve(std::move(list), settings);
  }
  return 0;
}
