#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "emulator/operators/attention/kernels.hpp"
#include "emulator/replay/recording.hpp"
#include "emulator/replay/replay.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/operators/recorded_calls.hpp"
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
  Context context;
  context.flags = &flags;
  context.threads = 2;
  std::vector<Judged> judged;
  for (const Call& call : recording.calls) {
    for (const auto& [name, value] : call.changed_flags) flags[name] = value;
    if (is_attention(call)) judged.push_back({&call, emulator::replay::replay_call(call, context)});
  }
  return judged;
}

/// What a call without bias and dropout asks for.
Problem problem_of(const Call& call, std::size_t query, Causal causal) {
  using emulator::operators::numbers_of;
  const auto& q = call.tensor(query, "query");
  const auto& k = call.tensor(query + 1, "key");
  const auto& v = call.tensor(query + 2, "value");
  Problem x{.type = q.type,
            .batch = q.shape[0],
            .heads = q.shape[1],
            .kv_heads = k.shape[1],
            .queries = q.shape[2],
            .keys = k.shape[2],
            .width = q.shape[3],
            .value_width = v.shape[3],
            .q = numbers_of(q),
            .k = numbers_of(k),
            .v = numbers_of(v)};
  x.scale = 1 / std::sqrt(static_cast<double>(x.width));
  x.causal = causal;
  return x;
}

/// Numbers, rounded to the type, that are not those of a recorded tensor.
std::int64_t differing(const formats::Format& type, const std::vector<float>& numbers,
                       const emulator::replay::Value& recorded) {
  const std::vector<float> wanted = emulator::operators::numbers_of(*recorded.tensor());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    count += emulator::operators::rounded_to(type, numbers[i]) == wanted[i] ? 0 : 1;
  return count;
}

struct Wrong {
  std::int64_t outputs = 0, log_sums = 0;
};

/// What a changed kernel has wrong of all calls of one forward operator without causal mask.
Wrong forward_by(const Recording& recording, std::string_view op,
                 const std::function<ForwardKernel(const Problem&)>& kernel_of) {
  Wrong wrong;
  for (const Call& call : recording.calls) {
    if (call.op != op) continue;
    const std::size_t causal = op.find("flash") != std::string_view::npos ? 4 : 6;
    if (call.boolean(causal, "is_causal", false) || call.tensor(0, "query").shape[2] == 1) continue;
    const Problem x = problem_of(call, 0, Causal::none);
    const auto result = emulator::attention::compute(kernel_of(x), x);
    wrong.outputs += differing(x.type, result.out, (*call.out.list())[0]);
    if (x.queries % 32 == 0 || causal == 4)
      wrong.log_sums += differing(formats::fp32, result.logsumexp, (*call.out.list())[1]);
  }
  return wrong;
}

Wrong flash_by(const Recording& recording, const std::function<void(ForwardForm&)>& change) {
  return forward_by(recording, "aten._scaled_dot_product_flash_attention.default",
                    [&](const Problem& x) {
                      ForwardKernel kernel = emulator::attention::flash_forward(x, {});
                      change(kernel.form);
                      return kernel;
                    });
}

Wrong efficient_by(const Recording& recording, const std::function<void(ForwardForm&)>& change) {
  return forward_by(recording, "aten._scaled_dot_product_efficient_attention.default",
                    [&](const Problem& x) {
                      ForwardKernel kernel = emulator::attention::efficient_forward(x);
                      change(kernel.form);
                      return kernel;
                    });
}

/// What a changed kernel has wrong of all gradients of one backward operator.
std::int64_t backward_by(const Recording& recording, std::string_view backend,
                         const std::function<BackwardKernel(const Problem&)>& kernel_of) {
  std::int64_t wrong = 0;
  const bool is_flash = backend == "flash";
  for (const Call& call : recording.calls) {
    if (call.op != std::string(prefix) + std::string(backend) + "_attention_backward.default")
      continue;
    const bool is_causal = call.boolean(11, "is_causal", false);
    const Problem x = problem_of(call, 1,
                                 !is_causal ? Causal::none
                                 : is_flash ? Causal::bottom_right
                                            : Causal::top_left);
    if (x.queries % 32 != 0 && !is_flash) continue;
    const std::size_t out = is_flash ? 4 : 5;
    const BackwardProblem problem{
        .forward = x,
        .grad = emulator::operators::numbers_of(call.tensor(0, "grad_out")),
        .out = emulator::operators::numbers_of(call.tensor(out, "out")),
        .logsumexp = emulator::operators::numbers_of(call.tensor(out + 1, "logsumexp"))};
    const auto result = emulator::attention::compute_backward(kernel_of(x).form, problem);
    wrong += differing(x.type, result.dq, (*call.out.list())[0]) +
             differing(x.type, result.dk, (*call.out.list())[1]) +
             differing(x.type, result.dv, (*call.out.list())[2]);
  }
  return wrong;
}

std::int64_t flash_gradients_by(const Recording& recording,
                                const std::function<void(BackwardForm&)>& change) {
  return backward_by(recording, "flash", [&](const Problem& x) {
    BackwardKernel kernel = emulator::attention::flash_backward(x, {}, false);
    change(kernel.form);
    return kernel;
  });
}

std::int64_t efficient_gradients_by(const Recording& recording,
                                    const std::function<void(BackwardForm&)>& change) {
  return backward_by(recording, "efficient", [&](const Problem& x) {
    BackwardKernel kernel = emulator::attention::efficient_backward(x, true);
    change(kernel.form);
    return kernel;
  });
}

