#pragma once

#include <nanobind/nanobind.h>

#include "tools/products/gemm_input.hpp"
#include "tools/python/array_view.hpp"

// The operands of a product that Python hands over.
namespace guardbit::python {

/// What the module calls ProductArrays; those that are not there are None.
struct ProductArrays {
  const Array* a = nullptr;
  const Array* b = nullptr;
  const Array* c = nullptr;
  const Array* bias = nullptr;
  const Array* scale_a = nullptr;
  const Array* scale_b = nullptr;
  bool sparse = false;

  /// The problem that they are, in views of their memory.
  tools::GemmInput input() const;
};

void bind_product_arrays(nb::module_& module);

}  // namespace guardbit::python
