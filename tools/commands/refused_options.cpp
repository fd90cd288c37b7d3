#include "tools/commands/refused_options.hpp"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::tools {

namespace {

/// The command that was given.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  return given.empty() ? app : innermost(*given.front());
}

/// The option that the text speaks of: it names one, followed by what is wrong with it.
const CLI::Option* option_of(const CLI::App& command, std::string_view text) {
  const CLI::Option* found = nullptr;
  std::size_t first = text.size(), longest = 0;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const std::size_t at = text.find(name);
    // It stands before the words that were given to it, which may look like options, too.
    if (at > first || (at == first && name.size() <= longest)) continue;
    // "--scale" is a part of "--scale-a" and of other words.
    const std::string_view rest = text.substr(at + name.size());
    if (at != 0 && text[at - 1] != ' ') continue;
    if (!rest.empty() && rest[0] != ':' && rest[0] != ' ') continue;
    found = option;
    first = at;
    longest = name.size();
  }
  return found;
}

/// The words between the first `begin` and the next `end` of a text; nothing where these are not.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + begin.size());
  const std::size_t length = text.find(end);
  return length == std::string_view::npos ? std::string() : std::string(text.substr(0, length));
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    parts.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

/// What it takes, without what CLI11 writes of its range.
std::string operand_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find_first_of(": "));
}

bool is_number(const std::string& word) {
  double number = 0;
  return CLI::detail::lexical_cast(word, number);
}

/// A word that its option does not take.
std::string refused_word(const CLI::Option& option, const std::string& word,
                         const std::string& text) {
  const std::string name = option.get_name() + ": ";
  const std::string type = option.get_type_name();
  const std::string given = formats::in_quotes(word);
  const std::string range = between(type, " in [", "]");
  if (const std::size_t dash = range.find(" - "); dash != std::string::npos)
    return name + given + (is_number(word) ? " is out of range" : " is not a number") +
           " (valid: " + range.substr(0, dash) + " to " + range.substr(dash + 3) + ")";
  if (text.find(" not in {") != std::string::npos) {
    const std::string list = between(type, "{", "}");
    const std::vector<std::string_view> words = parts_of(list);
    std::string valid;
    for (const std::string_view one : words)
      valid += (valid.empty() ? "" : ", ") + std::string(one);
    return name + formats::unknown_name("word", word, words) + " (valid: " + valid + ")";
  }
  return name + given + (is_number(word) ? " is not a number that it takes" : " is not a number");
}

}  // namespace

std::string refused_option(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const CLI::Option* const option = option_of(innermost(app), text);
  if (option == nullptr) return text;
  const std::vector<std::string>& words = option->results();
  if (option->get_items_expected_max() == 0)
    return option->get_name() + ": takes no value of its own";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (words.size() > static_cast<std::size_t>(option->get_items_expected_max()))
      return option->get_name() + ": is given " + std::to_string(words.size()) + " times";
    return option->get_name() + ": needs " + operand_of(*option);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr)
    return option->get_name() + ": needs " + text.substr(text.find(" requires ") + 10) + ", too";
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    return refused_word(*option, words.empty() ? "" : words.back(), text);
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    for (const std::string_view own :
         {" not in range ", " not in {", "umber less ", "parsing number"})
      if (text.find(own) != std::string::npos)
        for (const std::string& word : words)
          if (text.find(word) != std::string::npos) return refused_word(*option, word, text);
  }
  return text;
}

std::string below_zero(const std::string& word) {
  return word.starts_with('-') ? formats::in_quotes(word) + " is below zero" : "";
}

void refuse_unread(const CLI::App& command, std::initializer_list<const char*> options,
                   const std::string& when) {
  for (const char* const name : options)
    if (command.get_option(name)->count() != 0)
      throw formats::Error(name,
                           "is read " + when + (when.starts_with("without ") ? "" : " alone"));
}

void refuse_toolkit(const emulator::MatrixInstruction& instruction, std::string_view toolkit) {
  const bool matters = instruction.toolkit.from != 0 || instruction.toolkit.until != 0;
  if (!matters && !toolkit.empty())
    throw formats::Error("--toolkit", "is not read: every ptxas compiles " +
                                          std::string(std::string_view(instruction.name)) +
                                          " alike");
}

}  // namespace guardbit::tools