void check_wrong_kernels(const Recording& recording) {
  const auto as_it_is = [](auto&) {};
  CHECK(flash_by(recording, as_it_is).outputs == 0);
  CHECK(flash_by(recording, as_it_is).log_sums == 0);
  CHECK(flash_by(recording, [](ForwardForm& f) { f.keys_descend = false; }).outputs > 0);
  CHECK(flash_by(recording, [](ForwardForm& f) { f.fuses_exponent = true; }).log_sums > 0);
  CHECK(flash_by(recording, [](ForwardForm& f) { f.pairs_apart = false; }).log_sums > 0);
  CHECK(flash_by(recording, [](ForwardForm& f) { f.products = 8; }).outputs > 0);
  CHECK(flash_by(recording, [](ForwardForm& f) { f.approximates_reciprocal = true; }).outputs > 0);
  using emulator::attention::RowSum;
  CHECK(flash_by(recording, [](ForwardForm& f) { f.row_sum = RowSum::fresh; }).log_sums > 0);
  CHECK(efficient_by(recording, as_it_is).outputs == 0);
  CHECK(efficient_by(recording, as_it_is).log_sums == 0);
  CHECK(efficient_by(recording, [](ForwardForm& f) { f.products = 16; }).outputs > 0);
  CHECK(efficient_by(recording, [](ForwardForm& f) { f.row_sum = RowSum::running; }).log_sums > 0);
  CHECK(efficient_by(recording, [](ForwardForm& f) { f.approximates_reciprocal = true; }).outputs >
        0);
  using emulator::attention::LogSum;
  CHECK(efficient_by(recording, [](ForwardForm& f) { f.log_sum = LogSum::fused_ln2; }).log_sums >
        0);
  CHECK(flash_gradients_by(recording, as_it_is) == 0);
  CHECK(flash_gradients_by(recording, [](BackwardForm& f) { f.queries_descend = false; }) > 0);
  CHECK(flash_gradients_by(recording, [](BackwardForm& f) { f.key_tile = 64; }) > 0);
  CHECK(flash_gradients_by(recording, [](BackwardForm& f) { f.delta.threads = 1; }) > 0);
  CHECK(flash_gradients_by(recording, [](BackwardForm& f) { f.delta.descends = false; }) > 0);
  CHECK(flash_gradients_by(recording, [](BackwardForm& f) { f.uses_rounded_probability = true; }) >
        0);
  CHECK(efficient_gradients_by(recording,
                               [](BackwardForm& f) { f.uses_rounded_probability = false; }) > 0);
  CHECK(efficient_gradients_by(recording, [](BackwardForm& f) { f.scales_early = false; }) > 0);
  CHECK(efficient_gradients_by(recording, [](BackwardForm& f) { f.products = 16; }) > 0);
  CHECK(efficient_gradients_by(recording, [](BackwardForm& f) {
          f.probability = emulator::attention::Probability::two_products;
        }) > 0);
}

/// What a changed kernel has wrong of one query's outputs.
std::int64_t one_query_by(const Recording& recording,
                          const std::function<void(ForwardForm&)>& change) {
  std::int64_t wrong = 0;
  for (const Call& call : recording.calls) {
    const Problem x = problem_of(call, 0, Causal::none);
    ForwardKernel kernel = emulator::attention::cudnn_forward(x, false);
    change(kernel.form);
    const auto result = emulator::attention::compute(kernel, x);
    wrong += differing(x.type, result.out, (*call.out.list())[0]);
  }
  return wrong;
}

}  // namespace

TEST_CASE("Attention: cuDNN's inference of one query") {
  const Recording recording = emulator::replay::read_recording(
      in_source("tests/golden/operators/cudnn_one_query.safetensors"));
  const std::vector<Judged> judged = judge_attention(recording);
  CHECK(judged.size() == 12);
  for (const Judged& x : judged) CHECK(x.result.status == Status::exact);
  CHECK(one_query_by(recording, [](ForwardForm&) {}) == 0);
  CHECK(one_query_by(recording, [](ForwardForm& f) { f.keys_descend = true; }) > 0);
  // The tiles of more keys, those of fewer.
  CHECK(one_query_by(recording, [](ForwardForm& f) { f.key_tile = 128; }) > 0);
  CHECK(one_query_by(recording, [](ForwardForm& f) {
          f.key_tile = 64;
          f.key_warps = 1;
        }) > 0);
}

TEST_CASE("Attention: cuDNN's scores of one query are scaled, then multiplied by log2(e)") {
  Recording recording = emulator::replay::read_recording(
      in_source("tests/golden/operators/rare_roundings.safetensors"));
  std::erase_if(recording.calls,
                [](const Call& call) { return call.op.find("attention") == std::string::npos; });
  REQUIRE(recording.calls.size() == 1);
  CHECK(one_query_by(recording, [](ForwardForm&) {}) == 0);
  CHECK(one_query_by(recording, [](ForwardForm& f) {
          f.scores = emulator::attention::Scores::before_maximum;
        }) == 8);
}

TEST_CASE("Attention: the shared recording of three backends", "[long][shared]") {
  const auto recording = shared_recording("attention");
  if (!recording) return;
  int differing = 0, unordered = 0, exact = 0;
  for (const Judged& x : judge_attention(*recording)) {
    INFO(x.call->op << ": " << x.result.plan);
    differing += x.result.status == Status::differs;
    unordered += x.result.status == Status::unordered;
    exact += x.result.status == Status::exact;
    CHECK(x.result.status != Status::unmodelled);
    if (x.result.status == Status::unordered) CHECK(x.result.outputs == x.result.outputs_exact);
  }
  // cuDNN's logsumexp of one query of 128 elements and 300 keys is open.
  CHECK(differing == 1);
  CHECK(exact + unordered == 97);
  CHECK(unordered >= 14);
  check_wrong_kernels(*recording);
}

}  // namespace guardbit::tests
