#include "emulator/engine/engines.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "emulator/engine/continuation.hpp"
#include "emulator/engine/cpu.hpp"
#include "emulator/engine/executions.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/vector/vector_engines.hpp"
#include "emulator/engine/kernels/x86/x86_units.hpp"
#include "emulator/model/mma.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

using Avx512 = vector_engines::Kernels<VectorSet::avx512>;
using Avx2 = vector_engines::Kernels<VectorSet::avx2>;
using Neon = vector_engines::Kernels<VectorSet::neon>;

constexpr std::array all_engines = {
    Engine{"avx512", "blocked products in AVX-512's registers", Avx512::accepts, Avx512::run,
           Avx512::multiply},
    Engine{"avx2", "blocked products in AVX2's registers", Avx2::accepts, Avx2::run,
           Avx2::multiply},
    Engine{"neon", "blocked products in NEON's registers", Neon::accepts, Neon::run,
           Neon::multiply},
    Engine{"portable", "decodes operands once per execution; plain C++ for any CPU",
           portable::accepts, portable::run},
    Engine{"cpu", "this CPU's own matrix units, for the instructions of x86 that it has",
           x86_units::accepts, x86_units::run, nullptr, cpu::description},
    Engine{"reference", "the model itself, one output at a time",
           [](const MatrixInstruction&) { return true; }, execute},
};

}  // namespace

std::span<const Engine> engines() { return all_engines; }

namespace {

/// Names of the engines that execute the instruction here.
std::string names_of_engines_for(const MatrixInstruction& instruction) {
  std::string names = "auto";
  for (const Engine& engine : engines())
    if (engine.accepts(instruction)) names += ", " + std::string(engine.name);
  return names;
}

}  // namespace

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
                               " on " + (engine.device == nullptr ? "this CPU" : engine.device()),
                           names_of_engines_for(instruction));
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

namespace {

/// The product, by an instruction whose executions can be chained, or by one execution.
void multiply_by(const Engine& engine, const MatrixInstruction& instruction,
                 const MatrixProduct& product, int threads) {
  if (engine.multiply != nullptr) return engine.multiply(instruction, product, threads);
  multiply_by_executions(engine.run, instruction, product, threads);
}

/// D, as the C of what follows.
ConstMatrix sums_of(const MatrixInstruction& instruction, const Matrix& d) {
  return {codes_of(instruction.d, static_cast<const std::byte*>(d.codes.data)), d.row_stride,
          d.column_stride};
}

/// The wanted engine if it accepts the instruction, else the model that does; engines agree.
const Engine& engine_for(const Engine& wanted, const MatrixInstruction& instruction) {
  const bool takes_it = wanted.accepts(instruction) || wanted.device != nullptr;
  return takes_it ? wanted : require_engine("auto", instruction);
}

/// The product by an instruction that takes no addend: whole executions of what continues it, then
/// one that ends with the last block.
void multiply_continued(const Engine& engine, const Continuation& x, const MatrixProduct& product,
                        int threads) {
  MatrixProduct part = product;
  if (product.modifiers.zero_addend && x.begin != 0) {
    for (std::int64_t i = 0; i < product.m; ++i)
      for (std::int64_t j = 0; j < product.n; ++j) product.d.set(i, j, x.begin);
    part.modifiers.zero_addend = false;
    part.c = sums_of(x.instruction, product.d);
  }
  const std::int64_t executions = product.k / x.instruction.shape.k,
                     begin = executions * x.instruction.shape.k;
  if (executions != 0) {
    part.k = begin;
    multiply_by(engine_for(engine, x.instruction), x.instruction, part, threads);
    part.modifiers.zero_addend = false;
    part.c = sums_of(x.instruction, product.d);
  }
  if (begin == product.k) return;
  const std::int64_t stored = executions * stored_k(x.instruction, x.instruction.shape.k);
  const std::int64_t scales = executions * x.instruction.scale.count;
  part.k = product.k - begin;
  part.a = product.a.from(0, stored);
  part.e = product.e.from(0, stored);
  part.b = product.b.from(begin, 0);
  part.a_scale = product.a_scale.from(0, scales);
  part.b_scale = product.b_scale.from(scales, 0);
  const MatrixInstruction last = x.shortened(part.k);
  multiply_by(engine_for(engine, last), last, part, threads);
}

}  // namespace

void multiply(const Engine& engine, const MatrixInstruction& instruction,
              const MatrixProduct& product, int threads) {
  const std::string_view where(instruction.name);
  if (takes_addend(instruction)) {
    require_chain(instruction, product.k, where);
    return multiply_by(engine, instruction, product, threads);
  }
  if (const auto next = continuation_of(instruction))
    return multiply_continued(engine, *next, product, threads);
  require_chain(instruction, product.k, where);
  if (!product.modifiers.zero_addend)
    throw formats::Error(std::string(where), "takes no addend, but the product has a C");
  multiply_by(engine, instruction, product, threads);
}

}  // namespace guardbit::emulator
