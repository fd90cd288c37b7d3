#include <algorithm>
#include <array>
#include <cmath>

#include "emulator/gemm_scalar.hpp"
#include "experiments/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/block_quantisation.hpp"
#include "formats/storage.hpp"

namespace guardbit::experiments {

namespace {

namespace scalar = emulator::scalar;
using formats::BlockFormat;

struct Method {
  std::string_view name;
  BlockFormat format;
  formats::ScaleRule rule;
};
const std::array methods = {
    Method{"MXFP4 floor", formats::mxfp4, formats::scale_of_exponents},
    Method{"MXFP4 rceil", formats::mxfp4, formats::scale_without_overflow},
    Method{"NVFP4", formats::nvfp4, formats::scale_nearest},
};

/// amax / (448 * 6) in FP32: with it the largest block's scale is E4M3's largest number.
formats::Value tensor_scale_of(std::span<const float> numbers) {
  float amax = 0;
  for (const float x : numbers) amax = std::max(amax, std::abs(x));
  return formats::decode(formats::fp32, scalar::encoded(formats::fp32, amax / (448.0 * 6)));
}

/// Signal over error in dB, and the share of numbers stored as zero in percent.
std::vector<double> quality(Run& run, const Method& method, std::int64_t blocks,
                            const std::string& distribution) {
  const auto length = static_cast<std::size_t>(blocks * 32);
  std::vector<float> numbers(length);
  run.draws("numbers").fill(distribution_of(distribution), numbers, run.threads());
  const auto words = std::as_bytes(std::span<const float>(numbers));
  run.uses(words);
  formats::BlockQuantisationOptions options;
  options.rule = method.rule;
  options.threads = run.threads();
  double tensor_scale = 1;
  if (method.format.tensor_scale) {
    options.tensor_scale = tensor_scale_of(numbers);
    tensor_scale = std::ldexp(static_cast<double>(options.tensor_scale->significand),
                              options.tensor_scale->exponent);
  }
  const auto count = static_cast<std::int64_t>(length);
  std::vector<std::byte> elements(
      static_cast<std::size_t>(formats::element_bytes(method.format, count)));
  std::vector<std::byte> scales(
      static_cast<std::size_t>(formats::scale_bytes(method.format, count)));
  formats::BlockQuantisation(method.format, options)(words, 1, count, elements, scales);
  double signal = 0, noise = 0, zeros = 0, nonzero = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const auto block = i / static_cast<std::size_t>(method.format.block_size);
    const double element = scalar::decoded(
        method.format.element,
        formats::load_code(elements, method.format.element, formats::Packing::dense, i));
    const double scale =
        scalar::decoded(method.format.scale, std::to_integer<std::uint64_t>(scales[block]));
    const double x = numbers[i], y = element * scale * tensor_scale;
    signal += x * x;
    noise += (x - y) * (x - y);
    if (x == 0) continue;
    ++nonzero;
    if (y == 0) ++zeros;
  }
  return {10 * std::log10(signal / noise), 100 * zeros / nonzero};
}

/// The largest amax of a block, as a share of the tensor's, all of which becomes zero: by bisection
/// over powers of two in steps of 2^-12. Transformer Engine rounds the scale to E4M3 as it is;
/// torchao raises it to 2^-6, E4M3's smallest normal number.
double largest_lost_block(bool torchao) {
  const auto lost = [&](double share) {
    // In units in which the tensor's amax is 448 * 6.
    const double amax = share * 448 * 6;
    double scale = scalar::rounded(formats::e4m3, amax / 6);
    if (torchao) scale = std::max(scale, std::ldexp(1.0, -6));
    return scale == 0 || scalar::rounded(formats::e2m1, amax / scale) == 0;
  };
  double low = std::ldexp(1.0, -40), high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (lost(middle) ? low : high) = middle;
  }
  return low;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto& distributions = s.words("distribution");
  run.announce(distributions.size() * methods.size() + 1);
  Outcome outcome;
  for (const std::string& distribution : distributions) {
    std::array<double, methods.size()> decibels{};
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const std::string key = distribution + " " + std::string(methods[i].name);
      const auto& x = run.point(
          key, [&] { return quality(run, methods[i], s.integer("blocks"), distribution); });
      decibels[i] = x[0];
      outcome.findings.insert(outcome.findings.end(), {{key + ": signal over error", "dB", x[0]},
                                                       {key + ": stored as zero", "%", x[1]}});
    }
    Finding gain{distribution + ": NVFP4 over the better MXFP4", "dB",
                 decibels[2] - std::max(decibels[0], decibels[1])};
    if (distribution == "normal" || distribution == "laplace") {
      gain.reference = Reference{.value = 0,
                                 .source = "half the block and scales with a fraction fit better",
                                 .relation = Reference::Relation::at_least};
    }
    outcome.findings.push_back(gain);
  }
  const auto& lost = run.point("lost blocks", [&] {
    return std::vector<double>{std::log2(largest_lost_block(false)),
                               std::log2(largest_lost_block(true))};
  });
  // Half of 2^-9, and a quarter (half of E2M1's smallest 0.5) of 2^-6, both over 448 * 6 / 6 or 6.
  const double bit = 1e-9;
  const std::string reason = "steps of the bisection";
  outcome.findings.push_back(
      {"NVFP4, Transformer Engine: log2 of the largest block amax / tensor "
       "amax that is lost",
       "", lost[0],
       Reference{.value = std::log2(std::ldexp(1.0, -10) / 448),
                 .tolerance = bit,
                 .tolerance_reason = reason,
                 .source = "the scale rounds to zero up to 2^-10"}});
  outcome.findings.push_back({"NVFP4, torchao: the same", "", lost[1],
                              Reference{.value = std::log2(std::ldexp(1.0, -8) / (448 * 6)),
                                        .tolerance = bit,
                                        .tolerance_reason = reason,
                                        .source = "elements round to zero up to 0.25 * 2^-6"}});
  outcome.notes.emplace_back(
      "Random Hadamard transforms, stochastic rounding and four-over-six, which recipes add to "
      "NVFP4, are not part of this.");
  return outcome;
}

}  // namespace

Experiment fp4_formats() {
  using Kind = Parameter::Kind;
  return {
      .name = "E24",
      .slug = "fp4_formats",
      .question = "Which FP4 block format keeps more of a tensor?",
      .method =
          "Random numbers are quantised to MXFP4 (blocks of 32, powers of two by either rule) and "
          "NVFP4 (blocks of 16, E4M3 scales under one FP32 scale) and decoded again. Then the "
          "largest "
          "block that NVFP4 loses altogether, by the two rules for its smallest scale.",
      .expected =
          "No published figure for these numbers: NVFP4 keeps more of numbers without outliers, "
          "and "
          "the borders follow from the formats.",
      .parameters = {{"blocks", "of 32 numbers", "20000", "2000", Kind::integer, false, 1,
                      10000000},
                     {"distribution", "of the numbers", "normal,laplace,outliers,log_uniform", "",
                      Kind::word, true, 0, 0, distribution_names}},
      .run = run,
      .relations_only = true,
  };
}

}  // namespace guardbit::experiments
