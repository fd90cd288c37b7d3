#include "tools/benchmarks/benchmark_operands.hpp"

#include <string_view>

#include "tools/benchmarks/bench_options.hpp"

namespace guardbit::tools {

namespace {

using emulator::inputs::ElementDraw;
using formats::Format;

/// Elements that matrices draw from: making every element would take longer than the products.
constexpr std::size_t pool_size = 1 << 16;

/// A matrix of codes in containers, row by row.
std::vector<std::byte> random_matrix(const Format& f, const ElementDraw& elements,
                                     std::int64_t count, std::uint64_t seed) {
  const emulator::inputs::OperandWords words = emulator::inputs::operand_words(f);
  std::vector<std::uint64_t> pool(pool_size);
  for (std::size_t i = 0; i < pool_size; ++i)
    pool[i] = matrix_element(words, elements, seed, i) >> words.ignored;
  const auto container = static_cast<std::size_t>(formats::container_bits(f)) / 8;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * container);
  const emulator::Codes codes = emulator::codes_of(f, bytes.data());
  emulator::inputs::Random random(seed);
  for (std::int64_t i = 0; i < count; ++i) codes.set(i, pool[random.below(pool_size)]);
  return bytes;
}

/// Of the block scales beside elements of a family.
ElementDraw draw_of_scales(const MatrixFamily& data, const Format& f, const Format& d,
                           int binades) {
  MatrixFamily scales;
  scales.wide = data.wide;
  scales.elements.specials = data.elements.specials;
  if (binades > 0) {
    scales.elements.numbers = ElementDraw::Numbers::spread;
    scales.elements.low = 1 - binades;
  }
  return element_draw(scales, f, d);
}

/// Odd k repeat the even ones before them, of A with the other sign; every tenth of those differs
/// in its last bit. Formats without a sign stay as they are.
void make_cancelling(const emulator::MatrixInstruction& instruction,
                     const emulator::MatrixProduct& x, std::byte* a_bytes, std::byte* b_bytes) {
  if (formats::is_integer(instruction.a) || formats::sign_mask(instruction.a) == 0) return;
  const emulator::Codes a = emulator::codes_of(instruction.a, a_bytes);
  const emulator::Codes b = emulator::codes_of(instruction.b, b_bytes);
  const std::int64_t stored = x.a.row_stride;
  for (std::int64_t at = 1; at < x.m * stored; at += 2) {
    std::uint64_t code = x.a.codes[at - 1] ^ formats::sign_mask(instruction.a);
    if (at % 10 == 1) code ^= 1;
    a.set(at, code);
  }
  for (std::int64_t k = 1; k < x.k; k += 2) {
    for (std::int64_t j = 0; j < x.n; ++j) b.set(k * x.n + j, x.b(k - 1, j));
  }
}

/// Every chunk of a group at a place of its own, in ascending order.
std::vector<std::byte> positions(const emulator::Sparsity& sparsity, std::int64_t stored) {
  std::vector<std::byte> e(static_cast<std::size_t>(stored));
  const int first = emulator::positions(sparsity) - sparsity.stored_per_group / sparsity.chunk;
  for (std::size_t s = 0; s < e.size(); ++s) {
    const int chunk =
        static_cast<int>(s % static_cast<std::size_t>(sparsity.stored_per_group)) / sparsity.chunk;
    e[s] = static_cast<std::byte>(first + chunk);
  }
  return e;
}

emulator::ConstCodes view(const Format& f, const std::vector<std::byte>& bytes) {
  return emulator::codes_of(f, bytes.data());
}

/// What an instruction leaves open is what it may have.
emulator::Shape closed(emulator::Shape shape) {
  if (shape.m == 0) shape.m = 64;
  if (shape.n == 0) shape.n = 8;
  return shape;
}

OperandMemory::Counts counts_of(const emulator::MatrixInstruction& instruction, std::int64_t m,
                                std::int64_t n, std::int64_t k, std::int64_t scales) {
  const std::int64_t stored = emulator::stored_k(instruction, static_cast<int>(k));
  return {m * stored, k * n, m * n, m * scales, n * scales};
}

OperandMemory::Counts operator*(std::int64_t executions, const OperandMemory::Counts& x) {
  return {executions * x.a, executions * x.b, executions * x.c, executions * x.a_scale,
          executions * x.b_scale};
}

std::int64_t scales_of(const emulator::MatrixInstruction& instruction, std::int64_t k) {
  return instruction.scale.count == 0 ? 0 : emulator::scales_along(instruction, k);
}

}  // namespace

