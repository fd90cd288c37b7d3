#include <map>
#include <string>

#include "emulator/operators/memory_order.hpp"
#include "emulator/replay/replay.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

// Pooling, interpolation and grids: drawn calls with the bits that an H200 gave.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using emulator::replay::Call;
using emulator::replay::CallResult;
using emulator::replay::Context;
using emulator::replay::Recording;
using emulator::replay::Status;

Recording drawn() {
  return emulator::replay::read_recording(in_source("tests/golden/operators/images.safetensors"));
}

/// The same call with operands that lie in rows; nothing of calls whose operands do.
std::optional<Call> in_rows(const Call& call) {
  Call other = call;
  bool is_other = false;
  for (emulator::replay::Value& value : other.args) {
    auto* tensor = std::get_if<ops::Tensor>(&value.content);
    if (tensor == nullptr || !ops::says_channels_last(*tensor)) continue;
    tensor->stride = ops::contiguous_stride(tensor->shape);
    is_other = true;
  }
  return is_other ? std::optional(other) : std::nullopt;
}

}  // namespace

TEST_CASE("Replay: drawn pooling, interpolation and grids are exact, each call") {
  Context context;
  int calls = 0;
  for (const Call& call : drawn().calls) {
    CAPTURE(calls, call.op);
    CHECK(emulator::replay::replay_call(call, context).status == Status::exact);
    ++calls;
  }
  CHECK(calls == 232);
}

TEST_CASE("Replay: images whose channels lie together have kernels of their own") {
  Context context;
  std::map<std::string, int> differing;
  for (const Call& call : drawn().calls) {
    const std::optional<Call> other = in_rows(call);
    if (!other) continue;
    const CallResult result = emulator::replay::replay_call(*other, context);
    if (result.status != Status::exact) ++differing[call.op];
  }
  // In rows sums are divided twice, gradients added by atomics, other products fused.
  CHECK(differing["aten._adaptive_avg_pool2d.default"] > 0);
  CHECK(differing["aten._adaptive_avg_pool2d_backward.default"] > 0);
  CHECK(differing["aten.upsample_bilinear2d.default"] > 0);
  CHECK(differing["aten.max_pool2d_with_indices_backward.default"] > 0);
  CHECK(differing["aten.upsample_nearest2d.default"] == 0);
  CHECK(differing["aten.max_pool2d_with_indices.default"] == 0);
}

}  // namespace guardbit::tests
