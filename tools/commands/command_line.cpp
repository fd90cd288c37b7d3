#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/support/error.hpp"
#include "formats/support/instruction_sets.hpp"
#include "formats/support/library_words.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/version.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/sign_of_life.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;

/// Where the caller closed a standard stream, the next file opened would take its number and
/// receive its text. Writing to a closed standard output still fails.
void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1) {
      const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
      if (opened != descriptor && opened >= 0) close(opened);
    }
  }
}

/// One line, whatever the text holds.
int fail(std::string_view text) {
  constexpr std::size_t longest = 4000;
  std::string line(text.substr(0, longest));
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  std::cout.flush();
  std::cerr << "guardbit: " << line << '\n';
  return exit_bad_input;
}

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// The words up to and with the command's own name: "guardbit gpu list".
std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return full_name(*app.get_parent()) + " " + app.get_name();
}

[[noreturn]] void refuse_option(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  const std::string_view name = word.substr(0, word.find('='));
  throw Error(formats::unknown_name("option", name, {names.begin(), names.end()}) + " (see '" +
              full_name(app) + " --help')");
}

/// The first word of a group of commands must name one of them; CLI11 would only say that one is
/// required.
void check_command(CLI::App& app, std::span<const std::string> words) {
  std::vector<std::string_view> names;
  std::string list;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  if (words.empty() || words[0].empty())
    throw Error("no command; try '" + full_name(app) + " --help' (valid: " + list + ")");
  const std::string& word = words[0];
  if (word.starts_with('-')) {
    if (word != "-h" && word != "--help" && word != "--version") refuse_option(app, word);
    return;
  }
  if (std::find(names.begin(), names.end(), word) == names.end())
    throw Error(formats::unknown_name("command", word, names) + " (valid: " + list + ")");
  CLI::App& chosen = *app.get_subcommand(word);
  if (!commands_of(chosen).empty()) check_command(chosen, words.subspan(1));
}

/// An empty word given to an option would read as if the option were absent.
void refuse_empty_words(CLI::App& app) {
  for (CLI::App* command : commands_of(app)) {
    refuse_empty_words(*command);
    for (CLI::Option* option : command->get_options([](const CLI::Option*) { return true; })) {
      if (option->get_items_expected_max() == 0) continue;
      option->check([](const std::string& word) {
        return word.empty() ? std::string("needs more than an empty word") : std::string();
      });
    }
  }
}

/// CLI11 takes -inf for the options -i, -n and -f, and -.5 for an option, too. A leading blank
/// makes them words, and parse_value passes over blanks.
void keep_numbers(std::vector<std::string>& words) {
  if (words.empty() || (words[0] != "show" && words[0] != "function")) return;
  for (std::string& word : words) {
    if (word == "--") return;
    const std::string lower = formats::lower_case(word);
    if (lower == "-inf" || lower == "-infinity" || lower == "-nan" || lower.starts_with("-."))
      word.insert(0, " ");
  }
}

/// Says what CLI11 left over, if anything, and what comes near.
void refuse_rest(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    refuse_rest(*command);
    const std::vector<std::string> rest = command->remaining();
    for (const std::string& word : rest) {
      if (word.starts_with('-') && word != "--") refuse_option(*command, word);
    }
    if (!rest.empty()) {
      throw Error(command->get_name() + ": one word too many: " + formats::in_quotes(rest.front()));
    }
  }
}

/// 'help COMMAND' is 'COMMAND --help'.
std::vector<std::string> words_of_help(std::vector<std::string> words) {
  if (words.size() < 2 || !words[1].starts_with('-')) words.erase(words.begin());
  if (words.empty() || !words.back().starts_with('-')) words.emplace_back("--help");
  return words;
}

/// Whether an option sends a file to standard output; what is printed must not be among its bytes.
bool writes_to_output(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view option : {"-o", "--output", "--report"}) {
      if (words[i] == std::string(option) + "=-" || words[i] == "-o-" ||
          (words[i] == option && i + 1 < words.size() && words[i + 1] == "-"))
        return true;
    }
  }
  return false;
}

int run(std::vector<std::string> words) {
  if (writes_to_output(words)) std::cout.rdbuf(std::cerr.rdbuf());
  formats::allowed_instruction_sets();  // a wrong mask is refused by every command
  CLI::App app{"Bit-exact models of matrix instructions and of the number formats they compute in",
               "guardbit"};
  app.set_version_flag("--version", "guardbit " + std::string(formats::version()));
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(
      "Example: guardbit show 0.1 --format fp16 --format e4m3\n"
      "'guardbit COMMAND --help' explains a command and gives an example.");
  app.require_subcommand(1);
  int status = 0;
  for (const auto add : commands) add(app, status);
  refuse_empty_words(app);
  if (!words.empty() && words[0] == "help") words = words_of_help(std::move(words));
  check_command(app, words);
  keep_numbers(words);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      refuse_rest(app);
      return fail(refused_option(app, error));
    }
    app.exit(error);  // --help and --version arrive as exceptions
  }
  if (!std::cout.flush()) return fail("standard output: cannot write");
  return status;
}

}  // namespace

int command_line(int count, char** words) {
  hold_standard_streams();
  // A limit on the size of files then fails a write as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  std::ios::sync_with_stdio(false);
  try {
    std::vector<std::string> list(words + std::min(1, count), words + count);
    const SignOfLife sign(list.empty() ? "" : list[0]);
    return run(std::move(list));
  } catch (const Interrupted& interrupted) {
    return report(interrupted);
  } catch (const Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(formats::without_library_words(error.what()));
  }
}

}  // namespace guardbit::tools
