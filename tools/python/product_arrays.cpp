#include "tools/python/product_arrays.hpp"

#include <optional>
#include <utility>

namespace guardbit::python {

namespace {

std::optional<tools::Operand> matrix_of(const Array* array) {
  if (array == nullptr) return std::nullopt;
  return tools::Operand{array->matrix(), array->name};
}

/// Scales of rows stand in a column, of columns in a row.
std::optional<tools::Operand> scales_of(const Array* array, bool as_column) {
  if (array == nullptr) return std::nullopt;
  return tools::Operand{array->vector_or_matrix(as_column), array->name};
}

}  // namespace

tools::GemmInput ProductArrays::input() const {
  tools::ProductOperands operands;
  operands.a = *matrix_of(a);
  operands.b = *matrix_of(b);
  operands.c = matrix_of(c);
  operands.bias = scales_of(bias, false);
  operands.scale_a = scales_of(scale_a, true);
  operands.scale_b = scales_of(scale_b, false);
  operands.sparse = sparse;
  operands.batched = a->shape.size() == 3;
  return tools::gemm_input(std::move(operands));
}

void bind_product_arrays(nb::module_& module) {
  nb::class_<ProductArrays>(module, "ProductArrays")
      .def(
          "__init__",
          [](ProductArrays* self, const Array& a, const Array& b, const Array* c, const Array* bias,
             const Array* scale_a, const Array* scale_b,
             bool sparse) { new (self) ProductArrays{&a, &b, c, bias, scale_a, scale_b, sparse}; },
          nb::arg("a"), nb::arg("b"), nb::arg("c").none(), nb::arg("bias").none(),
          nb::arg("scale_a").none(), nb::arg("scale_b").none(), nb::arg("sparse"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
          nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>());
}

}  // namespace guardbit::python
