#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "tools/commands/commands.hpp"
#include "tools/completion/completion_words.hpp"
#include "tools/completion/man_page.hpp"
#include "tools/completion/shell_scripts.hpp"

namespace guardbit::tools {

namespace {

/// The command that these words lead to.
const CLI::App& command_at(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const CLI::App* found = nullptr;
    std::vector<std::string_view> names;
    for (const CLI::App* below : commands_below(*at)) {
      names.push_back(below->get_name());
      if (below->get_name() == word) found = below;
    }
    if (found == nullptr) throw formats::Error(formats::unknown_name("command", word, names));
    at = found;
  }
  return *at;
}

void write_pages(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw formats::Error(formats::printable(folder), "cannot make this folder");
  for_each_command(app, [&](const CLI::App& command) {
    formats::write_file(folder + "/" + man_name(command) + ".1", man_page(command));
  });
}

}  // namespace

void add_completion(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell")->type_name("{bash,zsh,fish}")->required();
  command->footer(
      "Example: source <(guardbit completion bash)\n"
      "         source <(guardbit completion zsh)\n"
      "         guardbit completion fish | source");
  command->callback([shell, &app] {
    if (*shell == "bash") {
      std::cout << bash_script(app);
    } else if (*shell == "zsh") {
      std::cout << zsh_script(app);
    } else if (*shell == "fish") {
      std::cout << fish_script(app);
    } else {
      throw formats::Error("completion", "no completion for " + formats::in_quotes(*shell),
                           "bash, zsh, fish");
    }
  });
}

void add_man(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page of a command");
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto folder = std::make_shared<std::string>();
  command->add_option("COMMAND", *words, "A command, as in 'gpu list' (default guardbit itself)");
  command->add_option("-o,--output", *folder, "Write the pages of all commands into this folder")
      ->type_name("DIR");
  command->footer("Example: guardbit man cast | man -l -\n         guardbit man -o man1");
  command->callback([words, folder, &app] {
    const CLI::App& page = command_at(app, *words);
    if (folder->empty()) {
      std::cout << man_page(page);
    } else {
      write_pages(app, *folder);
    }
  });
}

void add_help(CLI::App& app, int&) {
  // main turns 'help COMMAND' into 'COMMAND --help' before anything is parsed.
  CLI::App* command = app.add_subcommand("help", "Print the help of a command");
  command->add_option("COMMAND", "A command, as in 'gpu list' (default guardbit itself)")
      ->expected(0, -1);
  command->footer("Example: guardbit help experiment run");
}

}  // namespace guardbit::tools
