#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/block_format.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"

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

constexpr std::string_view files = "-f";

template <class List, class Name>
std::string words_of(const List& list, Name name_of) {
  std::string words;
  std::set<std::string> seen;
  for (const auto& entry : list) {
    const std::string name(name_of(entry));
    if (seen.insert(name).second) words += name + " ";
  }
  return words;
}

std::string rounding_words() {
  return words_of(formats::rounding_names, [](std::string_view name) { return name; });
}

std::string overflow_words() {
  return "ieee saturate " +
         words_of(formats::converter_names(), [](std::string_view name) { return name; });
}

std::string instruction_words() {
  return words_of(emulator::catalogue(),
                  [](const auto& entry) { return std::string_view(entry.name); });
}

/// The words that may stand for an option or a positional, by its name; `files` means files, and
/// nothing that no word is known.
std::string named_words(const std::string& command, const std::string& name) {
  if (name == "--arch")
    return words_of(emulator::architectures(), [](const auto& arch) { return arch.name; });
  if (name == "--engine")
    return "auto " + words_of(emulator::engines(), [](const auto& engine) { return engine.name; });
  if (name == "--family") {
    return words_of(emulator::catalogue(),
                    [](const auto& entry) { return emulator::family_name(entry.family); });
  }
  if (name == "--type") return format_words(false);
  if (command == "run" && name.starts_with("--") && name != "--toolkit" && name != "--threads" &&
      name != "--scale-d") {
    return std::string(files);
  }
  if (name == "CAPTURE") return std::string(files);
  if (name == "INSTRUCTION" || (command == "list" && name == "NAME"))
    return "$_guardbit_instructions";
  return {};
}

/// The same by the type that the help shows, which says it best where there is one.
std::string typed_words(const std::string& command, const std::string& type) {
  if (type == "FORMAT") return format_words(command == "formats" || command == "cast");
  if (type == "ROUNDING") return rounding_words();
  if (type == "OVERFLOW") return overflow_words();
  if (type == "FILE") return std::string(files);
  // An option with a closed list of its own names it in braces: {a,b,c}.
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string words = type.substr(open + 1, close - open - 1);
  std::replace(words.begin(), words.end(), ',', ' ');
  return words;
}

std::string value_words(const CLI::App& command, const CLI::Option& option) {
  const std::string words = typed_words(command.get_name(), option.get_type_name());
  return words.empty() ? named_words(command.get_name(), option.get_name()) : words;
}

std::string shown_names(const CLI::Option& option, std::string_view separator) {
  std::string names;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : std::string(separator)) + "--" + name;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "" : std::string(separator)) + "-" + name;
  return names;
}

/// One `case` of the script: what may follow a command, by the word before the cursor.
void print_command(const CLI::App& command) {
  std::string options;
  std::string positional;
  bool one_positional = false;
  std::cout << "    " << command.get_name() << ")\n      case $previous in\n";
  for (const CLI::Option* option : command.get_options()) {
    const std::string words = value_words(command, *option);
    if (option->get_positional()) {
      positional = words;
      one_positional = option->get_items_expected_max() == 1;
      continue;
    }
    options += shown_names(*option, " ") + " ";
    if (option->get_items_expected_max() == 0) continue;
    std::cout << "        " << shown_names(*option, "|") << ") words=\"" << words
              << "\" has_value=1 ;;\n";
  }
  std::cout << "      esac\n      options='" << options << "' positional=\"" << positional
            << "\" most=" << (one_positional ? 1 : 1000) << " ;;\n";
}

// The script reads the line itself: bash breaks its words at ':' and '=' (COMP_WORDBREAKS), which
// instruction names and user-defined formats contain, and takes completions from the last break on.
constexpr std::string_view script_head = R"(_guardbit() {
  local IFS=$' \t\n' line=${COMP_LINE-}
  local words='' has_value='' options='' positional='' most=0 current previous
  [[ -n $line ]] && line=${line:0:${COMP_POINT:-${#line}}} || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
  local -a given
  read -ra given <<< "$line"
  [[ $line == *[[:blank:]] ]] && given+=('')
  local last=$((${#given[@]} - 1))
  current=${given[last]} previous=${given[last-1]}
  [[ $current == --*=* ]] && previous=${current%%=*} current=${current#*=}
  COMPREPLY=()
  ((last == 0)) && return
  ((last == 1)) && words=$_guardbit_commands has_value=1
  ((last > 1)) && case ${given[1]} in
)";

constexpr std::string_view script_tail = R"(  esac
  if [[ -z $has_value ]]; then
    # The one word that a command takes usually comes first.
    ((most == 1 && last > 2)) && [[ ${given[2]} != -* ]] && positional=''
    [[ $current == -* || -z $positional ]] && words=$options || words=$positional
  fi
  local -a found=()
  if [[ $words == -f ]]; then
    mapfile -t found < <(compgen -f -- "$current")
    compopt -o filenames -o default 2> /dev/null
  elif [[ -n $words ]]; then
    mapfile -t found < <(compgen -W "$words" -- "$current")
  fi
  COMPREPLY=("${found[@]#"${current%"${current##*[:=]}"}"}")
}
complete -F _guardbit guardbit
)";

void print_bash(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* command : commands) names += command->get_name() + " ";
  std::cout << "# bash completion of guardbit; load it with: source <(guardbit completion bash)\n"
            << "_guardbit_instructions='" << instruction_words() << "'\n"
            << "_guardbit_commands='" << names << "--help --version'\n"
            << script_head;
  for (const CLI::App* command : commands) print_command(*command);
  std::cout << script_tail;
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
