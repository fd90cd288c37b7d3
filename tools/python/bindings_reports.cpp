#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "emulator/capture/product_capture.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "tools/products/compared_result.hpp"
#include "tools/products/error_picture.hpp"
#include "tools/products/error_report.hpp"
#include "tools/products/explain_product.hpp"
#include "tools/products/explanation.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"
#include "tools/python/product_arrays.hpp"
#include "tools/python/report.hpp"

namespace guardbit::python {

namespace {

using tools::AskedProduct;

Report explain(const emulator::GemmCapture& capture, std::size_t most_plans, double time_limit,
               int threads) {
  return interruptibly([&](const Stop& stop) {
    tools::ExplainSettings settings;
    settings.most_plans = most_plans;
    settings.time_limit = time_limit;
    settings.threads = threads;
    settings.interrupted = [&stop] { return stop.asked(); };
    const tools::Explanation explanation = tools::explain_product(capture, settings);
    std::ostringstream text;
    tools::print(text, explanation);
    return Report{tools::to_json(explanation).dump(), text.str()};
  });
}

Report explain_arrays(const Array& d, const ProductArrays& arrays, const AskedProduct& asked,
                      std::size_t most_plans, double time_limit, int threads) {
  emulator::GemmCapture capture = tools::capture_of(arrays.input(), d.tensor(), d.name);
  tools::set_asked(asked, capture);
  return explain(capture, most_plans, time_limit, threads);
}

Report explain_file(const std::string& path, const AskedProduct& asked, std::size_t most_plans,
                    double time_limit, int threads) {
  emulator::GemmCapture capture = emulator::read_gemm_capture(path);
  tools::set_asked(asked, capture);
  return explain(capture, most_plans, time_limit, threads);
}

Report compare(const tools::ComparedResult& x, const std::optional<emulator::CodeMatrix>& reference,
               int threads) {
  return interruptibly([&](const Stop& stop) {
    tools::ErrorReport report =
        tools::error_report(x, reference, threads, [&stop](double) { return !stop.asked(); });
    stop.check();
    if (reference) report.reference = "reference";
    std::ostringstream text;
    tools::print(text, report);
    return Report{tools::to_json(report).dump(), text.str(),
                  [report](const tools::ChartOptions& options) {
                    return tools::error_picture(report, options);
                  }};
  });
}

/// A view of the array where it has two or three dimensions, however it lies.
emulator::CodeMatrix result_of(const Array& array) {
  const std::size_t dimensions = array.shape.size();
  const bool is_matrix = (dimensions == 2 || dimensions == 3) && array.size() != 0;
  return is_matrix ? array.matrix() : tools::result_matrix(array.tensor());
}

Report compare_arrays(const Array& d, const Array& reference, int threads) {
  tools::ComparedResult x;
  x.where = d.name;
  x.d = result_of(d);
  return compare(x, result_of(reference), threads);
}

Report compare_product(const Array& d, const ProductArrays& arrays, const AskedProduct& asked,
                       const std::string& plan, int threads) {
  tools::ComparedResult x;
  x.where = d.name;
  x.d = result_of(d);
  x.problem = arrays.input().problem;
  x.beta = arrays.c == nullptr ? 0 : 1;
  if (!asked.activation.empty())
    x.activation =
        formats::require_word<emulator::Activation>("activation", asked.activation, "activation");
  tools::require_shape_of_product(x);
  tools::set_plan(x, plan, true, {asked.alpha, asked.beta});
  return compare(x, {}, threads);
}

}  // namespace

void bind_reports(nb::module_& module) {
  nb::class_<AskedProduct>(module, "AskedProduct")
      .def(nb::init<>())
      .def_rw("alpha", &AskedProduct::alpha, nb::arg().none())
      .def_rw("beta", &AskedProduct::beta, nb::arg().none())
      .def_rw("activation", &AskedProduct::activation)
      .def_rw("arch", &AskedProduct::arch)
      .def_rw("tf32", &AskedProduct::tf32);
  module.def("explain_arrays", explain_arrays, nb::arg("d"), nb::arg("arrays"), nb::arg("asked"),
             nb::arg("most_plans"), nb::arg("time_limit"), nb::arg("threads"));
  module.def("explain_file", explain_file, nb::arg("path"), nb::arg("asked"), nb::arg("most_plans"),
             nb::arg("time_limit"), nb::arg("threads"));
  module.def("compare_arrays", compare_arrays, nb::arg("d"), nb::arg("reference"),
             nb::arg("threads"));
  module.def("compare_product", compare_product, nb::arg("d"), nb::arg("arrays"), nb::arg("asked"),
             nb::arg("plan"), nb::arg("threads"));
}

}  // namespace guardbit::python
