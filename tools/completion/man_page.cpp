#include "tools/completion/man_page.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string>

#include "formats/support/version.hpp"
#include "tools/completion/completion_words.hpp"

namespace guardbit::tools {

namespace {

/// Text that means nothing to the formatter.
std::string plain(const std::string& text) {
  std::string result;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    at_start = c == '\n';
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return result;
}

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string full_name(const CLI::App& command) {
  const std::string path = path_of(command);
  return path.empty() ? "guardbit" : "guardbit " + path;
}

/// As the help names the kind of a value.
std::string type_text(const CLI::Option& option) {
  return takes_value(option) ? option.get_type_name() : std::string();
}

std::string entry(const std::string& head, const std::string& what) {
  return ".TP\n.B " + plain(head) + "\n" + plain(what) + "\n";
}

std::string options_of(const CLI::App& command, bool positional) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() != positional) continue;
    std::string names = positional ? option->get_name() : "";
    if (!positional)
      for (const std::string& name : names_of(*option)) names += (names.empty() ? "" : ", ") + name;
    const std::string type = type_text(*option);
    if (!type.empty() && type != names) names.append(" ").append(type);
    text += entry(names, option->get_description());
  }
  return text;
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : ".SH " + title + "\n" + text;
}

/// Lines as they stand.
std::string verbatim(const std::string& text) {
  return text.empty() ? "" : ".nf\n" + plain(text) + "\n.fi\n";
}

}  // namespace

std::string man_name(const CLI::App& command) {
  return with_replaced(full_name(command), ' ', "-");
}

std::string man_page(const CLI::App& command) {
  std::string synopsis = ".B " + plain(full_name(command)) + "\n[OPTIONS]";
  if (!commands_below(command).empty()) synopsis += " COMMAND";
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      synopsis +=
          option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
  std::string commands, see;
  for (const CLI::App* below : commands_below(command)) {
    commands += entry(below->get_name(), below->get_description());
    see += (see.empty() ? "" : ", ") + plain(man_name(*below)) + "(1)";
  }
  if (command.get_parent() != nullptr)
    see = plain(man_name(*command.get_parent())) + "(1)" + (see.empty() ? "" : ", ") + see;
  return ".TH " + upper_case(man_name(command)) + " 1 \"\" \"guardbit " +
         std::string(formats::version()) + "\" \"guardbit\"\n" +
         section("NAME",
                 plain(man_name(command)) + " \\- " + plain(command.get_description()) + "\n") +
         section("SYNOPSIS", synopsis + "\n") + section("COMMANDS", commands) +
         section("ARGUMENTS", options_of(command, true)) +
         section("OPTIONS", options_of(command, false)) +
         section("NOTES", verbatim(command.get_footer())) + section("SEE ALSO", see + "\n");
}

}  // namespace guardbit::tools
