#include "tools/products/compared_result.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/forward_errors.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::tools {

namespace {

using emulator::CodeMatrix;
using formats::Error;

void require_shape(const CodeMatrix& d, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                   const std::string& where, const std::string& of) {
  if (d.batch == batch && d.rows == rows && d.columns == columns) return;
  const auto text = [](std::int64_t g, std::int64_t i, std::int64_t j) {
    return (g == 1 ? "" : std::to_string(g) + " of ") + std::to_string(i) + " x " +
           std::to_string(j);
  };
  throw Error(where, "is " + text(d.batch, d.rows, d.columns) + " where " + of + " is " +
                         text(batch, rows, columns));
}

}  // namespace

CodeMatrix result_matrix(const formats::Tensor& tensor) {
  if (tensor.shape.size() == 2 || tensor.shape.size() == 3) return emulator::matrix_of(tensor);
  formats::Tensor flat = tensor;
  const std::int64_t count = formats::element_count(tensor.shape),
                     columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::int64_t rows = tensor.shape.size() <= 1 ? 1 : tensor.shape[tensor.shape.size() - 2];
  if (count == 0) throw Error(tensor.name, "the tensor is empty");
  flat.shape = {count / (rows * columns), rows, columns};
  return emulator::matrix_of(flat);
}

void require_shape_of_product(const ComparedResult& x) {
  require_shape(x.d, x.problem->a.batch, x.problem->m(), x.problem->n(), x.where, "A * B");
}

void set_plan(ComparedResult& x, const std::string& plan, bool plan_says,
              const GivenFactors& given) {
  if (!plan.empty()) {
    x.plan = emulator::parse_plan(plan, "--plan");
    if (plan_says) {
      x.alpha = x.plan->epilogue.alpha;
      x.activation = x.plan->epilogue.activation;
      if (x.plan->epilogue.beta != 0) x.beta = x.plan->epilogue.beta;
    }
  }
  // A chain that begins with its addend has no alpha.
  if (x.plan && x.plan->epilogue.addition == emulator::Epilogue::Addition::initial &&
      !x.plan->epilogue.scales_operand() && plan_says)
    x.alpha = 1;
  x.alpha = given.alpha.value_or(x.alpha);
  x.beta = given.beta.value_or(x.beta);
  if (x.beta != 0 && x.problem && x.problem->c.empty())
    throw Error("compare", "there is a beta, so --c is needed");
  if (!x.plan) return;
  x.plan->epilogue.alpha = x.alpha;
  x.plan->epilogue.beta = x.beta;
  // The plan may have another form of what was asked for.
  if (function_of(x.plan->epilogue.activation) != function_of(x.activation))
    x.plan->epilogue.activation = x.activation;
  if (x.plan->epilogue.output != x.d.format)
    throw Error(x.where, "is " + formats::name_of(x.d.format) + " and the plan's result " +
                             formats::name_of(x.plan->epilogue.output));
}

ErrorReport error_report(const ComparedResult& x, const std::optional<CodeMatrix>& reference,
                         int threads, const std::function<bool(double done)>& go_on) {
  ErrorReport report;
  report.file = x.where;
  report.reference = "exact";
  report.d = x.d;
  report.plan = x.plan;
  if (reference) {
    require_shape(x.d, reference->batch, reference->rows, reference->columns, x.where,
                  "the reference");
    report.deviations = experiments::deviations(x.d, *reference, x.where);
  } else {
    report.deviations = experiments::exact_deviations(x.d, *x.problem, x.alpha, x.beta, threads,
                                                      x.where, go_on, x.activation);
    if (report.deviations.empty()) return report;
  }
  std::vector<double> bound_sums;
  std::optional<experiments::ErrorBound> bound;
  if (x.problem)
    report.sums = experiments::magnitudes(*x.problem, x.alpha, x.beta, threads, x.where);
  if (x.plan) {
    bound = report.bound = experiments::error_bound(*x.plan, *x.problem, "--plan");
    bound_sums = experiments::magnitudes(*x.problem, x.alpha, x.beta, threads, x.where,
                                         bound->least_a, bound->least_b);
    report.has_small_factors =
        !std::equal(bound_sums.begin(), bound_sums.end(), report.sums.begin(),
                    [](double with_least, double sum) { return !(with_least > sum); });
  }
  report.analysis =
      experiments::analyse(report.deviations, x.d.format, report.sums, bound, bound_sums);
  return report;
}

}  // namespace guardbit::tools
