#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What may stand where on a command line, of the tree of commands.
namespace guardbit::tools {

/// Stands for the names of files.
inline constexpr std::string_view file_words = "-f";
/// Stands for the names of instructions, which are many.
inline constexpr std::string_view instruction_names = "$_guardbit_instructions";

/// The names of instructions, with blanks between.
std::string instruction_words();

/// The words that may stand for an option or a positional of a command, with blanks between;
/// file_words, instruction_names, or empty where none are known.
std::string value_words(const CLI::App& command, const CLI::Option& option);

/// "--output", "-o"
std::vector<std::string> names_of(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
std::vector<CLI::App*> commands_below(const CLI::App& app);

/// The names below the program's own that lead to a command: "gpu list".
std::string path_of(const CLI::App& command);
/// Every command at every level, the program itself first.
void for_each_command(const CLI::App& app, const std::function<void(const CLI::App&)>& each);
/// The paths of all commands below the program between bars: "|gpu|gpu list|".
std::string path_list(const CLI::App& app);

/// The text up to its first line's end.
std::string first_line(const std::string& text);
/// The text with every such character replaced.
std::string with_replaced(std::string_view text, char character, std::string_view by);

}  // namespace guardbit::tools
