#include <CLI/CLI.hpp>
#include <string>

#include "tools/completion/completion_words.hpp"
#include "tools/completion/shell_scripts.hpp"

namespace guardbit::tools {

namespace {

/// 'NAME:WHAT IT IS' as _describe takes it.
std::string described(const std::string& name, const std::string& what) {
  return "'" + with_replaced(with_replaced(name, ':', "\\:"), '\'', "'\\''") + ":" +
         with_replaced(first_line(what), '\'', "'\\''") + "'";
}

std::string adding(const std::string& words) {
  if (words == file_words) return "_files";
  return words.empty()
             ? "true"
             : "compadd -- " + (words == instruction_names ? "${=_guardbit_instructions}" : words);
}

std::string zsh_case(const CLI::App& command) {
  std::string values, options, commands, positional;
  for (const CLI::App* below : commands_below(command))
    commands += " " + described(below->get_name(), below->get_description());
  for (const CLI::Option* option : command.get_options()) {
    const std::string words = value_words(command, *option);
    if (option->get_positional()) {
      positional = words;
      continue;
    }
    std::string names;
    for (const std::string& name : names_of(*option)) {
      names += (names.empty() ? "" : "|") + name;
      options += " " + described(name, option->get_description());
    }
    if (takes_value(*option)) values += "        " + names + ") " + adding(words) + "; return ;;\n";
  }
  return "    '" + path_of(command) + "')\n      case $previous in\n" + values +
         "      esac\n      options=(" + options + ")\n      commands=(" + commands + ")\n" +
         "      [[ $PREFIX == -* || ${#commands} != 0 ]] || { " + adding(positional) + " }\n" +
         "      ;;\n";
}

constexpr std::string_view zsh_head = R"(_guardbit() {
  local above='' at=2 previous=${words[CURRENT-1]}
  local -a options commands
  if [[ $PREFIX == --*=* ]]; then
    previous=${PREFIX%%=*}
    compset -P '*='
  fi
  while (( at < CURRENT )) && [[ $_guardbit_paths == *"|${above:+$above }${words[at]}|"* ]]; do
    above+=${above:+ }${words[at]}
    (( at += 1 ))
  done
  case $above in
)";

constexpr std::string_view zsh_tail = R"(  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( ${#commands} )); then
    _describe command commands
  fi
}
compdef _guardbit guardbit
)";

}  // namespace

std::string zsh_script(const CLI::App& app) {
  std::string cases;
  for_each_command(app, [&](const CLI::App& command) { cases += zsh_case(command); });
  return "#compdef guardbit\n"
         "# zsh completion of guardbit; load it with: source <(guardbit completion zsh)\n"
         "typeset -g _guardbit_instructions='" +
         instruction_words() + "'\ntypeset -g _guardbit_paths='" + path_list(app) + "'\n" +
         std::string(zsh_head) + cases + std::string(zsh_tail);
}

}  // namespace guardbit::tools
