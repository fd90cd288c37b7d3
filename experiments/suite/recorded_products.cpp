#include "experiments/suite/recorded_products.hpp"

#include "emulator/capture/product_capture.hpp"
#include "experiments/harness/own_recordings.hpp"
#include "experiments/harness/run.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::string_view own_products = "tests/golden/gemm";

double changed_outputs(Run& run, const std::string& path, const emulator::GemmPlan& plan) {
  const emulator::GemmCapture capture = emulator::read_gemm_capture(path);
  const emulator::CodeMatrix d = run.multiply(plan, capture.problem);
  double changed = 0;
  for (std::int64_t i = 0; i < d.size(); ++i) changed += d[i] == capture.d[i] ? 0 : 1;
  return changed;
}

}  // namespace

Parameter recordings_parameter() {
  return {"products", "folder of recorded products", own_products, "", Parameter::Kind::path};
}

void add_recorded_products(Run& run, std::span<const RecordedProduct> products, Outcome& outcome) {
  const std::string& folder = run.settings().word("products");
  for (const RecordedProduct& x : products) {
    const std::string name = folder + "/" + std::string(x.file);
    const auto path = find_recording(name);
    if (!path) {
      outcome.lacks(name, missing_recording(name, "products"));
      continue;
    }
    const auto& changed = run.point(std::string(x.what), [&] {
      return std::vector<double>{changed_outputs(run, *path, emulator::parse_plan(x.plan, x.file))};
    });
    outcome.findings.push_back(
        {std::string(x.what) + ": outputs whose bits differ", "", changed[0],
         Reference{.source = "the answer of cuBLAS on an H200 to the same numbers, torch 2.11",
                   .certainty = Certainty::measured}});
  }
}

}  // namespace guardbit::experiments
