#include "emulator/engine/engines.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/x86/x86_engines.hpp"
#include "emulator/engine/kernels/x86/x86_units.hpp"
#include "emulator/model/mma.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

using Avx512 = x86_engines::Kernels<512>;
using Avx2 = x86_engines::Kernels<256>;

constexpr std::array all_engines = {
    Engine{"avx512", "blocked products in AVX-512's registers", Avx512::accepts, Avx512::run,
           Avx512::multiply},
    Engine{"avx2", "blocked products in AVX2's registers", Avx2::accepts, Avx2::run,
           Avx2::multiply},
    Engine{"portable", "decodes operands once per execution; plain C++ for any CPU",
           portable::accepts, portable::run},
    Engine{"cpu", "this CPU's own matrix units, for the rows of x86 that it has",
           x86_units::accepts, x86_units::run, nullptr, cpu::description},
    Engine{"reference", "the model itself, one output at a time",
           [](const MatrixInstruction&) { return true; }, execute},
};

}  // namespace

std::span<const Engine> engines() { return all_engines; }

const Engine& require_engine(std::string_view name, const MatrixInstruction& instruction) {
  std::string names = "auto";
  for (const Engine& engine : engines()) {
    names += ", " + std::string(engine.name);
    const bool eligible = name == engine.name || (name == "auto" && engine.device == nullptr);
    if (!eligible) continue;
    if (engine.accepts(instruction)) return engine;
    if (name == engine.name) {
      throw formats::Error("engine " + std::string(name),
                           "does not execute " + std::string(std::string_view(instruction.name)) +
                               (engine.device == nullptr ? "" : " on " + engine.device()),
                           "auto, reference");
    }
  }
  throw formats::Error("engine", "unknown engine '" + std::string(name) + "'", names);
}

void run_batch(const Engine& engine, const MatrixInstruction& instruction, const MatrixBatch& batch,
               int threads) {
  constexpr std::int64_t outputs_per_range = 16384;
  const std::int64_t outputs =
      std::max<std::int64_t>(1, std::int64_t{batch.shape.m} * batch.shape.n);
  const auto grain =
      static_cast<std::size_t>(std::max<std::int64_t>(1, outputs_per_range / outputs));
  formats::parallel_for(static_cast<std::size_t>(batch.count), grain, threads,
                        [&](std::size_t begin, std::size_t end) {
                          engine.run(instruction, batch, static_cast<std::int64_t>(begin),
                                     static_cast<std::int64_t>(end));
                        });
}

}  // namespace guardbit::emulator
