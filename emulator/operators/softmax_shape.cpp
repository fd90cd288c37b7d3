#include <algorithm>
#include <bit>

#include "emulator/operators/softmax.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t most_threads = 1024, shared_memory = 48 << 10;

/// Threads of a block along a dimension with others between its elements.
SoftmaxShape across_shape(const SoftmaxSizes& sizes) {
  const std::int64_t beside = std::min(sizes.inner, most_threads);
  std::int64_t along = 1;
  if (beside <= 64 && sizes.size >= 64) {
    while (beside * along <= most_threads && along <= sizes.size) along *= 2;
    along /= 2;
  }
  return {SoftmaxShape::Kind::across, static_cast<int>(along), 1, false};
}

std::int64_t lanes_of(std::int64_t size) {
  return std::min<std::int64_t>(
      32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size))));
}

/// Does a row fit beside the warps' values?
bool fits_shared_memory(const SoftmaxSizes& sizes, std::int64_t threads) {
  const std::int64_t of_warp = std::max(4, sizes.element_bytes);
  return sizes.size < (shared_memory - threads / 32 * of_warp) / sizes.element_bytes;
}

}  // namespace

SoftmaxShape forward_shape(const SoftmaxSizes& sizes) {
  using Kind = SoftmaxShape::Kind;
  if (sizes.inner > 1) return across_shape(sizes);
  const std::int64_t most_elements = sizes.widens ? 1024 : 2048;
  if (sizes.size <= most_elements && sizes.size * sizes.element_bytes <= 4 * most_elements)
    return {Kind::persistent, static_cast<int>(lanes_of(sizes.size)), 1, false};
  const std::int64_t threads = (std::min(sizes.size, most_threads) + 31) / 32 * 32;
  constexpr std::int64_t most_registers = 10;
  const bool is_short = (sizes.size + threads - 1) / threads < most_registers;
  const int vector = 16 / sizes.element_bytes;
  const auto shape = [&](Kind kind, int elements) {
    return SoftmaxShape{kind, static_cast<int>(threads), elements, false};
  };
  if (is_short && !sizes.widens) return shape(Kind::in_registers, 1);
  if (fits_shared_memory(sizes, threads) && sizes.size % vector == 0 && sizes.is_aligned)
    return shape(Kind::in_shared_memory, vector);
  return shape(Kind::from_memory, vector);
}

SoftmaxShape backward_shape(const SoftmaxSizes& sizes) {
  using Kind = SoftmaxShape::Kind;
  if (sizes.inner > 1) return across_shape(sizes);
  if (sizes.size <= 1024 && sizes.size * sizes.element_bytes <= 4096)
    return {Kind::persistent, static_cast<int>(lanes_of(sizes.size)), 1, false};
  const int vector = 16 / sizes.element_bytes;
  const std::int64_t most = std::min(sizes.size / vector, most_threads) / 2;
  std::int64_t threads = 1;
  while (threads < most) threads *= 2;
  threads = std::max<std::int64_t>(threads, 32);
  const bool is_shared =
      fits_shared_memory(sizes, threads) && sizes.size % vector == 0 && sizes.is_aligned;
  return {is_shared ? Kind::in_shared_memory : Kind::from_memory, static_cast<int>(threads), vector,
          !is_shared};
}

std::string SoftmaxShape::text() const {
  const std::string count = std::to_string(threads);
  const std::string vectors = std::to_string(vector);
  switch (kind) {
    case Kind::persistent: return "one warp a row, " + count + " lanes";
    case Kind::in_registers: return "one block of " + count + " threads a row, in registers";
    case Kind::in_shared_memory:
      return "one block of " + count + " threads a row, vectors of " + vectors +
             " in shared memory";
    case Kind::from_memory:
      return "one block of " + count + " threads a row, vectors of " + vectors + " from memory" +
             (is_sequential ? ", sums of warps in order" : "");
    case Kind::across: return threads == 1 ? "one thread a column" : count + " threads a column";
  }
  return "";
}

}  // namespace guardbit::emulator::operators
