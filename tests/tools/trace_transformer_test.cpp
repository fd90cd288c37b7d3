// A recorded transformer: what PyTorch's casts made of its gradients, and what FP16 training
// stored.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;

const std::string folder = tests::in_source("tests/golden/traces/");

json trace_of(const std::string& file, const std::string& formats, const std::string& scales) {
  return tests::json_of(
      {"trace", folder + file, "--json", "--formats", formats, "--scales", scales})["tensors"];
}

json counts() { return json::parse(tests::read_text(folder + "transformer_counts.json")); }

TEST_CASE("trace: a transformer's gradients fare as PyTorch's casts on the GPU say") {
  const json recorded = counts()["tensors"];
  int compared = 0;
  const json whole = trace_of("transformer_fp32.safetensors", "fp16,bf16,e4m3,e5m2", "0:32:4");
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

const json& named(const json& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const json& tensor) { return tensor["name"] == name; });
  INFO(name);
  REQUIRE(found != tensors.end());
  return *found;
}

TEST_CASE("trace: every FP16 store of a gradient loses what the numbers that it rounds promise") {
  const json stored = trace_of("transformer_fp16.safetensors", "fp16", "0");
  const json rounded = trace_of("transformer_stores.safetensors", "fp16", "0,8,20");
  std::uint64_t underflows = 0;
  for (const json& tensor : rounded) {
    const std::string name = tensor["name"];
    const json& seen = named(stored, name);
    const json& promised = tensor["formats"]["fp16"];
    CAPTURE(name);
    CHECK(seen["elements"] == tensor["elements"]);
    CHECK(seen["zeros"].get<std::uint64_t>() ==
          tensor["zeros"].get<std::uint64_t>() + promised["underflow"]["0"].get<std::uint64_t>());
    CHECK(seen["subnormals"] == promised["subnormal"]["0"]);
    CHECK(seen["infs"] == promised["overflow"]["0"]);
    CHECK(seen["nans"] == tensor["nans"]);
    underflows += promised["underflow"]["0"].get<std::uint64_t>();
  }
  // 13 layers, their outputs, inputs, weights and biases, under three scales.
  CHECK(rounded.size() == 13 * 4 * 3);
  CHECK(stored.size() == rounded.size());
  CHECK(underflows > 3000);

  // The backward pass's first store loses under any scale what the unscaled gradient says.
  const json& unscaled = named(rounded, "scale_0/step1199.head.gout");
  const double scaler = counts()["log"]["rows"].back()[2];
  REQUIRE(scaler == std::exp2(20));
  for (const auto& [key, power] :
       {std::pair("0", "0"), std::pair("8", "8"), std::pair("scaler", "20")}) {
    const json& seen = named(stored, "scale_" + std::string(key) + "/step1199.head.gout");
    CAPTURE(key);
    CHECK(seen["zeros"].get<std::uint64_t>() ==
          unscaled["zeros"].get<std::uint64_t>() +
              unscaled["formats"]["fp16"]["underflow"][power].get<std::uint64_t>());
    CHECK(seen["infs"] == unscaled["formats"]["fp16"]["overflow"][power]);
  }
}

}  // namespace
