#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/replay/calls.hpp"
#include "emulator/replay/planned_product.hpp"
#include "emulator/replay/product_shape.hpp"
#include "formats/support/error.hpp"

// Matrix products, by plans.
namespace guardbit::emulator::replay {
namespace {

/// The one result, recorded or only its form.
const Tensor& recorded_result(const Call& call) {
  const auto results = tensors_of(call.out);
  if (results.size() != 1) throw UnknownArguments{"a product gives one tensor"};
  return *results[0];
}

GemmCapture capture_of(const Tensor& a, const Tensor& b, const Tensor& d, const Context& context) {
  if (a.type != b.type) throw UnknownArguments{"operands of two types"};
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.problem.a = matrix_of(a);
  capture.problem.b = matrix_of(b);
  capture.d = matrix_of(d);
  capture.shape = d.shape;
  capture.tf32 = context.flag("matmul_allow_tf32", false);
  const GemmProblem& x = capture.problem;
  if (x.b.rows != x.k() || capture.d.rows != x.m() || capture.d.columns != x.n() ||
      x.a.batch != x.b.batch || capture.d.batch != x.a.batch)
    throw UnknownArguments{"shapes that are no product"};
  return capture;
}

/// The same elements in another shape.
Tensor reshaped(const Tensor& tensor, Dimensions shape) {
  Tensor result = tensor;
  result.stride = operators::contiguous_stride(shape);
  result.shape = std::move(shape);
  return result;
}

Answer judged(const Call& call, Context& context, const GemmCapture& capture, std::string shape,
              Asked asked, std::optional<UsualPlan> usual = {}) {
  const ProductCall product{
      std::move(shape), {{"", [&] { return capture; }}}, asked, std::move(usual)};
  return answer_of(verdict_of_product(product, context), recorded_result(call));
}

/// Of so many bytes the largest power of two that divides them, up to the 16 that a kernel reads at
/// once.
std::int64_t alignment_of(std::int64_t bytes) {
  constexpr std::int64_t most = 16;
  return bytes == 0 ? most : std::min(most, bytes & -bytes);
}

/// Does an operand begin at a multiple of 16 bytes, or of as many as its rows are apart?
bool is_aligned(const Tensor& tensor) {
  const std::int64_t bytes = tensor.element_bytes();
  std::int64_t between = 0;
  for (const std::int64_t step : tensor.stride)
    if (step != 1) between |= step * bytes;
  return alignment_of(tensor.offset * bytes) >= alignment_of(between);
}

/// Where the elements of an operand lie when the library gets it: PyTorch copies a matrix that has
/// neither rows nor columns without gaps. Nothing: it begins at a place that its rows do not.
std::optional<Dimensions> stride_as_multiplied(const Tensor& tensor) {
  const std::size_t row = tensor.shape.size() - 2, column = row + 1;
  if (!atlas::layout_of(tensor.shape[row], tensor.shape[column], tensor.stride[row],
                        tensor.stride[column]))
    return operators::contiguous_stride(tensor.shape);
  if (!is_aligned(tensor)) return std::nullopt;
  return tensor.stride;
}

/// The call as the atlas knows it; nothing where it does not: other operators and formats, operands
/// that begin at places that their rows do not.
std::optional<atlas::ProductCall> asked_of(std::string_view op, const Tensor& a, const Tensor& b,
                                           const GemmCapture& capture) {
  std::optional<Dimensions> a_stride = stride_as_multiplied(a), b_stride = stride_as_multiplied(b);
  if (!a_stride || !b_stride) return std::nullopt;
  const bool is_fp32 = a.type == formats::fp32;
  const std::string numbers = !is_fp32 ? formats::name_of(a.type) : capture.tf32 ? "tf32" : "fp32";
  const GemmProblem& x = capture.problem;
  try {
    return atlas::call_of({.op = std::string(op),
                           .numbers = numbers,
                           .m = x.m(),
                           .n = x.n(),
                           .k = x.k(),
                           .batch = x.a.batch,
                           .a_stride = *std::move(a_stride),
                           .b_stride = *std::move(b_stride)},
                          "call");
  } catch (const formats::Error&) {
    return std::nullopt;
  }
}

/// mm, bmm.
Answer product(const Call& call, Context& context) {
  const Tensor& a = call.tensor(0, "self");
  const Tensor& b = call.tensor(1, "mat2");
  const Tensor& d = recorded_result(call);
  const GemmCapture capture = capture_of(a, b, d, context);
  const std::string_view op = a.rank() == 3 ? "bmm" : "mm";
  return judged(call, context, capture, shape_of_product(call.op, a, b, d),
                {asked_of(op, a, b, capture)});
}

/// C in the product's size: dimensions of one element, and those that it lacks, are repeated.
CodeMatrix addend_of(const Tensor& c, const GemmProblem& product) {
  const std::array sizes = {product.a.batch, product.m(), product.n()};
  std::array<std::int64_t, 3> steps{};
  std::int64_t step = 1;
  if (c.shape.size() > sizes.size()) throw UnknownArguments{"an addend of more dimensions"};
  const std::size_t missing = sizes.size() - c.shape.size();
  for (std::size_t i = sizes.size(); i-- > missing;) {
    const std::int64_t size = c.shape[i - missing];
    if (size != 1 && size != sizes.at(i)) throw UnknownArguments{"an addend of another size"};
    if (size != 1) steps.at(i) = step;
    step *= size;
  }
  return CodeMatrix{c.type,      product.a.batch,    product.m(),
                    product.n(), {c.bytes, c.owner}, Strides{steps[0], steps[1], steps[2]}};
}

/// addmm, baddbmm: D = beta C + alpha A B.
Answer sum_with_product(const Call& call, Context& context) {
  const Tensor& c = call.tensor(0, "self");
  const Tensor& a = call.tensor(1, "mat1");
  const Tensor& b = call.tensor(2, "mat2");
  const Tensor& d = recorded_result(call);
  GemmCapture capture = capture_of(a, b, d, context);
  capture.beta = call.number(99, "beta", 1);
  capture.alpha = call.number(99, "alpha", 1);
  GemmProblem& x = capture.problem;
  if (capture.beta != 0 && c.rank() == 1 && capture.beta == 1 && c.count() == x.n()) {
    x.bias = CodeMatrix{c.type, 1, 1, x.n(), {c.bytes, c.owner}, {}};
    capture.beta = 0;
  } else if (capture.beta != 0) {
    x.c = addend_of(c, x);
  }
  const std::string extra = shape_of_addend(c, capture.alpha, capture.beta);
  const bool is_layer = !x.bias.empty() && a.rank() == 2 && capture.alpha == 1;
  const std::string_view op = is_layer ? "addmm" : a.rank() == 3 ? "bmm" : "mm";
  return judged(call, context, capture, shape_of_product(call.op, a, b, d, extra),
                {asked_of(op, a, b, capture), !is_layer});
}

Answer matrix_vector(const Call& call, Context& context) {
  const bool has_addend = call.op.starts_with("aten.addmv");
  const std::size_t first = has_addend ? 1 : 0;
  const Tensor& a = call.tensor(first, has_addend ? "mat" : "self");
  const Tensor& vector = call.tensor(first + 1, "vec");
  const Tensor& result = recorded_result(call);
  const Tensor b = reshaped(vector, {vector.count(), 1}), d = reshaped(result, {result.count(), 1});
  GemmCapture capture = capture_of(a, b, d, context);
  std::string extra;
  if (has_addend) {
    const Tensor& c = call.tensor(0, "self");
    capture.alpha = call.number(99, "alpha", 1);
    capture.beta = call.number(99, "beta", 1);
    if (c.count() != capture.problem.m()) throw UnknownArguments{"an addend that is broadcast"};
    capture.problem.c = matrix_of(reshaped(c, {c.count(), 1}));
    extra = " + " + std::to_string(capture.alpha) + " " + std::to_string(capture.beta);
  }
  return judged(call, context, capture, shape_of_product(call.op, a, vector, result, extra),
                {asked_of("mm", a, b, capture), true});
}

/// Nothing for types that no recorded result is of.
std::optional<UsualPlan> usual_dot(const Tensor& x, const Tensor& y) {
  const bool is_fp32 = x.type == formats::fp32;
  if (!is_fp32 && x.type != formats::fp16 && x.type != formats::bf16) return std::nullopt;
  const bool contiguous = x.stride.at(0) == 1 && y.stride.at(0) == 1;
  const bool is_measured = contiguous && is_fp32 && x.count() >= 513 && x.count() <= 34443;
  constexpr int unsure = 990;
  return UsualPlan{"", to_text(atlas::plan_of_dot(x.type, x.count(), contiguous)),
                   is_measured ? atlas::rule_agrees : unsure};
}

Answer dot(const Call& call, Context& context) {
  const Tensor& x = call.tensor(0, "self");
  const Tensor& y = call.tensor(1, "tensor");
  const Tensor& result = recorded_result(call);
  if (x.rank() != 1 || y.rank() != 1) throw UnknownArguments{"operands that are no vectors"};
  return judged(call, context,
                capture_of(reshaped(x, {1, x.count()}), reshaped(y, {y.count(), 1}),
                           reshaped(result, {1, 1}), context),
                shape_of_product(call.op, x, y, result), {}, usual_dot(x, y));
}

constexpr std::array product_handlers = {
    Handler{"aten.addmm", sum_with_product},
    Handler{"aten.addmv", matrix_vector},
    Handler{"aten.baddbmm", sum_with_product},
    Handler{"aten.bmm", product},
    Handler{"aten.dot", dot},
    Handler{"aten.mm", product},
    Handler{"aten.mv", matrix_vector},
};

}  // namespace

std::span<const Handler> product_calls() { return product_handlers; }

}  // namespace guardbit::emulator::replay
