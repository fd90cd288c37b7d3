#include <iostream>

#include "tests/catch.hpp"
#include "tests/oracle/capture_reader.hpp"
#include "tests/oracle/rules.hpp"

namespace {

using namespace guardbit::oracle;

struct Machine {
  FusedRule tf32_rule, fp32_rule, fp16_rule, fp8_fp32_rule, fp8_fp16_rule;
};

/// Rows of NUMERICS.md table 1.2 by architecture; FP8 only where it is native.
Machine machine_named(const std::string& arch) {
  if (arch == "sm_70") return {{}, volta_fp32, volta_fp16, {}, {}};
  if (arch == "sm_80" || arch == "sm_86" || arch == "sm_89")
    return {ampere_tf32, ampere_fp32, ampere_fp16, ada_fp8_fp32, ada_fp8_fp16};
  // wmma's tf32 blocks of 4 and mma's of 8 are the same for these files' 4 products.
  return {hopper_wmma_tf32, hopper_fp32, hopper_fp16, hopper_fp8_fp32, hopper_fp8_fp16};
}

FormatParameters input_format(const std::string& name) {
  if (name == "tf32") return tf32;
  if (name == "bf16") return bf16;
  if (name == "fp16") return fp16;
  return name == "e4m3" ? e4m3 : e5m2;
}

std::uint64_t answer(const Recording& recording, const Vector& a, const Vector& b,
                     const Scalar& c) {
  const std::string& arch = recording.metadata.at("arch");
  const Machine machine = machine_named(arch);
  const bool to_fp16 = c.format == fp16;
  if (a.format == tf32) return nvidia_fused(machine.tf32_rule, a, b, c);
  const FusedRule& half = to_fp16 ? machine.fp16_rule : machine.fp32_rule;
  if (a.format.bits == 16) return nvidia_fused(half, a, b, c);
  if (recording.metadata.at("unit") == "mma.sync" && arch != "sm_89")
    return fp8_by_halves(half, Composition::chained, a, b, c);
  return nvidia_fused(to_fp16 ? machine.fp8_fp16_rule : machine.fp8_fp32_rule, a, b, c);
}

std::size_t mismatches_of(const Recording& recording, std::size_t& compared) {
  const FormatParameters input = input_format(recording.metadata.at("inputs"));
  const FormatParameters output = recording.metadata.at("output") == "fp16" ? fp16 : fp32;
  const RecordedTensor& a = recording.tensors.at("a");
  const RecordedTensor& b = recording.tensors.at("b");
  const RecordedTensor& c = recording.tensors.at("c");
  const RecordedTensor& d = recording.tensors.at("d");
  const std::size_t length = a.shape[1];
  std::size_t mismatches = 0;
  for (std::size_t t = 0; t < d.codes.size(); ++t) {
    Vector left{input, {}};
    Vector right{input, {}};
    for (std::size_t k = t * length; k < (t + 1) * length; ++k) {
      left.codes.push_back(input == tf32 ? tf32_from_register(a.codes[k]) : a.codes[k]);
      right.codes.push_back(input == tf32 ? tf32_from_register(b.codes[k]) : b.codes[k]);
    }
    if (answer(recording, left, right, {output, c.codes[t]}) != d.codes[t]) ++mismatches;
    ++compared;
  }
  return mismatches;
}

}  // namespace

TEST_CASE("the oracle reproduces the published dot products of eight machines", "[shared]") {
  const auto shared = shared_folder();
  if (!shared) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared)\n";
    return;
  }
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "captures/published")) {
    if (entry.path().extension() != ".safetensors") continue;
    INFO(entry.path().filename().string());
    CHECK(mismatches_of(read_recording(entry.path()), compared) == 0);
  }
  CHECK(compared > 0);
}
