#include "emulator/functions/array_function.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace guardbit::emulator {

namespace {

/// Parts that stay in the first cache, as codes.
void apply_all(const Function& function, std::span<const std::span<const float>> operands,
               std::span<float> results) {
  constexpr std::size_t at_once = 1024;
  std::array<std::array<std::uint32_t, at_once>, 3> codes;
  for (std::size_t i = 0; i < results.size(); i += at_once) {
    const std::size_t part = std::min(at_once, results.size() - i);
    CodeArrays<std::uint32_t> arrays;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::memcpy(codes[k].data(), operands[k].data() + i, part * sizeof(float));
      arrays.operands[k] = std::span(codes[k]).first(part);
    }
    arrays.results[0] = std::span(codes[2]).first(part);
    function.run(arrays);
    std::memcpy(results.data() + i, codes[2].data(), part * sizeof(float));
  }
}

}  // namespace

void apply(const Function& function, std::span<const float> x, std::span<float> results) {
  apply_all(function, std::array{x}, results);
}

void apply(const Function& function, std::span<const float> x, std::span<const float> y,
           std::span<float> results) {
  apply_all(function, std::array{x, y}, results);
}

}  // namespace guardbit::emulator
