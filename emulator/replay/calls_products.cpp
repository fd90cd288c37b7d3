#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
              std::optional<atlas::ProductCall> asked = {}) {
  const ProductCall product{std::move(shape), {{"", [&] { return capture; }}}, asked};
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

/// The call as the atlas knows it; nothing where it does not: other operators and formats, operands
/// that begin at places that their rows do not, strides for which PyTorch copies first.
std::optional<atlas::ProductCall> asked_of(std::string_view op, const Tensor& a, const Tensor& b,
                                           const GemmCapture& capture) {
  if (!is_aligned(a) || !is_aligned(b)) return std::nullopt;
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
                           .a_stride = a.stride,
                           .b_stride = b.stride},
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
                asked_of(op, a, b, capture));
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
  } else if (capture.beta != 0 && c.count() == x.n() && c.shape.back() == x.n()) {
    x.c = CodeMatrix{c.type, 1, x.m(), x.n(), {c.bytes, c.owner}, Strides{0, 0, 1}};
  } else if (capture.beta != 0) {
    x.c = matrix_of(c);
    if (x.c.rows != x.m() || x.c.columns != x.n())
      throw UnknownArguments{"an addend that is broadcast"};
  }
  const std::string extra = shape_of_addend(c, capture.alpha, capture.beta);
  std::optional<atlas::ProductCall> asked;
  if (!x.bias.empty() && a.rank() == 2 && capture.alpha == 1)
    asked = asked_of("addmm", a, b, capture);
  return judged(call, context, capture, shape_of_product(call.op, a, b, d, extra), asked);
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
  return judged(call, context, capture, shape_of_product(call.op, a, vector, result, extra));
}

Answer dot(const Call& call, Context& context) {
  const Tensor& x = call.tensor(0, "self");
  const Tensor& y = call.tensor(1, "tensor");
  const Tensor& result = recorded_result(call);
  return judged(call, context,
                capture_of(reshaped(x, {1, x.count()}), reshaped(y, {y.count(), 1}),
                           reshaped(result, {1, 1}), context),
                shape_of_product(call.op, x, y, result));
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
