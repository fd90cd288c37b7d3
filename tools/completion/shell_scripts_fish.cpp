#include <CLI/CLI.hpp>
#include <string>

#include "tools/completion/completion_words.hpp"
#include "tools/completion/shell_scripts.hpp"

namespace guardbit::tools {

namespace {

/// In single quotes.
std::string quoted(const std::string& text) {
  return "'" + with_replaced(with_replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

/// How the words of a value or a positional are offered.
std::string offered(const std::string& words) {
  if (words == file_words) return " -F";
  if (words.empty()) return " -f";
  return " -f -a " +
         (words == instruction_names ? std::string("'$_guardbit_instructions'") : quoted(words));
}

std::string lines_of(const CLI::App& command) {
  const std::string begin =
      "complete -c guardbit -n " + quoted("_guardbit_at " + quoted(path_of(command)));
  std::string lines;
  for (const CLI::App* below : commands_below(command)) {
    lines += begin + " -f -a " + quoted(below->get_name()) + " -d " +
             quoted(first_line(below->get_description())) + "\n";
  }
  for (const CLI::Option* option : command.get_options()) {
    const std::string words = value_words(command, *option);
    if (option->get_positional()) {
      if (!words.empty()) lines += begin + offered(words) + "\n";
      continue;
    }
    std::string line = begin;
    for (const std::string& name : option->get_lnames()) line += " -l " + name;
    for (const std::string& name : option->get_snames()) line += " -s " + name;
    line += takes_value(*option) ? " -r" + offered(words) : " -f";
    lines += line + " -d " + quoted(first_line(option->get_description())) + "\n";
  }
  return lines;
}

constexpr std::string_view at_function = R"(
# Whether the words before the cursor lead to this command and to none below it.
function _guardbit_at
  set -l path ''
  for word in (commandline -opc)[2..-1]
    set -l longer (string trim -- "$path $word")
    contains -- $longer $_guardbit_paths; or break
    set path $longer
  end
  test "$path" = "$argv[1]"
end
)";

}  // namespace

std::string fish_script(const CLI::App& app) {
  std::string paths, lines;
  for_each_command(app, [&](const CLI::App& command) {
    if (command.get_parent() != nullptr) paths += " " + quoted(path_of(command));
    lines += lines_of(command);
  });
  return "# fish completion of guardbit; load it with: guardbit completion fish | source\n"
         "set -g _guardbit_instructions " +
         instruction_words() + "\nset -g _guardbit_paths" + paths + "\n" +
         std::string(at_function) + lines;
}

}  // namespace guardbit::tools
