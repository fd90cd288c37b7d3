#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/gemm/plan_library.hpp"
#include "emulator/gemm/usual_plan.hpp"
#include "formats/support/error.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/products/plans/call_plan.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"
#include "tools/python/product_arrays.hpp"
#include "tools/python/report.hpp"

namespace guardbit::python {

namespace {

using emulator::GemmPlan;
using formats::Error;

/// The plan that is named, with the factors in place of its own.
GemmPlan plan_of(const std::string& text, const std::optional<double>& alpha,
                 const std::optional<double>& beta, bool has_c) {
  GemmPlan plan = emulator::parse_plan(text, "plan");
  if (alpha) plan.epilogue.alpha = *alpha;
  if (beta) plan.epilogue.beta = *beta;
  if (!beta && has_c && plan.epilogue.beta == 0) plan.epilogue.beta = 1;
  if (plan.epilogue.beta != 0 && !has_c) throw Error("matmul", "there is a beta, so c is needed");
  return plan;
}

/// The shape of the product.
std::vector<std::int64_t> shape_of(const tools::GemmInput& input) {
  std::vector<std::int64_t> shape = {input.problem.m(), input.problem.n()};
  if (input.batched) shape.insert(shape.begin(), input.problem.a.batch);
  return shape;
}

/// Multiplies into `out`; the plan in full and the engine that executed it.
std::pair<std::string, std::string> multiply(const ProductArrays& arrays, const std::string& text,
                                             const std::optional<double>& alpha,
                                             const std::optional<double>& beta,
                                             const std::string& engine, int threads,
                                             const Array& out) {
  const tools::GemmInput input = arrays.input();
  const GemmPlan plan = plan_of(text, alpha, beta, arrays.c != nullptr);
  const std::string used(emulator::plan_engine(engine, plan).name);
  const std::span<std::byte> memory = out.output(plan.epilogue.output, shape_of(input));
  run_interruptibly([&](const Stop& stop) {
    emulator::ExecuteOptions how = {used, threads, [&](std::int64_t) { return !stop.asked(); }};
    how.memory = memory;
    emulator::execute(plan, input.problem, how);
  });
  return {emulator::to_text(plan), used};
}

using Pair = std::array<std::int64_t, 2>;

/// Strides and the like of rows and columns.
struct ConvolutionSteps {
  Pair stride, padding, dilation;
  std::int64_t groups;
};

emulator::Convolution convolution_of(const Array& x, const Array& weight,
                                     const ConvolutionSteps& steps) {
  for (const Array* array : {&x, &weight})
    if (array->shape.size() != 4) throw Error(array->name, "has not 4 dimensions");
  const auto [stride, padding, dilation, groups] = steps;
  if (groups < 1 || weight.shape[0] % groups != 0 || x.shape[1] != weight.shape[1] * groups)
    throw Error("conv", "x has " + std::to_string(x.shape[1]) + " channels and weight " +
                            std::to_string(weight.shape[1]) + " in each of " +
                            std::to_string(groups) + " groups");
  for (std::size_t i = 0; i < 2; ++i)
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0)
      throw Error("conv", "stride and dilation are at least 1, padding at least 0");
  const auto outputs = [&](std::size_t i) {
    const std::int64_t reach = dilation[i] * (weight.shape[i + 2] - 1) + 1;
    const std::int64_t room = x.shape[i + 2] + 2 * padding[i] - reach;
    if (room < 0) throw Error("conv", "the filter is larger than the padded input");
    return room / stride[i] + 1;
  };
  return {.n = x.shape[0],
          .c = x.shape[1],
          .h = x.shape[2],
          .w = x.shape[3],
          .o = weight.shape[0],
          .r = weight.shape[2],
          .s = weight.shape[3],
          .p = outputs(0),
          .q = outputs(1),
          .padding_h = padding[0],
          .padding_w = padding[1],
          .stride_h = stride[0],
          .stride_w = stride[1],
          .dilation_h = dilation[0],
          .dilation_w = dilation[1],
          .groups = groups};
}

std::vector<std::int64_t> output_shape(const emulator::Convolution& x) {
  return {x.n, x.o, x.p, x.q};
}

/// All codes as one row, as convolutions are lowered from.
emulator::CodeMatrix row_of(const Array& array) {
  const formats::Tensor tensor = array.tensor();
  return {tensor.format, 1, 1, array.size(), {tensor.bytes, tensor.owner}};
}

/// A number for each output channel as a row for each group.
emulator::CodeMatrix by_groups(const Array& bias, std::int64_t groups) {
  emulator::CodeMatrix rows = bias.vector_or_matrix(false).contiguous();
  const std::int64_t all = rows.size();
  rows.batch = groups;
  rows.rows = 1;
  rows.columns = all / groups;
  return rows;
}

std::pair<std::string, std::string> convolve(const Array& x, const Array& weight, const Array* bias,
                                             const ConvolutionSteps& steps, const std::string& text,
                                             const std::string& engine, int threads,
                                             const Array& out) {
  const emulator::Convolution convolution = convolution_of(x, weight, steps);
  const GemmPlan plan = plan_of(text, {}, {}, false);
  if (bias != nullptr && bias->size() != convolution.o)
    throw Error(bias->name, "is not one number for each of the " + std::to_string(convolution.o) +
                                " output channels");
  const std::string used(emulator::plan_engine(engine, plan).name);
  const std::span<std::byte> memory = out.output(plan.epilogue.output, output_shape(convolution));
  run_interruptibly([&](const Stop& stop) {
    emulator::GemmProblem problem =
        emulator::lower(convolution, row_of(x), row_of(weight), plan.convolution);
    if (bias != nullptr) problem.bias = by_groups(*bias, steps.groups);
    const emulator::CodeMatrix d = emulator::execute(
        plan, problem, {used, threads, [&](std::int64_t) { return !stop.asked(); }});
    stop.check();
    const emulator::CodeMatrix raised = emulator::raise_output(convolution, d).contiguous();
    std::copy_n(raised.bytes.begin(), memory.size(), memory.begin());
  });
  return {emulator::to_text(plan), used};
}

Report plan_of_call(const tools::AskedCall& asked) {
  const tools::CallPlan found = tools::plan_of_call(asked);
  std::ostringstream text;
  tools::print(text, found);
  return {tools::to_json(found).dump(), text.str()};
}

void bind_calls(nb::module_& module) {
  using tools::AskedCall;
  nb::class_<AskedCall>(module, "AskedCall")
      .def(
          "__init__",
          [](AskedCall* self, std::string op, std::string numbers, std::int64_t m, std::int64_t n,
             std::int64_t k, std::int64_t batch) {
            new (self) AskedCall();
            self->call = {std::move(op), std::move(numbers), m, n, k, batch, {}, {}};
          },
          nb::arg("op"), nb::arg("dtype"), nb::arg("m"), nb::arg("n"), nb::arg("k"),
          nb::arg("batch"))
      .def_rw("layout", &AskedCall::layout)
      .def_rw("book", &AskedCall::book)
      .def_rw("like", &AskedCall::like)
      .def_prop_rw(
          "a_stride", [](const AskedCall& x) { return x.call.a_stride; },
          [](AskedCall& x, std::vector<std::int64_t> stride) {
            x.call.a_stride = std::move(stride);
          })
      .def_prop_rw(
          "b_stride", [](const AskedCall& x) { return x.call.b_stride; },
          [](AskedCall& x, std::vector<std::int64_t> stride) {
            x.call.b_stride = std::move(stride);
          });
  module.def("plan_of_call", plan_of_call, nb::arg("asked"));
  module.attr("rule_agrees") = emulator::atlas::rule_agrees;
}

}  // namespace

