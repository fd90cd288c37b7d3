#include <algorithm>
#include <array>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/suite/unit_products.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e36 {
namespace {

using emulator::MatrixInstruction;

/// Instructions of a machine that multiply this format into FP32, one for each family and K.
std::vector<MatrixInstruction> instructions_of(std::string_view arch,
                                               const formats::Format& format) {
  std::vector<MatrixInstruction> instructions;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const bool fits = instruction.arch == arch && instruction.a == format &&
                      instruction.b == format && instruction.c == formats::fp32 &&
                      instruction.d == formats::fp32 && instruction.scale.count == 0 &&
                      instruction.sparsity.group_elements == 0;
    const auto same = [&](const MatrixInstruction& x) {
      return x.family == instruction.family && x.shape.k == instruction.shape.k;
    };
    if (fits && std::ranges::none_of(instructions, same)) instructions.push_back(instruction);
  }
  return instructions;
}

/// Both add the same blocks in the same way, whatever their K: their chains are the same.
bool same_chain(const MatrixInstruction& x, const MatrixInstruction& y) {
  if (x.steps.count != 1 || y.steps.count != 1) return false;
  emulator::Step one = x.steps.list[0], two = y.steps.list[0];
  one.spec.terms = block_of(x);
  two.spec.terms = block_of(y);
  return one == two;
}

/// The first instruction that adds as instructions[i] does; instruction 0 where there is none
/// before it.
std::size_t partner_of(const std::vector<MatrixInstruction>& instructions, std::size_t i) {
  for (std::size_t p = 0; p < i; ++p)
    if (same_chain(instructions[p], instructions[i])) return p;
  return 0;
}

std::string short_name(const MatrixInstruction& instruction) {
  return std::string(formats::word_of(instruction.family)) + " k" +
         std::to_string(instruction.shape.k);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::int64_t size = s.integer("MN"), k = s.integer("K");
  const auto formats_asked = s.words("format");
  run.announce(s.words("arch").size() * formats_asked.size());
  Outcome outcome;
  outcome.figure = {"E36: one product by each instruction of a machine",
                    "K of the instruction (products)", "largest |error| / (|A||B|)", true, true};
  for (const std::string& arch : s.words("arch")) {
    for (const std::string& name : formats_asked) {
      const formats::Format format = formats::require_format(name, "format");
      const std::vector<MatrixInstruction> instructions = instructions_of(arch, format);
      if (instructions.size() < 2) continue;
      std::string where = arch;
      where += ' ';
      where += name;
      const auto& found = run.point(where, [&] {
        const auto problem = random_problem(run, format, size, size, k, Distribution::normal);
        const auto exact = values_of(run.multiply(exact_plan(), problem));
        const auto scale = magnitude_products(run, problem);
        std::vector<double> values;
        std::vector<emulator::CodeMatrix> results;
        for (const MatrixInstruction& instruction : instructions) {
          results.push_back(run.multiply(unit_of(instruction, "").plan, problem));
          const emulator::CodeMatrix& d = results.back();
          values.push_back(
              changed_outputs(d, results[partner_of(instructions, results.size() - 1)]));
          values.push_back(largest_share(values_of(d), exact, scale));
        }
        return values;
      });
      Curve curve{where, {}, {}, Look::points};
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        curve.add(instructions[i].shape.k, found[2 * i + 1]);
        const std::string key = where + ", " + short_name(instructions[i]);
        outcome.findings.push_back({key + ": largest |error| / (|A||B|)", "", found[2 * i + 1]});
        if (i == 0) continue;
        const MatrixInstruction& partner = instructions[partner_of(instructions, i)];
        Finding differing{key + ": outputs unlike " + short_name(partner) + "'s",
                          "of " + std::to_string(size * size), found[2 * i]};
        if (same_chain(instructions[i], partner))
          differing.reference =
              Reference{.source = "their rows add the same blocks with the same cuts"};
        outcome.findings.push_back(differing);
      }
      outcome.figure.curves.push_back(curve);
    }
  }
  outcome.notes.emplace_back(
      "wmma, mma.sync, wgmma and tcgen05 give the same bits where their blocks and kept bits are the same, "
      "whatever tile they are written for. "
      "FP8 mma.sync on Hopper is FP16 products (the compiler widens the operands), so wgmma with its 13 kept bits differs from it.");
  return outcome;
}

}  // namespace
}  // namespace e36

Experiment units_of_a_machine() {
  using namespace e36;
  using Kind = Parameter::Kind;
  constexpr std::string_view machines = "sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120";
  return {
      .name = "E36",
      .slug = "units_of_a_machine",
      .question = "Do wmma, mma.sync, wgmma and tcgen05 give the same bits for one product?",
      .method =
          "One pair of random matrices through every dense instruction of a machine for that format, "
          "one for each family and K, all chained over the same long K in ascending order: "
          "outputs unlike those of the first instruction that adds in the same way (of the first at all where there is none), "
          "and errors against the FP64 product.",
      .expected =
          "Instructions whose rows have the same blocks, cuts and roundings agree in every bit (derived from the rows; "
          "those of sm_90 are measured); others differ.",
      .parameters = {{"K", "products in each sum", "2048", "512", Kind::integer, false, 1, 65536},
                     {"MN", "rows and columns", "32", "", Kind::integer, false, 1, 1024},
                     {"format", "of A and B", "fp16,bf16,tf32,e4m3", "", Kind::word, true, 0, 0,
                      "fp16,bf16,tf32,e4m3,e5m2"},
                     {"arch", "", machines, "", Kind::word, true, 0, 0, machines}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
