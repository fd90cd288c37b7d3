#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.hpp"
#include "formats/nearest.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int exit_bad_input = 2;

/// Where the caller closed a standard stream, the next file opened would take its number and
/// receive its text.
void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1) {
      const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY);
      if (opened != descriptor && opened >= 0) close(opened);
    }
  }
}

/// One line, whatever the text holds.
int fail(std::string_view text) {
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  std::cout.flush();
  std::cerr << "guardbit: " << line << '\n';
  return exit_bad_input;
}

/// The first word of the command line must name a subcommand; CLI11 would only say that one is
/// required.
void check_command(const CLI::App& app, int count, const char* const* words) {
  std::vector<std::string_view> names;
  std::string list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  const std::string_view word = count > 1 ? words[1] : "";
  if (word.empty())
    throw guardbit::formats::Error("no command; try 'guardbit --help' (valid: " + list + ")");
  if (word.starts_with('-')) return;
  for (const std::string_view name : names) {
    if (name == word) return;
  }
  throw guardbit::formats::Error(guardbit::formats::unknown_name("command", word, names) +
                                 " (valid: " + list + ")");
}

int run(int count, char** words) {
  CLI::App app{"Bit-exact models of matrix instructions and of the number formats they compute in",
               "guardbit"};
  app.set_version_flag("--version", "guardbit " GUARDBIT_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(
      "Example: guardbit show 0.1 --format fp16 --format e4m3\n"
      "'guardbit COMMAND --help' explains a command and gives an example.");
  app.require_subcommand(1);
  int status = 0;
  using Add = void (*)(CLI::App&, int&);
  for (const Add add : std::array<Add, 7>{guardbit::tools::add_formats, guardbit::tools::add_show,
                                          guardbit::tools::add_cast, guardbit::tools::add_list,
                                          guardbit::tools::add_run, guardbit::tools::add_verify,
                                          guardbit::tools::add_completion}) {
    add(app, status);
  }
  try {
    check_command(app, count, words);
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return fail(error.what());
    app.exit(error);  // --help and --version arrive as exceptions
  }
  if (!std::cout.flush()) return fail("standard output: cannot write");
  return status;
}

}  // namespace

int main(int count, char** words) {
  hold_standard_streams();
  std::ios::sync_with_stdio(false);
  try {
    return run(count, words);
  } catch (const guardbit::formats::Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
