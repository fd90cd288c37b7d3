#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/errors.hpp"
#include "experiments/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace {

/// Peak dense rates and memory bandwidth of a device.
struct Device {
  std::string_view name;
  double bf16_teraflops, fp8_teraflops, terabytes;  ///< per second; 0: does not have it
  std::string_view ridge, source;                   ///< FLOP/B in BF16, as it was written down
  Certainty certainty;
};
constexpr std::array devices = {
    Device{"h200_measured", 788, 0, 4.3, "183", "BF16 product and copy with torch 2.11 on an H200",
           Certainty::measured},
    Device{"h200_datasheet", 989.5, 1979, 4.8, "206", "NVIDIA H200 datasheet", Certainty::recalled},
    Device{"a100_datasheet", 312, 0, 2.039, "", "NVIDIA A100 80GB datasheet", Certainty::recalled},
};

/// What an operation computes and moves, every number read and written once.
struct Operation {
  std::string_view name;
  double flops;
  double elements;  ///< in the operation's format
};

std::vector<Operation> operations(double n, double batch) {
  return {{"gemm n^3", 2 * n * n * n, 3 * n * n},
          {"gemm of a batch, n x n weights", 2 * batch * n * n, n * n + 2 * batch * n},
          {"matrix times vector", 2 * n * n, n * n + 2 * n},
          {"layer norm of a row", 8 * n, 2 * n},
          {"gelu", 10 * n, 2 * n},
          {"residual addition", n, 3 * n}};
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const double n = static_cast<double>(s.integer("n")),
               batch = static_cast<double>(s.integer("batch"));
  const formats::Format format = formats::require_format(s.word("format"), "format");
  const bool fp8 = formats::bits(format) == 8;
  run.announce(devices.size());
  Outcome outcome;
  outcome.figure = {"E31: what a device can reach, by operation (" + s.word("format") + ")",
                    "arithmetic intensity (FLOP per byte of memory)", "TFLOP/s", true, true};
  for (const std::string& name : s.words("device")) {
    const Device& device = *std::ranges::find(devices, std::string_view(name), &Device::name);
    const double peak = fp8 ? device.fp8_teraflops : device.bf16_teraflops;
    if (peak == 0) {
      outcome.notes.push_back(name + " has no rate for " + s.word("format") + " here.");
      continue;
    }
    const auto& ridge =
        run.point(name, [&] { return std::vector<double>{peak / device.terabytes}; });
    Finding finding{name + ": ridge", "FLOP/B", ridge[0]};
    if (!fp8 && !device.ridge.empty()) {
      finding.reference = Reference{.value = number_of(device.ridge),
                                    .tolerance = half_digit(device.ridge),
                                    .tolerance_reason = "half a unit of the written last digit",
                                    .source = std::string(device.source),
                                    .certainty = device.certainty};
    }
    outcome.findings.push_back(finding);
    Curve roof{name}, points{name + ", operations", {}, {}, true};
    for (double x = 0.0625; x <= 65536; x *= 2) roof.add(x, std::min(peak, x * device.terabytes));
    for (const Operation& op : operations(n, batch)) {
      const double intensity = op.flops / (op.elements * formats::bits(format) / 8);
      const double reached = std::min(peak, intensity * device.terabytes);
      points.add(intensity, reached);
      std::string key = name;
      key += ", ";
      key += op.name;
      outcome.findings.push_back({key + ": intensity", "FLOP/B", intensity});
      outcome.findings.push_back({key + ": attainable", "TFLOP/s", reached});
    }
    outcome.figure.curves.push_back(roof);
    outcome.figure.curves.push_back(points);
  }
  outcome.notes.emplace_back(
      "An operation left of the ridge waits for memory: a narrower format moves it up along the "
      "slope, whatever the unit's rate.");
  return outcome;
}

}  // namespace

Experiment roofline() {
  using Kind = Parameter::Kind;
  return {
      .name = "E31",
      .slug = "roofline",
      .question = "Which operations does memory limit, and which the matrix unit?",
      .method =
          "FLOP per byte of each operation from its shape and the format's width (every number "
          "read "
          "or written once), against a device's peak rate and bandwidth.",
      .expected =
          "Ridge of an H200 in BF16: 183 FLOP/B of what it reached (788 TFLOP/s, 4.3 TB/s, "
          "measured), "
          "206 by its datasheet (recalled).",
      .parameters = {{"n", "side of square matrices, length of rows", "4096", "", Kind::integer,
                      false, 1, 1000000},
                     {"batch", "rows of the batched product", "16", "", Kind::integer, false, 1,
                      1000000},
                     {"format", "of all numbers", "bf16", "", Kind::word, false, 0, 0,
                      "bf16,fp16,e4m3,e5m2"},
                     {"device", "", "h200_measured,h200_datasheet,a100_datasheet", "", Kind::word,
                      true, 0, 0, "h200_measured,h200_datasheet,a100_datasheet"}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
