#include <CLI/CLI.hpp>
#include <string>

#include "formats/support/joined.hpp"
#include "tools/completion/completion_words.hpp"
#include "tools/completion/shell_scripts.hpp"

namespace guardbit::tools {

namespace {

/// One `case` of the script: what may follow a command, by the word before the cursor.
std::string bash_case(const CLI::App& command) {
  std::string options, positional, values;
  std::string commands;
  bool one_positional = false;
  for (const CLI::App* below : commands_below(command)) commands += below->get_name() + " ";
  for (const CLI::Option* option : command.get_options()) {
    const std::string words = value_words(command, *option);
    if (option->get_positional()) {
      positional = words;
      one_positional = option->get_items_expected_max() == 1;
      continue;
    }
    options += formats::joined(names_of(*option), " ") + " ";
    if (takes_value(*option))
      values += "        " + formats::joined(names_of(*option), "|") + ") words=\"" + words +
                "\" has_value=1 ;;\n";
  }
  return "    '" + path_of(command) + "')\n      case $previous in\n" + values +
         "      esac\n      options='" + options + "' positional=\"" +
         (commands.empty() ? positional : commands) +
         "\" most=" + (commands.empty() && one_positional ? "1" : "1000") + " ;;\n";
}

// The script reads the line itself: bash breaks its words at ':' and '=' (COMP_WORDBREAKS), which
// instruction names and user-defined formats contain, and takes completions from the last break on.
constexpr std::string_view bash_head = R"(_guardbit() {
  local IFS=$' \t\n' line=${COMP_LINE-}
  local words='' has_value='' options='' positional='' most=0 current previous path='' at=1
  [[ -n $line ]] && line=${line:0:${COMP_POINT:-${#line}}} || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
  local -a given
  read -ra given <<< "$line"
  [[ $line == *[[:blank:]] ]] && given+=('')
  local last=$((${#given[@]} - 1))
  current=${given[last]} previous=${given[last-1]}
  [[ $current == --*=* ]] && previous=${current%%=*} current=${current#*=}
  COMPREPLY=()
  ((last == 0)) && return
  while ((at < last)) && [[ " $_guardbit_paths " == *"|${path:+$path }${given[at]}|"* ]]; do
    path+=${path:+ }${given[at]}
    ((at += 1))
  done
  case $path in
)";

constexpr std::string_view bash_tail = R"(  esac
  if [[ -z $has_value ]]; then
    # The one word that a command takes usually comes first.
    ((most == 1 && last > at)) && [[ ${given[at]} != -* ]] && positional=''
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

}  // namespace

std::string bash_script(const CLI::App& app) {
  std::string cases;
  for_each_command(app, [&](const CLI::App& command) { cases += bash_case(command); });
  return "# bash completion of guardbit; load it with: source <(guardbit completion bash)\n"
         "_guardbit_instructions='" +
         instruction_words() + "'\n_guardbit_paths='" + path_list(app) + "'\n" +
         std::string(bash_head) + cases + std::string(bash_tail);
}

}  // namespace guardbit::tools
