#include "experiments/traces/trace_name.hpp"

#include "tests/catch.hpp"

namespace guardbit::experiments {

TEST_CASE("trace: names say step, rank, tensor and role") {
  CHECK(parse_trace_name("step0100.2.weight.grad") ==
        TraceName{100, std::nullopt, "2.weight", "wgrad"});
  CHECK(parse_trace_name("s200.7.gout") == TraceName{200, std::nullopt, "7", "grad_out"});
  CHECK(parse_trace_name("s200.0.weight.wgrad") ==
        TraceName{200, std::nullopt, "0.weight", "wgrad"});
  CHECK(parse_trace_name("step0399/b.0.qkv.weight.grad") ==
        TraceName{399, std::nullopt, "b.0.qkv.weight", "wgrad"});
  CHECK(parse_trace_name("step0399/block1.out.agrad") ==
        TraceName{399, std::nullopt, "block1.out", "grad_out"});
  CHECK(parse_trace_name("rank_3/iter_12/fc1.act") == TraceName{12, 3, "fc1", "act"});
  CHECK(parse_trace_name("step-7.fc1.weight") ==
        TraceName{7, std::nullopt, "fc1.weight", "weight"});
  CHECK(parse_trace_name("fc1") == TraceName{std::nullopt, std::nullopt, "fc1", ""});
  CHECK(parse_trace_name("grad") == TraceName{std::nullopt, std::nullopt, "grad", "wgrad"});
  CHECK(parse_trace_name("") == TraceName{});
  CHECK(parse_trace_name("grads.fc1.weight") ==
        TraceName{std::nullopt, std::nullopt, "fc1.weight", "wgrad"});
  CHECK(parse_trace_name("step3/updates/fc1.0") == TraceName{3, std::nullopt, "fc1.0", "update"});
  CHECK(parse_trace_name("grad.fc1.act") ==
        TraceName{std::nullopt, std::nullopt, "grad.fc1", "act"});
  CHECK(parse_trace_name("act.weight") ==
        TraceName{std::nullopt, std::nullopt, "act.weight", "weight"});
  // Step and rank at the end.
  CHECK(parse_trace_name("fc1.weight.grad/step3") ==
        TraceName{3, std::nullopt, "fc1.weight", "wgrad"});
  CHECK(parse_trace_name("fc1.gout.rank_2.iter-40") == TraceName{40, 2, "fc1", "grad_out"});
  CHECK(parse_trace_name("step3") == TraceName{std::nullopt, std::nullopt, "step3", ""});
  // Words that only look like steps.
  CHECK(parse_trace_name("net.s3.r2.gout") ==
        TraceName{std::nullopt, std::nullopt, "net.s3.r2", "grad_out"});
  CHECK(parse_trace_name("stem4.update") ==
        TraceName{std::nullopt, std::nullopt, "stem4", "update"});
}

}  // namespace guardbit::experiments
