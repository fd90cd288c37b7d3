// A recorded transformer: what PyTorch's casts made of its gradients, and what FP16 training did.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;

const std::string folder = GUARDBIT_SOURCE_DIR "/tests/golden/traces/";

json trace_of(const std::string& file) {
  const tests::CommandResult result = tests::run_command(
      {"trace", folder + file, "--json", "--formats", "fp16,bf16,e4m3,e5m2", "--scales", "0:32:4"});
  REQUIRE(result.status == 0);
  return json::parse(result.out);
}

json counts() { return json::parse(tests::read_text(folder + "transformer_counts.json")); }

TEST_CASE("trace: a transformer's gradients fare as PyTorch's casts on the GPU say") {
  const json recorded = counts()["tensors"];
  int compared = 0;
  const json whole = trace_of("transformer_fp32.safetensors")["tensors"];
  for (const json& tensor : whole) {
    const std::string name = tensor["name"];
    if (!recorded.contains(name)) continue;  // weights and updates
    const json& casts = recorded[name]["sample_casts"];
    for (const auto& [format, outcomes] : casts.items()) {
      CAPTURE(name, format);
      CHECK(tensor["formats"][format]["underflow"] == outcomes["underflow"]);
      CHECK(tensor["formats"][format]["overflow"] == outcomes["overflow"]);
      ++compared;
    }
  }
  CHECK(compared == 54 * 4);
}

/// Zeros of the FP16 gradients under a scale, and what the FP32 gradients promise, of one element.
struct Shares {
  double seen, promised;
};

TEST_CASE("trace: FP16 training under a scaler lost what the FP32 gradients promise") {
  const json half = trace_of("transformer_fp16.safetensors")["tensors"];
  const json whole = trace_of("transformer_fp32.safetensors")["tensors"];
  const auto zeros_of = [&](const std::string& name) {
    for (const json& tensor : half) {
      if (tensor["name"] == name) return tensor["zeros"].get<double>();
    }
    FAIL(name);
    return 0.0;
  };
  int compared = 0;
  double largest = 0;
  for (const json& tensor : whole) {
    const std::string name = tensor["name"];
    if (tensor["role"] != "grad_out") continue;
    const Shares shares = {zeros_of("scale_0/" + name) / tensor["elements"].get<double>(),
                           (tensor["zeros"].get<double>() +
                            tensor["formats"]["fp16"]["underflow"]["0"].get<double>()) /
                               tensor["elements"].get<double>()};
    CAPTURE(name, shares.seen, shares.promised);
    ++compared;
    largest = std::max(largest, shares.promised);
    // Attention's backward pass holds FP16 numbers of its own, which underflow first.
    const bool behind_attention = name.find("qkv") != std::string::npos;
    if (behind_attention) {
      CHECK(shares.seen >= shares.promised - 0.01);
    } else {
      CHECK(std::abs(shares.seen - shares.promised) < 0.015);
    }
    // Under the scaler's own scale next to nothing is lost.
    CHECK(zeros_of("scale_scaler/" + name) / tensor["elements"].get<double>() < 0.01);
  }
  CHECK(compared == 26);
  CHECK(largest > 0.9);
}

}  // namespace
