#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/model/dot.hpp"
#include "experiments/harness/own_recordings.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace e11 {
namespace {

using emulator::MatrixInstruction;

/// An H200's answers, and the width that the published models have for these inputs.
struct Recording {
  std::string_view name;
  /// Of units with the same arithmetic, each in the folder of its family.
  std::array<std::string_view, 2> files;
  int published;
};
constexpr std::array recordings = {
    Recording{"e4m3",
              {"wgmma/wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3.safetensors",
               "wgmma/wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2.safetensors"},
              13},
    Recording{"f16",
              {"wgmma/wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16.safetensors",
               "mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.safetensors"},
              25},
    Recording{"bf16",
              {"wgmma/wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16.safetensors",
               "mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.safetensors"},
              25},
    Recording{"tf32",
              {"wgmma/wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32.safetensors",
               "mma.sync/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32.safetensors"},
              25},
};

/// A capture in the folder of its family, or in a folder without families; empty if it is not
/// there.
std::string capture_path(const std::string& folder, std::string_view file) {
  const std::filesystem::path root(folder), nested = root / file;
  const std::filesystem::path flat = root / nested.filename();
  if (!std::filesystem::exists(nested) && std::filesystem::exists(flat)) return flat.string();
  return find_recording(nested.string()).value_or(std::string());
}

/// Outputs of the recording that a unit of each width gets wrong.
std::vector<double> mismatches(Run& run, const std::string& path,
                               const std::vector<std::int64_t>& widths) {
  emulator::Capture capture = emulator::read_capture(path);
  for (const formats::Tensor& tensor : capture.operands.tensors) run.uses(tensor.bytes);
  const auto outputs = static_cast<std::size_t>(capture.operands.outputs());
  const auto& format = capture.instruction.d;
  std::vector<std::byte> d(outputs * static_cast<std::size_t>(formats::container_bits(format) / 8));
  emulator::MatrixBatch batch = capture.operands.batch;
  batch.d = emulator::codes_of(format, d.data());
  const emulator::Engine& engine = emulator::require_engine("reference", capture.instruction);
  std::vector<double> counts;
  for (const std::int64_t width : widths) {
    run.check_stop();
    MatrixInstruction instruction = capture.instruction;
    instruction.steps.list[0].spec.kept_fraction_bits = static_cast<int>(width);
    emulator::run_batch(engine, instruction, batch, run.threads());
    const emulator::ConstCodes computed =
        emulator::codes_of(format, static_cast<const std::byte*>(d.data()));
    counts.push_back(static_cast<double>(
        emulator::compare(instruction, batch, capture.operands.recorded, computed, 0).mismatches));
  }
  return counts;
}

/// A sum whose answer tells generations apart: 2^23 - 2^13 * 2^10 - 1/2 - 1/4 - 1/8.
struct Probe {
  std::string_view arch, unit;
  formats::Format input;
  double published;
};
const std::array probes = {
    Probe{"sm_70", "mma.sync", formats::fp16, 0},
    Probe{"sm_75", "mma.sync", formats::fp16, -0.5},
    Probe{"sm_80", "mma.sync", formats::fp16, -0.5},
    Probe{"sm_89", "mma.sync", formats::fp16, -0.5},
    Probe{"sm_90", "wgmma", formats::fp16, -0.75},
    Probe{"sm_100", "tcgen05", formats::fp16, -0.75},
    Probe{"sm_89", "mma.sync", formats::e5m2, 0},
    Probe{"sm_90", "wgmma", formats::e5m2, 0},
    Probe{"cdna1", "mfma", formats::fp16, -0.875},
    Probe{"cdna2", "mfma", formats::fp16, 0},
    Probe{"cdna3", "mfma", formats::fp16, -0.5},
};

double answer_of(const Probe& probe) {
  const MatrixInstruction instruction =
      emulator::require_dot(probe.arch, probe.unit, probe.input, formats::fp32, 4, "E11");
  const auto codes = [&](std::array<double, 4> values) {
    std::vector<std::uint64_t> result(static_cast<std::size_t>(instruction.shape.k));
    for (std::size_t i = 0; i < values.size(); ++i)
      result[i] = emulator::scalar::encoded(instruction.a, values[i]);
    return result;
  };
  const auto a = codes({-8192, -0.5, -0.25, -0.125}), b = codes({1024, 1, 1, 1});
  const std::uint64_t c = emulator::scalar::encoded(formats::fp32, 8388608);
  return emulator::scalar::decoded(formats::fp32, emulator::dot(instruction, {a, b, c}));
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::string& folder = s.word("recordings");
  const auto widths = s.integers("width");
  run.announce(recordings.size() + probes.size());
  Outcome outcome;
  outcome.figure = {"E11: an H200's recorded answers, and units of other widths",
                    "bits kept below the largest exponent of a block", "outputs that differ"};
  for (const Recording& r : recordings) {
    const auto path_of = [&](std::string_view file) { return capture_path(folder, file); };
    if (path_of(r.files[0]).empty()) {
      const std::string name = folder + "/" + std::string(r.files[0]);
      outcome.lacks(name, missing_recording(name, "recordings"));
      continue;
    }
    const auto& counts = run.point(std::string(r.name), [&] {
      std::vector<double> sums(widths.size());
      for (const std::string_view file : r.files) {
        const auto found = mismatches(run, path_of(file), widths);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found[i];
      }
      return sums;
    });
    Curve curve{std::string(r.name)};
    double exact = 0, found = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      curve.add(static_cast<double>(widths[i]), counts[i]);
      if (counts[i] != 0) continue;
      ++exact;
      found = static_cast<double>(widths[i]);
    }
    outcome.figure.curves.push_back(curve);
    const std::string key = std::string(r.name) + " to FP32, Hopper";
    const std::string untried =
        std::ranges::find(widths, r.published) == widths.end() ? "that width was not tried" : "";
    outcome.findings.push_back(
        {key + ": widths that give every answer", "", exact,
         Reference{.value = 1, .source = "a unit has one width", .undecidable = untried}});
    outcome.findings.push_back(
        {key + ": that width", "bits", found,
         Reference{.value = static_cast<double>(r.published),
                   .source = "MMA-Sim (arXiv 2511.10909), MATLAB-tensor-core (arXiv 2512.07004)",
                   .certainty = Certainty::read,
                   .undecidable = untried}});
  }
  for (const Probe& probe : probes) {
    std::string key(probe.arch);
    key += ' ';
    key += probe.unit;
    key += ' ';
    key += formats::name_of(probe.input);
    const auto& answer = run.point(key, [&] { return std::vector<double>{answer_of(probe)}; });
    outcome.findings.push_back({key + ": 2^23 - 2^23 - 1/2 - 1/4 - 1/8", "", answer[0],
                                Reference{.value = probe.published,
                                          .source = "MMA-Sim, table of architectures",
                                          .certainty = Certainty::read}});
  }
  outcome.notes.emplace_back(
      "FTTN (arXiv 2403.00232) reports 0 for V100, A100 and MI250X, 255.875 for MI100 and 191.875 for H100; "
      "the operands are not in what was read of it, so these are not decided here.");
  return outcome;
}

}  // namespace
}  // namespace e11

Experiment tensor_core_fingerprint() {
  using namespace e11;
  using Kind = Parameter::Kind;
  return {
      .name = "E11",
      .slug = "tensor_core_fingerprint",
      .question = "How wide is a tensor core's sum, and what tells the generations apart?",
      .method =
          "Recorded answers of an H200 are computed again by units that keep other numbers of bits: "
          "the width is the one that gives every answer. "
          "One sum, 2^23 - 2^13 * 2^10 - 1/2 - 1/4 - 1/8 (exactly -0.875), is asked of the models of each machine.",
      .expected =
          "13 bits for E4M3, 25 for FP16, BF16 and TF32 (two published models, read); "
          "the sum is 0 on Volta, -0.5 on Turing to Ada, -0.75 on Hopper and Blackwell, 0 in FP8 (read).",
      .parameters = {{"recordings", "folder of the captures", own_recordings, "", Kind::path},
                     {"width", "bits to try", "8:32:1", "8:32:1", Kind::integer, true, 1, 40}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
