#include "tools/benchmarks/benchmark_instructions.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::tools {

using emulator::Engine;

std::vector<MeasuredInstruction> chosen_instructions(const BenchOptions& options) {
  if (!options.instruction.empty()) {
    return {{{"row", options.arch, options.instruction},
             emulator::require_instruction(options.arch, options.instruction, "bench")}};
  }
  std::vector<MeasuredInstruction> instructions;
  for (const Case& of : cases())
    instructions.push_back({of, emulator::require_instruction(of.arch, of.instruction, "bench")});
  return instructions;
}

bool is_asked_for(const BenchOptions& options, const Engine& engine) {
  return options.engines.empty() || std::find(options.engines.begin(), options.engines.end(),
                                              engine.name) != options.engines.end();
}

bool is_slow(const Engine& engine) {
  return engine.name == "reference" || engine.name == "portable" || engine.device != nullptr;
}

std::vector<int> thread_counts(const BenchOptions& options, const Engine& engine,
                               std::string_view family) {
  if (!options.threads.empty()) return options.threads;
  if (is_slow(engine) || family != "normal") return {1};
  const int all = formats::thread_count(0);
  return options.full && all > 1 ? std::vector{1, all} : std::vector{1};
}

}  // namespace guardbit::tools
