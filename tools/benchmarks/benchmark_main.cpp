// The part of `guardbit bench` that measures; `guardbit` starts it.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/support/error.hpp"
#include "tools/benchmarks/bench_options.hpp"
#include "tools/benchmarks/benchmarks.hpp"
#include "tools/console/sign_of_life.hpp"
#include "tools/console/terminal.hpp"

namespace {

using namespace guardbit::tools;

constexpr int exit_bad_input = 2;

Schedule schedule_of(const BenchOptions& options) {
  Schedule schedule = options.full ? Schedule{5, 0.2} : Schedule{3, 0.02};
  if (options.repetitions != 0) schedule.repetitions = options.repetitions;
  if (options.seconds > 0) schedule.seconds = options.seconds;
  return schedule;
}

int run(const BenchOptions& options) {
  const std::vector<Group> groups = plan(options);
  if (groups.empty()) throw guardbit::formats::Error("bench", "no benchmark has such a name");
  if (options.list) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const Group& group : groups)
      for (const Planned& planned : group) names.push_back(planned.result.name);
    if (options.json) {
      std::cout << nlohmann::ordered_json{{"benchmarks", names}}.dump(1) << '\n';
      return 0;
    }
    for (const auto& name : names) std::cout << name.get<std::string>() << '\n';
    return 0;
  }
  const Schedule schedule = schedule_of(options);
  const Interruption interruption;
  std::vector<Result> results;
  std::optional<Interrupted> interrupted;
  try {
    ProgressLine progress("measuring", groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      progress.update(i);
      const std::vector<Result> measured = measure(groups[i], schedule, interruption);
      results.insert(results.end(), measured.begin(), measured.end());
    }
    interruption.check();
  } catch (const Interrupted& end) {
    interrupted = {end.exit_status, ": these are the results so far"};
  }
  if (options.json) {
    std::cout << document(results, schedule, !interrupted).dump(1) << '\n';
  } else {
    print_table(results, std::cout);
  }
  if (interrupted) throw *interrupted;
  return 0;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"Measures for guardbit bench", "guardbit bench"};
  BenchOptions options;
  add_bench_options(app, options);
  const SignOfLife sign("bench");
  try {
    app.parse(count, words);
    const int status = run(options);
    if (!std::cout.flush()) throw guardbit::formats::Error("standard output", "cannot write");
    return status;
  } catch (const Interrupted& interrupted) {
    return report(interrupted);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "guardbit: " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cout.flush();
    std::cerr << "guardbit: " << error.what() << '\n';
  }
  return exit_bad_input;
}
