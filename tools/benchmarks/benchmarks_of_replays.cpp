// One recorded instruction executed many times, as `guardbit verify` does.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/engine/engines.hpp"
#include "tools/benchmarks/benchmark_instructions.hpp"
#include "tools/benchmarks/benchmark_operands.hpp"
#include "tools/benchmarks/benchmarks.hpp"

namespace guardbit::tools {

using emulator::Engine;

void plan_replays(const BenchOptions& options, std::vector<Group>& groups) {
  for (const MeasuredInstruction& of : chosen_instructions(options)) {
    Group group;
    for (const Engine& engine : emulator::engines()) {
      if (!engine.accepts(of.instruction) || !is_asked_for(options, engine)) continue;
      for (const int threads : thread_counts(options, engine, "normal")) {
        Planned planned;
        Result& r = planned.result;
        r.kind = "replay";
        r.subject = of.of.name;
        r.arch = of.instruction.arch;
        r.instruction = std::string_view(of.instruction.name);
        r.engine = engine.name;
        r.threads = threads;
        r.unit = "M outputs/s";
        r.name = "replay/" + r.subject + "/" + r.engine + "/" + std::to_string(threads);
        const std::int64_t executions = engine.name == "reference" ? 64 : 2048;
        planned.prepare = [&engine, instruction = of.instruction, threads,
                           executions](Result& result) -> std::function<void()> {
          const auto operands = std::make_shared<BatchOperands>(instruction, executions);
          const emulator::Shape& s = operands->batch().shape;
          result.work = 1e-6 * static_cast<double>(executions) * s.m * s.n;
          return [operands, &engine, instruction, threads] {
            emulator::run_batch(engine, instruction, operands->batch(), threads);
          };
        };
        group.push_back(std::move(planned));
      }
    }
    groups.push_back(std::move(group));
  }
}

}  // namespace guardbit::tools
