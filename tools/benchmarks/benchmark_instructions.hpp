#pragma once

#include <string_view>
#include <vector>

#include "emulator/engine/engines.hpp"
#include "emulator/model/instruction.hpp"
#include "tools/benchmarks/bench_options.hpp"
#include "tools/benchmarks/benchmark_cases.hpp"

// What the options ask for: instructions, engines, threads.
namespace guardbit::tools {

/// An instruction that is measured under a name.
struct MeasuredInstruction {
  Case of;
  emulator::MatrixInstruction instruction;
};

/// Every case's, or the one that the options name. formats::Error where that is not there.
std::vector<MeasuredInstruction> chosen_instructions(const BenchOptions& options);

bool is_asked_for(const BenchOptions& options, const emulator::Engine& engine);

/// Does a product of usual size keep the engine busy for seconds?
bool is_slow(const emulator::Engine& engine);

/// For operands of a family.
std::vector<int> thread_counts(const BenchOptions& options, const emulator::Engine& engine,
                               std::string_view family);

}  // namespace guardbit::tools
