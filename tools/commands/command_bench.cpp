#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/support/error.hpp"
#include "formats/support/own_file.hpp"
#include "formats/support/printable.hpp"
#include "tools/benchmarks/bench_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/read_json.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;
using nlohmann::ordered_json;

/// The program that measures: beside this one, so that only it needs Google Benchmark to start.
constexpr const char* program = "guardbit_benchmark";

struct Measured {
  double rate = 0;
  std::string unit;
  /// to the yardstick of its run; 0: none
  double ratio = 0;
  /// to Eigen compiled with -march=native; 0: none
  double native_ratio = 0;
};

struct Run {
  std::string machine;
  /// in the file's order
  std::vector<std::string> names;
  std::map<std::string, Measured> results;
};

Run read_run(const std::string& path) {
  const std::string where = formats::printable(path);
  const std::string text = formats::read_text(path);
  Run run;
  try {
    const ordered_json document = ordered_json::parse(text, limited_depth(where));
    run.machine = document.at("machine").at("cpu").get<std::string>();
    for (const ordered_json& result : document.at("results")) {
      const auto name = result.at("name").get<std::string>();
      const double rate = result.at("rate").get<double>();
      if (!(rate > 0)) throw Error(where, "result " + formats::printable(name) + " has no rate");
      if (!run.results.contains(name)) run.names.push_back(name);
      run.results[name] = {rate, result.at("unit").get<std::string>(), result.value("ratio", 0.0),
                           result.value("native_ratio", 0.0)};
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(where, "is not what 'guardbit bench --json' prints");
  }
  return run;
}

/// New over old: of the ratios to yardsticks where both runs have one, since those depend least on
/// what else the machine did; else of the rates.
double speedup(const Measured& before, const Measured& after) {
  const bool by_ratio = before.ratio > 0 && after.ratio > 0;
  return by_ratio ? after.ratio / before.ratio : after.rate / before.rate;
}

std::string painted_speedup(double x) {
  constexpr double noticeable = 1.05;
  const Colour colour = x >= noticeable       ? Colour::green
                        : x <= 1 / noticeable ? Colour::red
                                              : Colour::plain;
  return paint(fixed(x, 2), colour);
}

void compare(const BenchOptions& options) {
  const Run before = read_run(options.compare[0]);
  const Run after = read_run(options.compare[1]);
  ordered_json document = {{"old", options.compare[0]},
                           {"new", options.compare[1]},
                           {"old_machine", before.machine},
                           {"new_machine", after.machine}};
  document["results"] = ordered_json::array();
  Table table("lrrlrrrrr");
  table.add({"benchmark", "old", "new", "", "old ratio", "new ratio", "old to native",
             "new to native", "new/old"});
  double logarithms = 0;
  std::size_t both = 0;
  std::vector<std::string> only_old, only_new;
  for (const std::string& name : before.names) {
    const Measured& x = before.results.at(name);
    const auto found = after.results.find(name);
    if (found == after.results.end()) {
      only_old.push_back(name);
      continue;
    }
    const Measured& y = found->second;
    const double gain = speedup(x, y);
    logarithms += std::log(gain);
    ++both;
    const auto ratio = [](double r) { return r > 0 ? fixed(r, 3) : std::string(); };
    table.add({name, fixed(x.rate, 2), fixed(y.rate, 2), y.unit, ratio(x.ratio), ratio(y.ratio),
               ratio(x.native_ratio), ratio(y.native_ratio), painted_speedup(gain)});
    ordered_json entry = {
        {"name", name}, {"old_rate", x.rate}, {"new_rate", y.rate}, {"speedup", gain}};
    const auto add_ratios = [&](const char* key, double before_ratio, double after_ratio) {
      if (before_ratio > 0) entry[std::string("old_") + key] = before_ratio;
      if (after_ratio > 0) entry[std::string("new_") + key] = after_ratio;
    };
    add_ratios("ratio", x.ratio, y.ratio);
    add_ratios("native_ratio", x.native_ratio, y.native_ratio);
    document["results"].push_back(std::move(entry));
  }
  for (const std::string& name : after.names) {
    if (!before.results.contains(name)) only_new.push_back(name);
  }
  const double mean = both == 0 ? 1 : std::exp(logarithms / static_cast<double>(both));
  if (options.json) {
    document["geometric_mean"] = mean;
    document["only_old"] = only_old;
    document["only_new"] = only_new;
    print_json(document);
    return;
  }
  if (before.machine != after.machine) {
    std::cout << "different machines: " << formats::printable(before.machine) << "; "
              << formats::printable(after.machine) << '\n';
  }
  if (both != 0) table.print(std::cout);
  std::cout << both << " in both files, geometric mean of new/old " << fixed(mean, 2) << "; "
            << only_old.size() << " only in the old, " << only_new.size() << " only in the new\n";
}

/// Becomes the program that measures.
void measure(const CLI::App& command) {
  const std::filesystem::path path =
      std::filesystem::path(formats::own_file()).parent_path() / program;
  if (!std::filesystem::exists(path)) {
    throw Error(
        "bench",
        "the program that measures is not built: 'cmake --build --preset release --target guardbit_benchmark' builds it, "
        "once libbenchmark-dev is installed and 'cmake --preset release' has seen it (--compare works without it)");
  }
  std::vector<std::string> words = given_words(command);
  words.insert(words.begin(), path.string());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::cout.flush();
  execv(path.c_str(), pointers.data());
  throw Error("bench", "cannot start " + path.string());
}

}  // namespace

void add_bench(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure products, conversions and replays beside Eigen and memcpy");
  const auto options = std::make_shared<BenchOptions>();
  add_bench_options(*command, *options);
  command->callback(
      [command, options] { options->compare.empty() ? measure(*command) : compare(*options); });
}

}  // namespace guardbit::tools