void bind_products(nb::module_& module) {
  bind_product_arrays(module);
  bind_calls(module);
  nb::class_<ConvolutionSteps>(module, "ConvolutionSteps")
      .def(
          "__init__",
          [](ConvolutionSteps* self, std::pair<std::int64_t, std::int64_t> stride,
             std::pair<std::int64_t, std::int64_t> padding,
             std::pair<std::int64_t, std::int64_t> dilation, std::int64_t groups) {
            new (self) ConvolutionSteps{{stride.first, stride.second},
                                        {padding.first, padding.second},
                                        {dilation.first, dilation.second},
                                        groups};
          },
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
  module.def("multiply", multiply, nb::arg("arrays"), nb::arg("plan"), nb::arg("alpha").none(),
             nb::arg("beta").none(), nb::arg("engine"), nb::arg("threads"), nb::arg("out"));
  module.def("convolve", convolve, nb::arg("x"), nb::arg("weight"), nb::arg("bias").none(),
             nb::arg("steps"), nb::arg("plan"), nb::arg("engine"), nb::arg("threads"),
             nb::arg("out"));
  module.def(
      "convolution_shape",
      [](const Array& x, const Array& weight, const ConvolutionSteps& steps) {
        return output_shape(convolution_of(x, weight, steps));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("steps"));
  module.def(
      "usual_plan",
      [](const std::string& arch, const std::string& a, const std::string& b,
         const std::string& output, bool tf32) {
        const formats::Format of_a = formats::require_format(a, "a");
        const formats::Format to = output.empty()
                                       ? emulator::usual_result(of_a)
                                       : tools::require_element_format(output, "out_dtype");
        return emulator::to_text(
            emulator::usual_plan(arch, of_a, formats::require_format(b, "b"), to, tf32, "arch"));
      },
      nb::arg("arch"), nb::arg("a"), nb::arg("b"), nb::arg("output"), nb::arg("tf32"));
  module.def(
      "library_plan",
      [](const std::string& like, const std::string& a, const std::string& b) {
        return std::string(emulator::require_library_plan(like, formats::require_format(a, "a"),
                                                          formats::require_format(b, "b"), "like")
                               .plan);
      },
      nb::arg("like"), nb::arg("a"), nb::arg("b"));
  module.def(
      "plan_output",
      [](const std::string& plan) {
        return formats::name_of(emulator::parse_plan(plan, "plan").epilogue.output);
      },
      nb::arg("plan"));
  module.def(
      "with_output",
      [](const std::string& text, const std::string& output) {
        GemmPlan plan = emulator::parse_plan(text, "plan");
        plan.epilogue.output = tools::require_element_format(output, "out_dtype");
        return emulator::to_text(plan);
      },
      nb::arg("plan"), nb::arg("output"));
  module.def(
      "describe_plan",
      [](const std::string& plan) {
        return emulator::describe(emulator::parse_plan(plan, "plan"));
      },
      nb::arg("plan"));
  module.def("library_plans", [] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const emulator::LibraryPlan& x : emulator::library_plans())
      list.push_back({{"library", x.library},
                      {"arch", x.arch},
                      {"kernel", x.kernel},
                      {"plan", x.plan},
                      {"varies", x.note}});
    return list.dump();
  });
}

}  // namespace guardbit::python
