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

TEST_CASE("trace: paths say step and rank, also between other words") {
  const auto places = [](auto step, auto rank) { return TraceName{step, rank, "", ""}; };
  constexpr std::nullopt_t none = std::nullopt;
  CHECK(places_of_path("rank_0/iter_5/x") == places(5, 0));
  CHECK(places_of_path("grad_step3_rank1") == places(3, 1));
  CHECK(places_of_path("run-2/grads_step_100-rank-7") == places(100, 7));
  CHECK(places_of_path("global_step12/mp_rank_03_states") == places(12, 3));
  CHECK(places_of_path("step_5_of_step_9") == places(9, none));
  CHECK(places_of_path("iteration_step4") == places(4, none));
  CHECK(places_of_path("timestep5_prank2/stepwise_4") == places(none, none));
  CHECK(places_of_path("grads_s3_r2") == places(none, none));
  CHECK(places_of_path("step_") == places(none, none));
  CHECK(places_of_path("") == places(none, none));
}

}  // namespace guardbit::experiments
