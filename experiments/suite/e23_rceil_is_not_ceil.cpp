#include "experiments/harness/run.hpp"
#include "experiments/suite/mx_scales.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e23 {
namespace {

Outcome run(Run& run) {
  Outcome outcome;
  outcome.figure = {"E23: scales of E4M3 blocks", "amax", "E8M0 code (exponent + 127)"};
  Curve rceil{"rceil", {}, {}, Look::points}, ceil{"ceil", {}, {}, Look::points};
  const auto magnitudes = run.settings().numbers("amax");
  run.announce(magnitudes.size());
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    const double amax = magnitudes[i];
    const std::string key = "amax=" + run.settings().words("amax")[i];
    const auto& codes = run.point(key, [&] {
      const auto code = [&](std::string_view mode) {
        return static_cast<double>(mx_scale(formats::mxfp8_e4m3, static_cast<float>(amax), mode));
      };
      return std::vector<double>{code("rceil"), code("ceil")};
    });
    outcome.figure.categories.push_back(key);
    rceil.add(static_cast<double>(i), codes[0]);
    ceil.add(static_cast<double>(i), codes[1]);
    Finding of_rceil{key + ": rceil", "", codes[0]}, of_ceil{key + ": ceil", "", codes[1]};
    if (amax == 150) {
      const std::string source = "pytorch/ao issue 2035";
      of_rceil.reference = Reference{.value = 126, .source = source, .certainty = Certainty::read};
      of_ceil.reference = Reference{.value = 127, .source = source, .certainty = Certainty::read};
    }
    outcome.findings.insert(outcome.findings.end(), {of_rceil, of_ceil});
  }
  outcome.figure.curves = {rceil, ceil};
  return outcome;
}

}  // namespace
}  // namespace e23

Experiment rceil_is_not_ceil() {
  using namespace e23;
  return {
      .name = "E23",
      .slug = "rceil_is_not_ceil",
      .question = "Do the two MX scale rules that round up give the same scale?",
      .method =
          "rceil rounds log2(amax / 448) up (cuBLAS, Transformer Engine), ceil rounds log2(amax) up and takes 8 off (an option of torchao); "
          "both for an E4M3 block with that amax.",
      .expected = "amax = 150: 126 and 127 (pytorch/ao issue 2035, read).",
      .parameters = {{"amax", "largest magnitude of the block", "150,256:512:32", "150",
                      Parameter::Kind::number, true, 1e-30, 1e30}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
