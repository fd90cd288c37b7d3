#pragma once

#include <string>
#include <string_view>

#include "emulator/gemm/atlas/product_call.hpp"
#include "emulator/operators/operator_tensor.hpp"

// What a plan book calls a product: whatever decides its plan.
namespace guardbit::emulator::replay {

/// Operator, and types, sizes and strides of A, B and D; `extra` are operands and factors besides
/// A and B.
std::string shape_of_product(std::string_view op, const operators::Tensor& a,
                             const operators::Tensor& b, const operators::Tensor& d,
                             const std::string& extra = "");

/// An addend C with alpha and beta as `extra`.
std::string shape_of_addend(const operators::Tensor& c, double alpha, double beta);

/// Of a call that was not made: D is contiguous; addmm adds a bias of [N] with alpha and beta 1.
/// `a_stride` and `b_stride` have as many numbers as the operator's operands have dimensions.
std::string shape_of_call(const atlas::StridedCall& call);

}  // namespace guardbit::emulator::replay
