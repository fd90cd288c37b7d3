#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/operators/reduction.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/row_norms.hpp"
#include "emulator/operators/softmax.hpp"
#include "emulator/replay/replay.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/operators/recorded_calls.hpp"

// Reductions, softmax, normalisations, losses, pooling and draws against recorded calls of PyTorch,
// and the same with one rule changed, which must not give the recorded bits.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using emulator::replay::Call;
using emulator::replay::CallResult;
using emulator::replay::Context;
using emulator::replay::Recording;
using emulator::replay::Status;

/// Those of this test; others have tests of their own.
const std::set<std::string_view> operators = {
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool2d_backward.default",
    "aten._foreach_norm.Scalar",
    "aten._fused_rms_norm.default",
    "aten._fused_rms_norm_backward.default",
    "aten._log_softmax.default",
    "aten._log_softmax_backward_data.default",
    "aten._softmax.default",
    "aten._softmax_backward_data.default",
    "aten.amax.default",
    "aten.argmax.default",
    "aten.avg_pool2d.default",
    "aten.avg_pool2d_backward.default",
    "aten.bernoulli.default",
    "aten.binary_cross_entropy_with_logits.default",
    "aten.cudnn_batch_norm.default",
    "aten.cudnn_batch_norm_backward.default",
    "aten.cumsum.default",
    "aten.embedding_dense_backward.default",
    "aten.index_add.default",
    "aten.linalg_vector_norm.default",
    "aten.logsumexp.default",
    "aten.max_pool2d_with_indices.default",
    "aten.max_pool2d_with_indices_backward.default",
    "aten.mean.default",
    "aten.mean.dim",
    "aten.mse_loss.default",
    "aten.native_batch_norm.default",
    "aten.native_batch_norm_backward.default",
    "aten.native_dropout.default",
    "aten.native_group_norm.default",
    "aten.native_group_norm_backward.default",
    "aten.native_layer_norm.default",
    "aten.native_layer_norm_backward.default",
    "aten.nll_loss_backward.default",
    "aten.nll_loss_forward.default",
    "aten.prod.dim_int",
    "aten.rand.default",
    "aten.randint.low",
    "aten.randn.default",
    "aten.randperm.default",
    "aten.smooth_l1_loss.default",
    "aten.sort.default",
    "aten.std.correction",
    "aten.sum.default",
    "aten.sum.dim_IntList",
    "aten.upsample_bilinear2d.default",
    "aten.upsample_nearest2d.default",
    "aten.var.correction",
};

struct Tally {
  int exact = 0, unordered = 0, other = 0;
};

Tally tally_of(const Recording& recording) {
  Context context{.machine = {}, .flags = &recording.metadata, .plans = nullptr, .threads = 2};
  Tally tally;
  for (std::size_t i = 0; i < recording.calls.size(); ++i) {
    const Call& call = recording.calls[i];
    if (!operators.contains(call.op)) continue;
    const CallResult result = emulator::replay::replay_call(call, context);
    INFO("call " << i << ", " << call.op << ": " << result.plan);
    CHECK(result.mismatches == 0);
    const bool is_right = result.status == Status::exact || result.status == Status::unordered;
    CHECK(is_right);
    (result.status == Status::exact       ? tally.exact
     : result.status == Status::unordered ? tally.unordered
                                          : tally.other) += 1;
  }
  return tally;
}

/// The random calls of `reductions`, in order, each with the state that the one before it left.
void follow_generator(Recording& recording) {
  std::map<std::string_view, std::uint64_t> increments = {
      {"aten.bernoulli.default", 12}, {"aten.native_dropout.default", 4},
      {"aten.rand.default", 4},       {"aten.randint.low", 4},
      {"aten.randn.default", 4},      {"aten.randperm.default", 304},
  };
  std::uint64_t offset = 0;
  for (Call& call : recording.calls) {
    const auto found = increments.find(call.op);
    if (found == increments.end()) continue;
    call.seed = 5;
    call.philox_offset = offset;
    offset += found->second;
  }
}

bool has_fp32_input(const Call& call) {
  const ops::Tensor* tensor = call.args.empty() ? nullptr : call.args[0].tensor();
  return tensor != nullptr && tensor->type == formats::fp32;
}

bool gives(const ops::Tensor& result, const ops::Tensor& recorded) {
  return std::ranges::equal(result.bytes, recorded.bytes);
}

