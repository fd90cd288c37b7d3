#include "experiments/suite/recorded_traces.hpp"

#include <algorithm>

#include "emulator/gemm/scalar.hpp"
#include "experiments/harness/own_recordings.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/traces/trace_name.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

double StepGradients::nonzero() const {
  double count = 0;
  for (const auto& tensor : tensors)
    count +=
        static_cast<double>(tensor.size()) - static_cast<double>(std::ranges::count(tensor, 0.0));
  return count;
}

StepGradients gradients_of(Run& run, const std::string& path, std::int64_t step,
                           std::string_view role) {
  StepGradients gradients;
  for (const formats::Tensor& tensor : run.read(path).tensors) {
    const TraceName name = parse_trace_name(tensor.name);
    if (name.role != role || !name.step || *name.step != static_cast<std::uint64_t>(step)) continue;
    auto& numbers = gradients.tensors.emplace_back();
    const auto count = static_cast<std::size_t>(formats::element_count(tensor.shape));
    for (std::size_t i = 0; i < count; ++i)
      numbers.push_back(emulator::scalar::decoded(
          tensor.format, formats::load_code(tensor.bytes, tensor.format, tensor.packing, i)));
  }
  if (gradients.tensors.empty())
    throw formats::Error(formats::printable(path), "has no tensor of role " + std::string(role) +
                                                       " at step " + std::to_string(step));
  return gradients;
}

std::vector<Parameter> trace_parameters() {
  using Kind = Parameter::Kind;
  return {{"trace", "file of recorded gradients", own_trace, "", Kind::path},
          {"step", "of the training", "200,599", "", Kind::integer, true, 0, 1e9}};
}

std::optional<std::string> trace_at(const std::string& name, Outcome& outcome) {
  auto path = find_recording(name);
  if (!path) outcome.lacks(name, missing_recording(name, "trace"));
  return path;
}

}  // namespace guardbit::experiments
