#include <functional>
#include <iostream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/oracle/capture_reader.hpp"
#include "tests/oracle/rules.hpp"

namespace {

using namespace guardbit::oracle;

/// What the oracle says about one output element.
using Judge = std::function<std::uint64_t(const Vector&, const Vector&, const Scalar&)>;

struct Instruction {
  FormatParameters a, b, c, d;
  Judge judge;
};

FormatParameters format_named(const std::string& name) {
  static const std::map<std::string, FormatParameters> formats = {
      {"f64", fp64},  {"f32", fp32},  {"tf32", tf32}, {"bf16", bf16}, {"f16", fp16},
      {"e4m3", e4m3}, {"e5m2", e5m2}, {"s8", int8},   {"u8", uint8},  {"s4", int4},
      {"u4", uint4},  {"b1", b1},     {"s32", int32}};
  const auto found = formats.find(name);
  return found == formats.end() ? FormatParameters{} : found->second;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, '.');) parts.push_back(part);
  return parts;
}

FusedRule hopper_rule(const Instruction& types, const std::string& family) {
  const bool to_fp16 = types.d == fp16;
  if (types.a == tf32) return family == "wmma" ? hopper_wmma_tf32 : hopper_tf32;
  if (types.a.bits == 8) return to_fp16 ? hopper_fp8_fp16 : hopper_fp8_fp32;
  if (!to_fp16) return hopper_fp32;
  return family == "wgmma" ? hopper_wgmma_fp16 : hopper_fp16;
}

/// The meaning of a PTX name on sm_90 (NUMERICS.md sections 1.2, 1.5 and 3).
Instruction instruction_named(const std::string& name) {
  const std::vector<std::string> parts = split(name);
  const auto has = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  std::vector<FormatParameters> types;
  for (const std::string& part : parts)
    if (format_named(part).bits > 0) types.push_back(format_named(part));
  Instruction result;
  result.d = types.at(0);
  // WMMA on fp16 names D and C only.
  result.a = types.size() == 2 ? fp16 : types.at(1);
  result.b = types.size() == 2 ? fp16 : types.at(2);
  result.c = types.size() == 2 ? types[1] : types.size() == 3 ? types[0] : types[3];
  if (result.a == b1) {
    const auto operation = has("xor") ? BitOperation::xor_popc : BitOperation::and_popc;
    result.judge = [operation](const Vector& a, const Vector& b, const Scalar& c) {
      return bit_dot(operation, a, b, c);
    };
  } else if (result.d == int32) {
    const bool satfinite = has("satfinite");
    result.judge = [satfinite](const Vector& a, const Vector& b, const Scalar& c) {
      return integer_dot(a, b, c, satfinite);
    };
  } else if (result.d == fp64) {
    result.judge = [](const Vector& a, const Vector& b, const Scalar& c) {
      return fma_chain(fp64, a, b, c);
    };
  } else if (result.a.bits == 8 && parts[0] == "mma") {
    const FusedRule half = result.d == fp16 ? hopper_fp16 : hopper_fp32;
    result.judge = [half](const Vector& a, const Vector& b, const Scalar& c) {
      return fp8_by_halves(half, Composition::chained, a, b, c);
    };
  } else {
    const FusedRule rule = hopper_rule(result, parts[0]);
    result.judge = [rule](const Vector& a, const Vector& b, const Scalar& c) {
      return nvidia_fused(rule, a, b, c);
    };
  }
  return result;
}

/// Counts the outputs of the first executions that the oracle does not reproduce.
std::size_t mismatches_of(const Recording& recording, std::size_t executions,
                          std::size_t& compared) {
  const Instruction instruction = instruction_named(recording.metadata.at("instruction"));
  const RecordedTensor& a = recording.tensors.at("a");
  const RecordedTensor& b = recording.tensors.at("b");
  const RecordedTensor& c = recording.tensors.at("c");
  const RecordedTensor& d = recording.tensors.at("d");
  const auto positions = recording.tensors.find("e");
  const bool sparse = positions != recording.tensors.end();
  const bool negate = recording.metadata.contains("imm_scale_a");
  const std::size_t m = d.shape[1], n = d.shape[2], stored = a.shape[2], k_extent = b.shape[1];
  const auto operand = [](const FormatParameters& format, std::uint64_t code) {
    return format == tf32 ? tf32_from_register(code) : code;
  };
  std::size_t mismatches = 0;
  for (std::size_t output = 0; output < std::min(executions, d.shape[0]) * m * n; ++output) {
    const std::size_t t = output / (m * n), i = output / n % m, j = output % n;
    Vector left{instruction.a, {}};
    Vector right{instruction.b, {}};
    for (std::size_t s = 0; s < stored; ++s) {
      const std::size_t at = (t * m + i) * stored + s;
      const std::size_t k = sparse ? s / 2 * 4 + positions->second.codes[at] : s;
      const std::uint64_t sign = std::uint64_t{negate} << (instruction.a.bits - 1);
      left.codes.push_back(operand(instruction.a, a.codes[at]) ^ sign);
      right.codes.push_back(operand(instruction.b, b.codes[(t * k_extent + k) * n + j]));
    }
    const std::uint64_t answer = instruction.judge(left, right, {instruction.c, c.codes[output]});
    const bool both_nan =
        instruction.d == fp64 && is_nan(fp64, answer) && is_nan(fp64, d.codes[output]);
    if (answer != d.codes[output] && !both_nan) ++mismatches;
    ++compared;
  }
  return mismatches;
}

/// Replays the recordings of sm_90 with the oracle; 3 executions are the quick version.
void replay(std::size_t executions) {
  const auto shared = shared_folder();
  if (!shared) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared)\n";
    return;
  }
  std::size_t compared = 0;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "captures" / "h200")) {
    if (entry.path().extension() != ".safetensors") continue;
    INFO(entry.path().filename().string());
    CHECK(mismatches_of(read_recording(entry.path()), executions, compared) == 0);
    ++files;
  }
  CHECK(files > 0);
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("the oracle reproduces the H200's answers, first executions", "[shared]") { replay(3); }

TEST_CASE("the oracle reproduces all of the H200's answers", "[shared][sweep]") { replay(1000); }
