#include "tools/completion/completion_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "experiments/scaling/recipes.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/block_format.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"

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
  return words_of(formats::words_of<formats::Rounding>, [](std::string_view name) { return name; });
}

std::string overflow_words() {
  return "ieee saturate " +
         words_of(formats::converter_names(), [](std::string_view name) { return name; });
}

std::string arch_words() {
  return words_of(emulator::architectures(), [](const auto& arch) { return arch.name; });
}

/// The words that may stand for an option or a positional, by its name.
std::string named_words(const std::string& command, const std::string& name) {
  if (name == "--arch" || name == "--machine") return arch_words();
  if (name == "--engine")
    return "auto " + words_of(emulator::engines(), [](const auto& engine) { return engine.name; });
  if (name == "--family" && command == "list") {
    return words_of(emulator::catalogue(),
                    [](const auto& entry) { return formats::word_of(entry.family); });
  }
  if (name == "--type") return format_words(false);
  if (command == "run" && name.starts_with("--") && name != "--toolkit" && name != "--threads" &&
      name != "--scale-d") {
    return std::string(file_words);
  }
  if (name == "NAME" && (command == "run" || command == "show"))
    return words_of(experiments::suite(), [](const auto& experiment) { return experiment.name; });
  if (name == "NAME" && command == "function")
    return words_of(emulator::function_catalogue(), [](const auto& entry) { return entry.name; });
  if (name == "--recipes")
    return words_of(experiments::known_recipes({}), [](const auto& recipe) { return recipe.name; });
  if (name == "CAPTURE") return std::string(file_words);
  if (name == "INSTRUCTION" || (command == "list" && name == "NAME"))
    return std::string(instruction_names);
  return {};
}

/// The same by the type that the help shows, which says it best where there is one.
std::string typed_words(const std::string& command, const std::string& type) {
  if (type == "FORMAT") return format_words(command == "formats" || command == "cast");
  if (type == "ROUNDING") return rounding_words();
  if (type == "OVERFLOW") return overflow_words();
  if (type == "FILE" || type == "DIR") return std::string(file_words);
  // An option with a closed list of its own names it in braces: {a,b,c}.
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string words = type.substr(open + 1, close - open - 1);
  std::replace(words.begin(), words.end(), ',', ' ');
  return words;
}

}  // namespace

std::string instruction_words() {
  return words_of(emulator::catalogue(),
                  [](const auto& entry) { return std::string_view(entry.name); });
}

std::string value_words(const CLI::App& command, const CLI::Option& option) {
  if (option.get_name() == "COMMAND" && command.get_parent() != nullptr)
    return words_of(commands_below(*command.get_parent()),
                    [](const CLI::App* below) { return below->get_name(); });
  const std::string words = typed_words(command.get_name(), option.get_type_name());
  return words.empty() ? named_words(command.get_name(), option.get_name()) : words;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

std::vector<CLI::App*> commands_below(const CLI::App& app) {
  // The library gives the commands of a const App no filter.
  return const_cast<CLI::App&>(app).get_subcommands([](const CLI::App*) { return true; });
}

std::string path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  const std::string above = path_of(*command.get_parent());
  return (above.empty() ? "" : above + " ") + command.get_name();
}

void for_each_command(const CLI::App& app, const std::function<void(const CLI::App&)>& each) {
  each(app);
  for (const CLI::App* command : commands_below(app)) for_each_command(*command, each);
}

std::string path_list(const CLI::App& app) {
  std::string paths = "|";
  for_each_command(app, [&](const CLI::App& command) {
    if (command.get_parent() != nullptr) paths += path_of(command) + "|";
  });
  return paths;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string with_replaced(std::string_view text, char character, std::string_view by) {
  std::string result;
  for (const char c : text) {
    if (c == character) {
      result += by;
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace guardbit::tools
