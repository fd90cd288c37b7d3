#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/engine/matrix_product.hpp"

namespace guardbit::tests {

/// [rows, columns] of codes in containers, element (i, j) given by a function.
template <class Code>
std::vector<std::byte> matrix(const formats::Format& f, std::int64_t rows, std::int64_t columns,
                              Code code) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(rows * columns * formats::container_bits(f) / 8));
  const emulator::Codes codes = emulator::codes_of(f, bytes.data());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) codes.set(i * columns + j, code(i, j));
  }
  return bytes;
}

inline emulator::MatrixProduct product_of(const emulator::MatrixInstruction& instruction,
                                          std::int64_t m, std::int64_t n, std::int64_t k,
                                          const std::vector<std::byte>& a,
                                          const std::vector<std::byte>& b,
                                          const std::vector<std::byte>& c,
                                          std::vector<std::byte>& d) {
  emulator::MatrixProduct x;
  x.m = m;
  x.n = n;
  x.k = k;
  x.a = {emulator::codes_of(instruction.a, a.data()), k};
  x.b = {emulator::codes_of(instruction.b, b.data()), n};
  x.c = {emulator::codes_of(instruction.c, c.data()), n};
  x.d = {emulator::codes_of(instruction.d, d.data()), n};
  return x;
}

}  // namespace guardbit::tests
