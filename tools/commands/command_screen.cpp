#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/files/text_file.hpp"
#include "formats/support/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/read_json.hpp"
#include "tools/report/screen_verdict.hpp"

namespace guardbit::tools {

namespace {

using gpu::Health;

struct Options {
  std::vector<std::string> files;
  std::string output, nodes, pass, fail, events;
  bool json = false;
};

void write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  formats::AtomicOutput file(path);
  file.write(text);
  file.commit();
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void print(const Verdicts& verdicts) {
  std::size_t counts[3] = {};
  const auto nodes = verdicts.nodes();
  for (const auto& [host, verdict] : nodes) {
    ++counts[static_cast<std::size_t>(verdict)];
    if (verdict != Health::healthy) std::cout << host << ": " << name_of(verdict) << '\n';
  }
  if (const auto missing = verdicts.missing_parts(); !missing.empty())
    std::cout << "missing parts: " << listed(missing)
              << "; run each with 'guardbit gpu screen --part'\n";
  std::cout << counted(nodes.size(), "node") << ", " << counted(verdicts.gpus(), "GPU") << ": "
            << counts[static_cast<std::size_t>(Health::healthy)] << " healthy, "
            << counts[static_cast<std::size_t>(Health::faulty)] << " faulty, "
            << counts[static_cast<std::size_t>(Health::untested)] << " untested\n";
}

int merge(const Options& options) {
  Verdicts verdicts;
  for (const std::string& file : options.files)
    verdicts.add(read_json<nlohmann::ordered_json>(file), file);
  if (!options.nodes.empty()) {
    std::istringstream words(formats::read_text(options.nodes));
    for (std::string host; words >> host;) verdicts.expect(host);
  }
  const nlohmann::ordered_json merged = verdicts.to_json();
  write_file(options.output, merged.dump(1) + "\n");
  write_file(options.pass, verdicts.slurm_nodes(true) + "\n");
  write_file(options.fail, verdicts.slurm_nodes(false) + "\n");
  write_file(options.events, verdicts.kubernetes_events().dump(1) + "\n");
  if (options.json)
    print_json(merged);
  else
    print(verdicts);
  switch (verdicts.worst()) {
    case Health::healthy: return 0;
    case Health::faulty: return exit_mismatch;
    case Health::untested: break;
  }
  return exit_bad_input;
}

}  // namespace

void add_screen(CLI::App& app, int& status) {
  CLI::App* const screen =
      app.add_subcommand("screen", "Put the verdicts of 'guardbit gpu screen' together");
  screen->require_subcommand(1);
  screen->footer("Example: guardbit screen merge node*.json --slurm-fail drain.txt");
  const auto options = std::make_shared<Options>();
  CLI::App* const command = screen->add_subcommand(
      "merge", "Verdicts of many GPUs and hosts as one file, and lists of nodes");
  command
      ->add_option("VERDICT", options->files,
                   "Files that 'guardbit gpu screen -o' wrote, or that were merged before")
      ->required();
  command->add_option(
      "-o,--output", options->output,
      "Write all verdicts to this file: the same bytes in whatever order they come");
  command->add_option(
      "--nodes", options->nodes,
      "A file with the names of all nodes that must have a verdict; one without is untested");
  command->add_option("--slurm-pass", options->pass,
                      "Write the nodes whose GPUs are all healthy, as Slurm takes them: n1,n2");
  command->add_option("--slurm-fail", options->fail, "Write all other nodes in the same way");
  command->add_option("--kubernetes", options->events,
                      "Write an event for each node as JSON, for 'kubectl create -f'");
  command->add_flag("--json", options->json, "Print what --output writes");
  command->footer(
      "Exit status 0 where all are healthy, 1 where a GPU is faulty, 2 where one could not be tested or a part is missing.\n"
      "Example: guardbit screen merge node*.json -o all.json --slurm-pass pass.txt --slurm-fail drain.txt");
  command->callback([options, &status] { status = merge(*options); });
}

}  // namespace guardbit::tools
