#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/block.hpp"
#include "formats/catalogue.hpp"
#include "formats/converters.hpp"
#include "formats/error.hpp"
#include "tools/commands.hpp"

namespace guardbit::tools {

namespace {

std::string format_words(bool with_blocks) {
  std::string words;
  for (const formats::FormatEntry& entry : formats::format_catalogue)
    words += std::string(entry.name) + " ";
  if (with_blocks) {
    for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue)
      words += std::string(entry.name) + " ";
  }
  return words;
}

/// The words that may stand for an option's value, by the type name that its help shows; a leading
/// "-f" means files.
std::string value_words(const std::string& type) {
  if (type == "FORMAT") return format_words(true);
  if (type == "ROUNDING") {
    std::string words;
    for (const std::string_view name : formats::rounding_names) words += std::string(name) + " ";
    return words;
  }
  if (type == "OVERFLOW") {
    std::string words = "ieee saturate ";
    for (const std::string_view name : formats::converter_names()) words += std::string(name) + " ";
    return words;
  }
  if (type == "FILE") return "-f";
  // An option with a closed list of its own names it in braces: {a,b,c}.
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words) {
    if (c == ',') c = ' ';
  }
  return words;
}

std::string shown_names(const CLI::Option& option, std::string_view separator) {
  std::string names;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : std::string(separator)) + "--" + name;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "" : std::string(separator)) + "-" + name;
  return names;
}

/// One `case` of the script: what follows a command, by the word before the cursor.
void print_command(const CLI::App& command) {
  std::string options;
  std::string positional;
  std::cout << "    " << command.get_name() << ")\n      case $previous in\n";
  for (const CLI::Option* option : command.get_options()) {
    const std::string words = value_words(option->get_type_name());
    if (option->get_positional()) {
      positional = words;
      continue;
    }
    options += shown_names(*option, " ") + " ";
    if (option->get_items_expected_max() == 0) continue;
    std::cout << "        " << shown_names(*option, "|") << ") words='" << words << "' ;;\n";
  }
  if (positional == "-f") positional.clear();  // file names complete by default
  std::cout << "        *) words='" << positional << ' ' << options << "' ;;\n      esac ;;\n";
}

void print_bash(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* command : commands) names += command->get_name() + " ";
  // ':' and '=' break words in bash, which user-defined formats contain; nothing completes past
  // them.
  std::cout
      << "# bash completion of guardbit; load it with: source <(guardbit completion bash)\n"
         "_guardbit() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=''\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W '"
      << names
      << "--help --version' -- \"$current\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : commands) print_command(*command);
  std::cout << "  esac\n"
               "  [[ $words == -f ]] && words=''\n"
               "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
               "}\n"
               "complete -o default -F _guardbit guardbit\n";
}

}  // namespace

void add_completion(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell")->type_name("{bash}")->required();
  command->footer("Example: source <(guardbit completion bash)");
  command->callback([shell, &app] {
    if (*shell != "bash")
      throw formats::Error("completion", "no completion for '" + *shell + "'", "bash");
    print_bash(app);
  });
}

}  // namespace guardbit::tools