const std::vector<MatrixFamily>& data_families() {
  static const std::vector<MatrixFamily> families = [] {
    std::vector<MatrixFamily> list;
    for (const std::string_view word : data_words) {
      list.push_back(*emulator::inputs::find_matrix_family(word));
      if (word != "specials") continue;
      list.back().elements.specials = emulator::inputs::share(0.01);
      list.back().elements.extremes = false;
    }
    return list;
  }();
  return families;
}

OperandMemory::OperandMemory(const emulator::MatrixInstruction& instruction,
                             const MatrixFamily& data, const Counts& counts, int scale_binades) {
  const auto draw = [&](const Format& f) { return element_draw(data, f, instruction.d); };
  ElementDraw of_b = draw(instruction.b);
  of_b.subnormals = 0;
  a = random_matrix(instruction.a, draw(instruction.a), counts.a, 1);
  b = random_matrix(instruction.b, of_b, counts.b, 2);
  c = random_matrix(instruction.c, {}, counts.c, 3);
  d.resize(static_cast<std::size_t>(counts.c * formats::container_bits(instruction.d) / 8));
  if (instruction.sparsity.group_elements != 0) e = positions(instruction.sparsity, counts.a);
  if (instruction.scale.count == 0) return;
  const Format& f = instruction.scale.format;
  const ElementDraw scales = draw_of_scales(data, f, instruction.d, scale_binades);
  a_scale = random_matrix(f, scales, counts.a_scale, 4);
  b_scale = random_matrix(f, scales, counts.b_scale, 5);
}

ProductOperands::ProductOperands(const emulator::MatrixInstruction& instruction,
                                 const MatrixFamily& data, std::int64_t m, std::int64_t n,
                                 std::int64_t k, int scale_binades)
    : memory_(instruction, data, counts_of(instruction, m, n, k, scales_of(instruction, k)),
              scale_binades) {
  const std::int64_t stored = emulator::stored_k(instruction, static_cast<int>(k));
  product_.m = m;
  product_.n = n;
  product_.k = k;
  product_.a = {view(instruction.a, memory_.a), stored};
  product_.b = {view(instruction.b, memory_.b), n};
  product_.c = {view(instruction.c, memory_.c), n};
  product_.d = {emulator::codes_of(instruction.d, memory_.d.data()), n};
  if (data.cancelling) make_cancelling(instruction, product_, memory_.a.data(), memory_.b.data());
  if (!memory_.e.empty()) product_.e = {{memory_.e.data(), 1, 0}, stored};
  if (instruction.scale.count == 0) return;
  product_.a_scale = {view(instruction.scale.format, memory_.a_scale), scales_of(instruction, k)};
  product_.b_scale = {view(instruction.scale.format, memory_.b_scale), n};
}

BatchOperands::BatchOperands(const emulator::MatrixInstruction& instruction,
                             std::int64_t executions)
    : shape_(closed(instruction.shape)),
      memory_(instruction, {},
              executions *
                  counts_of(instruction, shape_.m, shape_.n, shape_.k, instruction.scale.count)) {
  batch_.count = executions;
  batch_.shape = shape_;
  batch_.a = view(instruction.a, memory_.a);
  batch_.b = view(instruction.b, memory_.b);
  batch_.c = view(instruction.c, memory_.c);
  batch_.d = emulator::codes_of(instruction.d, memory_.d.data());
  if (!memory_.e.empty()) batch_.e = {memory_.e.data(), 1, 0};
  if (instruction.scale.count == 0) return;
  batch_.a_scale = view(instruction.scale.format, memory_.a_scale);
  batch_.b_scale = view(instruction.scale.format, memory_.b_scale);
}

}  // namespace guardbit::tools