/// The FP32 sums of a recording over one dimension, by shapes that `changed` makes of the right
/// ones; those that it leaves as they are do not count.
struct Agreement {
  int calls = 0, right = 0;
};
template <class Change>
Agreement sums_with(const Recording& recording, const Change& change) {
  Agreement agreement;
  for (const Call& call : recording.calls) {
    if (call.op != "aten.sum.dim_IntList" || !has_fp32_input(call)) continue;
    const ops::Tensor& input = call.tensor(0, "self");
    const ops::ReductionWalk walk =
        ops::walk_of_reduction(input, call.integers(1, "dim"), call.boolean(2, "keepdim", false));
    ops::ReductionShape shape = ops::shape_of_reduction(walk, input.offset, {}, {});
    if (!change(shape)) continue;
    const std::vector<float> sums = ops::reduced(ops::Sum{}, input, walk, shape, 1);
    ++agreement.calls;
    agreement.right +=
        gives(ops::tensor_of_numbers(formats::fp32, walk.result_shape, sums), *call.out.tensor());
  }
  return agreement;
}

template <class Change>
Agreement softmax_with(const Recording& recording, std::string_view op, const Change& change) {
  Agreement agreement;
  const bool is_gradient = op.find("backward") != std::string_view::npos;
  const bool is_logarithm = op.find("log_softmax") != std::string_view::npos;
  for (const Call& call : recording.calls) {
    if (call.op != op || !has_fp32_input(call)) continue;
    const ops::Tensor& input = *call.args[0].tensor();
    const std::int64_t dimension = call.integer(is_gradient ? 2 : 1, "dim");
    const auto d = static_cast<std::size_t>(dimension < 0 ? dimension + input.rank() : dimension);
    ops::SoftmaxSizes sizes{.size = input.shape[d]};
    for (std::size_t i = d + 1; i < input.shape.size(); ++i) sizes.inner *= input.shape[i];
    sizes.is_aligned = sizes.size % 4 == 0;
    ops::SoftmaxShape shape = is_gradient ? ops::backward_shape(sizes) : ops::forward_shape(sizes);
    if (!change(sizes, shape)) continue;
    const ops::SoftmaxResult result =
        is_gradient ? ops::softmax_gradient(input, call.tensor(1, "output"), dimension,
                                            is_logarithm, formats::fp32, 1, shape)
                    : ops::softmax(input, dimension, is_logarithm, formats::fp32, 1, shape);
    ++agreement.calls;
    agreement.right += gives(result.result, *call.out.tensor());
  }
  return agreement;
}

}  // namespace

TEST_CASE("Recorded operators in FP32, FP16 and BF16", "[shared]") {
  for (const std::string name : {"ops_f32", "ops_f16", "ops_bf16"}) {
    const auto recording = shared_recording(name);
    if (!recording) return;
    const Tally tally = tally_of(*recording);
    CHECK(tally.exact >= 230);
    CHECK(tally.unordered == 1);
    CHECK(tally.other == 0);
  }
}

TEST_CASE("Recorded operators: large, split, strided reductions, draws of the generator",
          "[shared]") {
  auto recording = shared_recording("reductions");
  if (!recording) return;
  follow_generator(*recording);
  const Tally tally = tally_of(*recording);
  CHECK(tally.exact == 191);
  CHECK(tally.unordered == 4);
  CHECK(tally.other == 0);
}

TEST_CASE("Recorded operators: batch_norm, group_norm, pooling", "[shared]") {
  const auto recording = shared_recording("convolution");
  if (!recording) return;
  const Tally tally = tally_of(*recording);
  CHECK(tally.exact == 42);
  CHECK(tally.unordered == 3);
  CHECK(tally.other == 0);
}

TEST_CASE("Sums with one rule changed do not give the recorded bits", "[shared]") {
  const auto recording = shared_recording("ops_f32");
  if (!recording) return;
  const auto unchanged = sums_with(*recording, [](ops::ReductionShape&) { return true; });
  CHECK(unchanged.calls > 20);
  CHECK(unchanged.right == unchanged.calls);
  const auto neighbours_first = sums_with(*recording, [](ops::ReductionShape& shape) {
    shape.lane_order = ops::LaneOrder::ascending;
    return shape.is_split_over_lanes && shape.width >= 4;
  });
  CHECK(neighbours_first.calls > 10);
  CHECK(neighbours_first.right == 0);
  const auto in_one_chain = sums_with(*recording, [](ops::ReductionShape& shape) {
    shape.vector = 1;
    shape.accumulators = 1;
    return shape.is_split_over_lanes && shape.width >= 32;
  });
  CHECK(in_one_chain.calls > 5);
  CHECK(in_one_chain.right < in_one_chain.calls);
}

