#include "experiments/harness/run.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm/gemm.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::experiments {

const std::vector<double>& Run::point(const std::string& key,
                                      const std::function<std::vector<double>()>& compute) {
  const auto known = options_.known.find(key);
  if (known != options_.known.end()) {
    points_[key] = known->second;
  } else {
    check_stop();
    inputs_ = {};
    PointResult result;
    result.values = compute();
    check_stop();
    result.inputs = inputs_.value();
    if (options_.finished) options_.finished(*this, key, result);
    points_[key] = std::move(result);
  }
  if (options_.progress && announced_ != 0)
    options_.progress(
        std::min(1.0, static_cast<double>(points_.size()) / static_cast<double>(announced_)));
  return points_[key].values;
}

emulator::CodeMatrix Run::multiply(const emulator::GemmPlan& plan,
                                   const emulator::GemmProblem& problem) {
  uses(problem.a);
  uses(problem.b);
  uses(plan);
  emulator::CodeMatrix d = emulator::execute(plan, problem, options_.threads, [&](std::int64_t) {
    return !(options_.stop && options_.stop());
  });
  check_stop();
  return d;
}

formats::TensorFile Run::read(const std::string& path) {
  formats::TensorFile file = formats::read_tensors(path);
  for (const formats::Tensor& tensor : file.tensors) {
    inputs_.add(tensor.bytes);
    formats_.insert(formats::name_of(tensor.format));
  }
  return file;
}

void Run::uses(const emulator::CodeMatrix& matrix) {
  inputs_.add(matrix.bytes);
  formats_.insert(formats::name_of(matrix.format));
}

void Run::check_stop() const {
  if (options_.stop && options_.stop()) throw Stopped{};
}

}  // namespace guardbit::experiments
