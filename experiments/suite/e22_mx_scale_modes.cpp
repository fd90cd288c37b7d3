#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/scaling/block_scales.hpp"
#include "experiments/suite/mx_scales.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e22 {
namespace {

struct Recorded {
  /// percent
  std::string_view format, share, worst;
};
constexpr std::array recorded = {
    Recorded{"mxfp8_e4m3", "19", "12.5"}, Recorded{"mxfp8_e5m2", "19", "12.5"},
    Recorded{"mxfp4", "42", "25"},        Recorded{"mxfp6_e2m3", "9", "6.25"},
    Recorded{"mxfp6_e3m2", "19", "12.5"},
};

/// What the largest element loses to saturation, as a share of it.
double clipped(const formats::BlockFormat& format, float amax, std::string_view mode) {
  const double scale = emulator::scalar::decoded(formats::e8m0, mx_scale(format, amax, mode));
  const double largest =
      emulator::scalar::decoded(format.element, formats::max_finite_code(format.element)) * scale;
  return std::max(0.0, (amax - largest) / amax);
}

/// Where amax has a uniform logarithm: the share of blocks whose largest element is clipped and the
/// worst clip, in percent. All modes cut a binade at multiples of 2^-6 at the finest, so a number
/// inside each cell of 2^-12 speaks for all of it, and its share is its length in log2.
std::vector<double> clips(const formats::BlockFormat& format, std::string_view mode) {
  constexpr std::uint32_t cells = 1U << 12;
  double share = 0, worst = 0;
  for (std::uint32_t cell = 0; cell < cells; ++cell) {
    const std::uint32_t low = std::bit_cast<std::uint32_t>(1.0F) + (cell << 11);
    const float inside = std::bit_cast<float>(low + (1U << 10));
    const float last = std::bit_cast<float>(low + (1U << 11) - 1);
    if (clipped(format, inside, mode) > 0)
      share += std::log2((1.0 + (cell + 1.0) / cells) / (1.0 + static_cast<double>(cell) / cells));
    worst = std::max(worst, clipped(format, last, mode));
  }
  return {100 * share, 100 * worst};
}

/// Share of blocks of normal numbers whose largest element is clipped, in percent.
double clipped_of_normal_blocks(Run& run, const formats::BlockFormat& format, std::string_view mode,
                                std::int64_t blocks) {
  std::vector<float> numbers(static_cast<std::size_t>(blocks * format.block_size));
  run.draws("blocks").fill(Distribution::normal, numbers, run.threads());
  run.uses(std::as_bytes(std::span<const float>(numbers)));
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    float amax = 0;
    for (int i = 0; i < format.block_size; ++i)
      amax = std::max(amax, std::abs(numbers[static_cast<std::size_t>(b * format.block_size + i)]));
    if (clipped(format, amax, mode) > 0) ++count;
  }
  return 100 * static_cast<double>(count) / static_cast<double>(blocks);
}

Reference of(std::string_view printed) {
  return {.value = number_of(printed),
          .tolerance = half_digit(printed),
          .tolerance_reason = "half a unit of the recorded last digit",
          .source = "own NumPy run over log-uniform amax",
          .certainty = Certainty::measured};
}

/// What the largest element of a block loses, over the binade of its magnitude.
Figure figure_of(const std::string& name, const std::vector<std::string>& modes) {
  const formats::BlockFormat format = *formats::find_block_format(name);
  Figure figure{.title = "E22: what " + name + " clips of the largest element of a block",
                .x_label = "largest magnitude (times a power of two)",
                .y_label = "lost (% of it)"};
  for (const std::string& mode : modes) {
    Curve curve{mode};
    for (int i = 0; i < 64; ++i) {
      const float amax = 1 + static_cast<float>(i) / 64;
      curve.add(static_cast<double>(amax), 100 * clipped(format, amax, mode));
    }
    figure.curves.push_back(curve);
  }
  return figure;
}

Outcome run(Run& run) {
  const auto& formats_asked = run.settings().words("format");
  const auto& modes = run.settings().words("mode");
  run.announce(formats_asked.size() * modes.size());
  Outcome outcome;
  for (const std::string& name : formats_asked) {
    const formats::BlockFormat format = *formats::find_block_format(name);
    for (const std::string& mode : modes) {
      std::string key = name;
      key += ' ';
      key += mode;
      const auto& x = run.point(key, [&] {
        std::vector<double> values = clips(format, mode);
        values.push_back(
            clipped_of_normal_blocks(run, format, mode, run.settings().integer("blocks")));
        return values;
      });
      Finding share{key + ": blocks clipped, log-uniform amax", "%", x[0]};
      Finding worst{key + ": worst clip", "%", x[1]};
      Finding normal{key + ": blocks clipped, normal numbers", "%", x[2]};
      if (mode == "ceil" || mode == "rceil") {
        const std::string why = "the scale is at least amax over the largest element";
        share.reference = worst.reference = normal.reference = Reference{.source = why};
      }
      for (const Recorded& r : recorded) {
        if (r.format != name || mode != "floor") continue;
        share.reference = of(r.share);
        worst.reference = of(r.worst);
      }
      if (name == "mxfp4" && mode == "floor") {
        normal.reference = Reference{.value = 37,
                                     .source = "ROCm/aiter PR 3212",
                                     .certainty = Certainty::read,
                                     .undecidable = "its tensors were not published"};
      }
      outcome.findings.insert(outcome.findings.end(), {share, worst, normal});
    }
  }
  outcome.figure = figure_of(formats_asked.front(), modes);
  outcome.notes.emplace_back(
      "ml-explore/mlx PR 4353 (read) reports 29.27 % as the worst loss before and 5.84 % after rounding scales up, "
      "on tensors that were not published: not decided here.");
  return outcome;
}

}  // namespace
}  // namespace e22

Experiment mx_scale_mode_clips() {
  using namespace e22;
  using Kind = Parameter::Kind;
  return {
      .name = "E22",
      .slug = "mx_scale_modes",
      .question = "How often does each rule for MX scales clip the largest element of a block?",
      .method =
          "Each rule chooses the scale for every amax of a binade (weighted as if its logarithm were uniform) "
          "and for blocks of normal numbers; "
          "clipped are those whose largest element lies past the element format's largest number.",
      .expected =
          "Floor (OCP MX 1.0): E4M3 19, E5M2 19, E2M1 42, E2M3 9, E3M2 19 % of blocks, the worst by 12.5, 12.5, 25, 6.25, 12.5 % (measured); "
          "ceil and rceil clip nothing (derived).",
      .parameters = {{"format", "block formats",
                      "mxfp8_e4m3,mxfp8_e5m2,mxfp4,mxfp6_e2m3,mxfp6_e3m2", "", Kind::word, true, 0,
                      0, "mxfp8_e4m3,mxfp8_e5m2,mxfp4,mxfp6_e2m3,mxfp6_e3m2"},
                     {"mode", "rule", "floor,ceil,even,rceil", "", Kind::word, true, 0, 0,
                      formats::choices_of<MxMode>()},
                     {"blocks", "of normal numbers", "100000", "2000", Kind::integer, false, 1,
                      10000000}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
