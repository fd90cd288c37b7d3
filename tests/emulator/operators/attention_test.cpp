#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "emulator/operators/attention/kernels.hpp"
#include "emulator/replay/recording.hpp"
#include "emulator/replay/replay.hpp"
#include "tests/places.hpp"

// Attention against recorded calls of PyTorch's backends; kernels that differ in one rule must not
// give the recorded bits.
namespace guardbit::tests {
namespace {

using emulator::attention::BackwardForm;
using emulator::attention::BackwardKernel;
using emulator::attention::BackwardProblem;
using emulator::attention::Causal;
using emulator::attention::ForwardForm;
using emulator::attention::ForwardKernel;
using emulator::attention::Problem;
using emulator::replay::Call;
using emulator::replay::CallResult;
using emulator::replay::Context;
using emulator::replay::Recording;
using emulator::replay::Status;

constexpr std::string_view prefix = "aten._scaled_dot_product_";

bool is_attention(const Call& call) { return call.op.starts_with(prefix); }

struct Judged {
  const Call* call;
  CallResult result;
};

std::vector<Judged> judge_attention(const Recording& recording) {
  std::map<std::string, std::string> flags = recording.metadata;
  Context context{.flags = &flags, .threads = 2};
  std::vector<Judged> judged;
  for (const Call& call : recording.calls) {
    for (const auto& [name, value] : call.changed_flags) flags[name] = value;
    if (is_attention(call)) judged.push_back({&call, emulator::replay::replay_call(call, context)});
  }
  return judged;
}

std::string golden(std::string_view name) {
  return in_source("tests/golden/operators/" + std::string(name) + ".safetensors");
}

/// The decompressed copy of a shared recording; empty where there is none.
std::string shared_recording(const std::string& name) {
  const char* const place = std::getenv("GUARDBIT_SHARED");
  const std::filesystem::path shared = place != nullptr ? place : "../shared";
  const auto packed = shared / "recordings" / (name + ".safetensors.xz");
  if (!std::filesystem::exists(packed)) return "";
  const auto file = std::filesystem::temp_directory_path() / ("guardbit_" + name + ".safetensors");
  const std::string command = "xz -dc '" + packed.string() + "' >'" + file.string() + "'";
  return std::system(command.c_str()) == 0 ? file.string() : "";
}

}  // namespace

TEST_CASE("Attention: the shared recording of three backends", "[shared]") {
  const std::string file = shared_recording("attention");
  if (file.empty()) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared), or no xz\n";
    return;
  }
  const Recording recording = emulator::replay::read_recording(file);
  int differing = 0, unordered = 0, exact = 0;
  for (const Judged& x : judge_attention(recording)) {
    INFO(x.call->op << ": " << x.result.plan);
    differing += x.result.status == Status::differs;
    unordered += x.result.status == Status::unordered;
    exact += x.result.status == Status::exact;
    CHECK(x.result.status != Status::unmodelled);
    if (x.result.status == Status::unordered) CHECK(x.result.outputs == x.result.outputs_exact);
  }
  std::filesystem::remove(file);
  CHECK(exact == 84);
  CHECK(unordered == 14);
  CHECK(differing == 0);
}

}  // namespace guardbit::tests
