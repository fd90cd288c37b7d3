#include "emulator/engine/kernels/portable/portable_integer.hpp"

#include <algorithm>
#include <vector>

#include "emulator/model/dot.hpp"
#include "emulator/model/mma.hpp"

namespace guardbit::emulator::portable {

namespace {

template <Product P>
std::int64_t integer_total(const std::int16_t* a, const std::int16_t* b, int count) {
  std::int32_t total = 0;  // at most 256 products below 2^16
  for (int i = 0; i < count; ++i) {
    if constexpr (P == Product::multiply) total += a[i] * b[i];
    if constexpr (P == Product::bit_and) total += a[i] & b[i];
    if constexpr (P == Product::bit_xor) total += a[i] ^ b[i];
  }
  return total;
}

std::int64_t integer_total(Product product, const std::int16_t* a, const std::int16_t* b,
                           int count) {
  switch (product) {
    case Product::multiply: return integer_total<Product::multiply>(a, b, count);
    case Product::bit_and: return integer_total<Product::bit_and>(a, b, count);
    case Product::bit_xor: return integer_total<Product::bit_xor>(a, b, count);
  }
  return 0;
}

}  // namespace

bool is_integer_instruction(const MatrixInstruction& instruction) {
  const Step& step = instruction.steps.list[0];
  return instruction.steps.count == 1 && step.operation == Operation::dot &&
         step.selection == Selection{} && step.addend == Source::c &&
         step.spec.summation == Summation::integer && step.spec.terms == 0 &&
         formats::is_integer(instruction.a) && formats::is_integer(instruction.b) &&
         formats::bits(instruction.a) <= 8 && formats::bits(instruction.b) <= 8 &&
         instruction.c == formats::int32 && instruction.d == formats::int32;
}

void run_integer(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
                 std::int64_t end) {
  const Shape& shape = batch.shape;
  const int stored = stored_k(instruction, shape.k);
  const bool sparse = instruction.sparsity.group_elements != 0;
  const AccumulatorSpec& spec = instruction.steps.list[0].spec;
  const auto width = static_cast<std::size_t>(stored);
  std::vector<std::int16_t> a(static_cast<std::size_t>(shape.m) * width);
  std::vector<std::int16_t> b(static_cast<std::size_t>(shape.n) * width);
  const auto value = [](const Format& f, std::uint64_t code) {
    return static_cast<std::int16_t>(signed_integer(formats::decode(f, code)));
  };
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t a_base = t * shape.m * stored;
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = value(instruction.a, batch.a[a_base + static_cast<std::int64_t>(i)]);
    for (int m = 0; m < shape.m; ++m) {
      if (sparse || m == 0) {
        for (int n = 0; n < shape.n; ++n) {
          for (int s = 0; s < stored; ++s) {
            const int e = sparse ? static_cast<int>(batch.e[a_base + m * stored + s]) : 0;
            const std::int64_t k = dense_k(instruction.sparsity, s, e);
            b[static_cast<std::size_t>(n) * width + static_cast<std::size_t>(s)] =
                value(instruction.b, batch.b[(t * shape.k + k) * shape.n + n]);
          }
        }
      }
      for (int n = 0; n < shape.n; ++n) {
        const std::int64_t at = (t * shape.m + m) * shape.n + n;
        std::int64_t total =
            integer_total(spec.product, a.data() + static_cast<std::size_t>(m) * width,
                          b.data() + static_cast<std::size_t>(n) * width, stored);
        if (!batch.modifiers.zero_addend) total += static_cast<std::int32_t>(batch.c[at]);
        if (spec.integer_overflow == IntegerOverflow::saturate) {
          total = std::clamp<std::int64_t>(total, INT32_MIN, INT32_MAX);
        }
        batch.d.set(at, static_cast<std::uint32_t>(total));
      }
    }
  }
}

}  // namespace guardbit::emulator::portable