TEST_CASE("Split sums without the split do not give the recorded bits", "[long][shared]") {
  const auto recording = shared_recording("reductions");
  if (!recording) return;
  const auto without_rows = sums_with(*recording, [](ops::ReductionShape& shape) {
    const bool is_changed = shape.is_split_over_rows && !shape.is_split_over_lanes;
    shape.is_split_over_rows = false;
    return is_changed;
  });
  CHECK(without_rows.calls >= 4);
  CHECK(without_rows.right == 0);
  const auto without_blocks = sums_with(*recording, [](ops::ReductionShape& shape) {
    const bool is_changed = shape.is_split_over_blocks;
    shape.is_split_over_blocks = false;
    return is_changed;
  });
  CHECK(without_blocks.calls >= 1);
  CHECK(without_blocks.right == 0);
}

TEST_CASE("Softmax with one rule changed does not give the recorded bits", "[shared]") {
  using Kind = ops::SoftmaxShape::Kind;
  const auto recording = shared_recording("ops_f32");
  if (!recording) return;
  const auto by_blocks = softmax_with(*recording, "aten._softmax.default",
                                      [](const ops::SoftmaxSizes& sizes, ops::SoftmaxShape& shape) {
                                        const bool is_changed =
                                            shape.kind == Kind::persistent && sizes.size > 1024;
                                        shape = {Kind::in_registers, 1024, 1, false};
                                        return is_changed;
                                      });
  CHECK(by_blocks.calls >= 1);
  CHECK(by_blocks.right < by_blocks.calls);
  const auto by_vectors = softmax_with(*recording, "aten._softmax.default",
                                       [](const ops::SoftmaxSizes&, ops::SoftmaxShape& shape) {
                                         const bool is_changed = shape.kind == Kind::in_registers;
                                         shape.kind = Kind::in_shared_memory;
                                         shape.vector = 4;
                                         return is_changed;
                                       });
  CHECK(by_vectors.calls >= 1);
  CHECK(by_vectors.right < by_vectors.calls);
  const auto alone = softmax_with(
      *recording, "aten._softmax.default", [](const ops::SoftmaxSizes&, ops::SoftmaxShape& shape) {
        const bool is_changed = shape.kind == Kind::across && shape.threads > 1;
        shape.threads = 1;
        return is_changed;
      });
  CHECK(alone.calls >= 1);
  CHECK(alone.right < alone.calls);
  const auto by_shuffles = softmax_with(*recording, "aten._softmax_backward_data.default",
                                        [](const ops::SoftmaxSizes&, ops::SoftmaxShape& shape) {
                                          const bool is_changed = shape.is_sequential;
                                          shape.is_sequential = false;
                                          return is_changed;
                                        });
  CHECK(by_shuffles.calls >= 3);
  CHECK(by_shuffles.right == 0);
}

TEST_CASE("Column sums of layer_norm's gradients by other threads differ from the recorded ones",
          "[long][shared]") {
  const auto recording = shared_recording("reductions");
  if (!recording) return;
  constexpr std::array<std::size_t, 4> all_threads = {1, 8, 16, 32};
  std::map<std::size_t, int> right;
  int calls = 0;
  for (const Call& call : recording->calls) {
    if (call.op != "aten.native_layer_norm_backward.default" || !has_fp32_input(call)) continue;
    const ops::Tensor* weight = call.optional_tensor(5, "weight");
    if (weight == nullptr) continue;
    ++calls;
    const std::vector<const ops::Tensor*> recorded = emulator::replay::tensors_of(call.out);
    for (const std::size_t threads : all_threads) {
      const ops::ColumnShape shape{threads, 8 * threads, 1};
      const ops::RowNormGradients result = ops::row_norm_gradients(
          ops::RowNorm::layer, call.tensor(0, "grad_out"), call.tensor(1, "input"),
          call.integers(2, "normalized_shape").size(), &call.tensor(3, "mean"),
          call.tensor(4, "rstd"), weight, true, 1, shape);
      right[threads] += gives(*result.bias, *recorded[2]);
    }
  }
  CHECK(calls == 5);
  for (const std::size_t threads : all_threads) CHECK(right[threads] < calls);
}

}  // namespace guardbit::tests
