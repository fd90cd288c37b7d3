#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e31 {
namespace {

/// Peak dense rates of a device in TFLOP/s by format (0: does not have it) and its memory
/// bandwidth.
struct Device {
  std::string_view name;
  double bits_16, bits_8, tf32, fp32, terabytes;
  /// FLOP/B in BF16, as it was written down
  std::string_view ridge, source;
  Certainty certainty;
};
constexpr std::array devices = {
    Device{"h200_measured", 788, 0, 0, 0, 4.3, "183",
           "BF16 product and copy with torch 2.11 on an H200", Certainty::measured},
    Device{"h200_datasheet", 989.5, 1979, 494.7, 67, 4.8, "206", "NVIDIA H200 datasheet",
           Certainty::recalled},
    Device{"v100_datasheet", 125, 0, 0, 15.7, 0.9, "", "NVIDIA V100 SXM2 datasheet",
           Certainty::recalled},
    Device{"a100_datasheet", 312, 0, 156, 19.5, 2.039, "", "NVIDIA A100 80GB datasheet",
           Certainty::recalled},
    Device{"h100_datasheet", 989.5, 1979, 494.7, 67, 3.35, "", "NVIDIA H100 SXM datasheet",
           Certainty::recalled},
    Device{"l40s_datasheet", 362, 733, 183, 91.6, 0.864, "", "NVIDIA L40S datasheet",
           Certainty::recalled},
    Device{"b200_datasheet", 2250, 4500, 1125, 75, 8, "", "NVIDIA B200 datasheet",
           Certainty::recalled},
};

constexpr std::string_view device_names =
    "h200_measured,h200_datasheet,v100_datasheet,a100_datasheet,h100_datasheet,l40s_datasheet,b200_datasheet";

double peak_of(const Device& device, const formats::Format& format) {
  if (format == formats::fp32) return device.fp32;
  if (format == formats::tf32) return device.tf32;
  if (format == formats::bf16 && device.name == "v100_datasheet") return 0;
  return formats::bits(format) == 8 ? device.bits_8 : device.bits_16;
}

/// What a number takes in memory: TF32 lies in 32 bits.
double bytes_of(const formats::Format& format) {
  return format == formats::tf32 ? 4 : formats::bits(format) / 8;
}

/// What an operation computes and moves, every number read and written once.
struct Operation {
  std::string_view name;
  double flops;
  /// in the operation's format
  double elements;
};

std::vector<Operation> operations(double n, double batch) {
  return {{"gemm n^3", 2 * n * n * n, 3 * n * n},
          {"gemm of a batch, n x n weights", 2 * batch * n * n, n * n + 2 * batch * n},
          {"matrix times vector", 2 * n * n, n * n + 2 * n},
          {"attention of n keys, depth 128, online", 4 * n * n * 128, 4 * n * 128},
          {"the same, scores and probabilities stored", 4 * n * n * 128, 4 * n * 128 + 4 * n * n},
          {"layer norm of a row", 8 * n, 2 * n},
          {"gelu", 10 * n, 2 * n},
          {"residual addition", n, 3 * n}};
}

void add_device(Run& run, Outcome& outcome, const Device& device, const std::string& word,
                const std::vector<Operation>& operations) {
  const formats::Format format = formats::require_format(word, "format");
  const std::string name = std::string(device.name) + ", " + word;
  const double peak = peak_of(device, format);
  if (peak == 0) {
    outcome.notes.push_back(name + ": no rate is known here.");
    return;
  }
  const auto& ridge = run.point(name, [&] { return std::vector<double>{peak / device.terabytes}; });
  Finding finding{name + ": ridge", "FLOP/B", ridge[0]};
  if (format == formats::bf16 && !device.ridge.empty()) {
    finding.reference = Reference{.value = number_of(device.ridge),
                                  .tolerance = half_digit(device.ridge),
                                  .tolerance_reason = "half a unit of the written last digit",
                                  .source = std::string(device.source),
                                  .certainty = device.certainty};
  }
  outcome.findings.push_back(finding);
  Curve roof{name}, points{name + ", operations", {}, {}, Look::points};
  for (double x = 0.0625; x <= 65536; x *= 2) {
    // The knee lies between two of these.
    if (x / 2 < ridge[0] && ridge[0] < x) roof.add(ridge[0], peak);
    roof.add(x, std::min(peak, x * device.terabytes));
  }
  for (const Operation& op : operations) {
    const double intensity = op.flops / (op.elements * bytes_of(format));
    const double reached = std::min(peak, intensity * device.terabytes);
    points.add(intensity, reached);
    const std::string key = name + ", " + std::string(op.name);
    outcome.findings.push_back({key + ": intensity", "FLOP/B", intensity});
    outcome.findings.push_back({key + ": attainable", "TFLOP/s", reached});
    outcome.findings.push_back(
        {key + ": limited by the unit, not by memory", "", reached == peak ? 1.0 : 0.0});
  }
  if (word != run.settings().words("format").front()) return;
  outcome.figure.curves.push_back(roof);
  outcome.figure.curves.push_back(points);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const double n = static_cast<double>(s.integer("n")),
               batch = static_cast<double>(s.integer("batch"));
  run.announce(s.words("device").size() * s.words("format").size());
  Outcome outcome;
  outcome.figure = {
      "E31: what a device can reach, by operation (" + s.words("format").front() + ")",
      "arithmetic intensity (FLOP per byte of memory)", "TFLOP/s", true, true};
  for (const std::string& name : s.words("device")) {
    const Device& device = *std::ranges::find(devices, std::string_view(name), &Device::name);
    for (const std::string& word : s.words("format"))
      add_device(run, outcome, device, word, operations(n, batch));
  }
  outcome.notes.emplace_back(
      "An operation left of the ridge waits for memory: a narrower format moves it up along the slope, whatever the unit's rate.");
  return outcome;
}

}  // namespace
}  // namespace e31

Experiment roofline() {
  using namespace e31;
  using Kind = Parameter::Kind;
  return {
      .name = "E31",
      .slug = "roofline",
      .question = "Which operations does memory limit, and which the matrix unit?",
      .method =
          "FLOP per byte of each operation from its shape and the format's width (every number read or written once), "
          "against a device's peak rate and bandwidth.",
      .expected =
          "Ridge of an H200 in BF16: 183 FLOP/B of what it reached (788 TFLOP/s, 4.3 TB/s, measured), 206 by its datasheet (recalled).",
      .parameters = {{"n", "side of square matrices, length of rows", "4096", "", Kind::integer,
                      false, 1, 1000000},
                     {"batch", "rows of the batched product", "16", "", Kind::integer, false, 1,
                      1000000},
                     {"format", "of all numbers; the first is drawn", "bf16,e4m3,fp32", "bf16",
                      Kind::word, true, 0, 0, "bf16,fp16,e4m3,e5m2,tf32,fp32"},
                     {"device", "", "h200_measured,h200_datasheet,a100_datasheet,b200_datasheet",
                      "h200_measured,h200_datasheet", Kind::word, true, 0, 0, device_names}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
