#include "emulator/replay/product_shape.hpp"

#include <utility>

namespace guardbit::emulator::replay {

using operators::Dimensions;
using operators::Tensor;

namespace {

std::string numbers_text(const Dimensions& numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::string tensor_text(const Tensor& tensor) {
  return formats::name_of(tensor.type) + "[" + numbers_text(tensor.shape) + ";" +
         numbers_text(tensor.stride) + (tensor.offset % 8 == 0 ? "" : "+") + "]";
}

formats::Format type_of(std::string_view numbers) {
  if (numbers == "bf16") return formats::bf16;
  return numbers == "fp16" || numbers == "f16" ? formats::fp16 : formats::fp32;
}

/// A tensor of which only the form is known.
Tensor form(const formats::Format& type, Dimensions shape, Dimensions stride) {
  Tensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.stride = std::move(stride);
  return tensor;
}

}  // namespace

std::string shape_of_product(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& d,
                             const std::string& extra) {
  return std::string(op) + " " + tensor_text(a) + " " + tensor_text(b) + " " + tensor_text(d) +
         extra;
}

std::string shape_of_addend(const Tensor& c, double alpha, double beta) {
  return " + " + tensor_text(c) + " " + std::to_string(alpha) + " " + std::to_string(beta);
}

std::string shape_of_call(const atlas::StridedCall& call) {
  const formats::Format type = type_of(call.numbers);
  const auto sizes = [&](std::int64_t rows, std::int64_t columns, std::size_t rank) {
    return rank == 3 ? Dimensions{call.batch, rows, columns} : Dimensions{rows, columns};
  };
  const Dimensions d = sizes(call.m, call.n, call.a_stride.size());
  std::string op = call.op.starts_with("aten.") ? call.op : "aten." + call.op;
  // Recordings call a bias an addend with a beta of 0: the plan's epilogue has none.
  const std::string extra =
      op == "aten.addmm" ? shape_of_addend(form(type, {call.n}, {1}), 1, 0) : "";
  op += ".default";
  return shape_of_product(op,
                          form(type, sizes(call.m, call.k, call.a_stride.size()), call.a_stride),
                          form(type, sizes(call.k, call.n, call.b_stride.size()), call.b_stride),
                          form(type, d, operators::contiguous_stride(d)), extra);
}

}  // namespace guardbit::emulator::replay
