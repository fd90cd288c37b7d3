#include "emulator/engine/matrix_product.hpp"

#include <string>

#include "emulator/engine/continuation.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

MatrixProduct MatrixProduct::part(std::int64_t i, std::int64_t rows, std::int64_t j,
                                  std::int64_t columns) const {
  MatrixProduct x = *this;
  x.m = rows;
  x.n = columns;
  x.a = a.from(i, 0);
  x.b = b.from(0, j);
  x.c = c.from(i, j);
  x.d = d.from(i, j);
  x.e = e.from(i, 0);
  x.a_scale = a_scale.from(i, 0);
  x.b_scale = b_scale.from(0, j);
  return x;
}

std::int64_t scales_along(const MatrixInstruction& instruction, std::int64_t k) {
  return (k * instruction.scale.count + instruction.shape.k - 1) / instruction.shape.k;
}

void require_k(const MatrixInstruction& instruction, std::int64_t k, std::string_view where) {
  const std::string name(std::string_view(instruction.name));
  if (k < 1) throw formats::Error(std::string(where), "K must be at least 1");
  if (const int group = instruction.sparsity.group_elements; group != 0 && k % group != 0)
    throw formats::Error(std::string(where),
                         name + " is sparse: K = " + std::to_string(k) + " is not whole groups",
                         "multiples of " + std::to_string(group));
}

void require_product(const MatrixInstruction& instruction, std::int64_t k, std::string_view where) {
  require_k(instruction, k, where);
  require_chain(instruction, k, where);
}

}  // namespace guardbit::emulator
