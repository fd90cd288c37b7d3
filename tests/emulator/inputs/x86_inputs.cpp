#include "tests/emulator/inputs/x86_inputs.hpp"

#include <algorithm>

namespace guardbit::tests {

namespace {

/// All codes of a batch in its order.
struct BatchCodes {
  std::vector<std::uint64_t> a, b, c;
};

std::vector<std::byte> packed(const Format& f, const std::vector<std::uint64_t>& codes) {
  std::vector<std::byte> bytes(codes.size() * static_cast<std::size_t>(container_bits(f)) / 8);
  const emulator::Codes out = emulator::codes_of(f, bytes.data());
  for (std::size_t i = 0; i < codes.size(); ++i) out.set(static_cast<std::int64_t>(i), codes[i]);
  return bytes;
}

BatchInputs batch_of(const MatrixInstruction& instruction, const BatchCodes& codes,
                     const Shape& shape, std::int64_t count) {
  BatchInputs inputs;
  inputs.a = packed(instruction.a, codes.a);
  inputs.b = packed(instruction.b, codes.b);
  inputs.c = packed(instruction.c, codes.c);
  inputs.count = count;
  inputs.shape = shape;
  return inputs;
}

std::size_t size_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::size_t>(a * b * c);
}

/// Products from half a unit below D's smallest number to a few times its smallest normal one; C
/// about the latter, or zero. Powers of two are frequent, so that sums come to lie just below it.
class Underflow {
 public:
  Underflow(const MatrixInstruction& instruction, std::uint64_t seed)
      : instruction_(instruction), random_(seed), normal_(formats::min_exponent(instruction.d)) {
    const int product = random_.between(lowest_exponent(instruction.d) - 3, normal_ + 1);
    const int low = lowest_exponent(instruction.a), high = formats::max_exponent(instruction.a);
    a_ = std::clamp(product / 2 + random_.between(-20, 20), low, high);
    b_ = std::clamp(product - a_, lowest_exponent(instruction.b),
                    formats::max_exponent(instruction.b));
  }

  std::uint64_t a() { return code(instruction_.a, a_); }
  std::uint64_t b() { return code(instruction_.b, b_); }
  std::uint64_t c() {
    if (random_.one_in(4)) return zero_code(instruction_.c, random_.one_in(2));
    return near(instruction_.c, normal_, -1, 2);
  }

 private:
  std::uint64_t fraction() { return random_.one_in(2) ? 0 : random_.bits(); }
  std::uint64_t code(const Format& f, int exponent) {
    if (random_.one_in(8)) return zero_code(f, random_.one_in(2));
    return near(f, exponent, -1, 1);
  }
  std::uint64_t near(const Format& f, int exponent, int low, int high) {
    const std::uint64_t bits = fraction();
    exponent += random_.between(low, high);
    return code_with_exponent(f, random_.one_in(2), exponent, bits);
  }

  const MatrixInstruction& instruction_;
  Random random_;
  int normal_ = 0, a_ = 0, b_ = 0;
};

std::uint64_t mixed_seed(std::uint64_t seed, std::int64_t index) {
  return Random(seed * 1'000'003 + static_cast<std::uint64_t>(index)).bits();
}

BatchCodes underflow_codes(const MatrixInstruction& instruction, std::uint64_t seed,
                           const Shape& shape, std::int64_t count) {
  BatchCodes codes;
  for (std::int64_t t = 0; t < count; ++t) {
    Underflow draw(instruction, mixed_seed(seed, t));
    for (int i = 0; i < shape.m * shape.k; ++i) codes.a.push_back(draw.a());
    for (int i = 0; i < shape.k * shape.n; ++i) codes.b.push_back(draw.b());
    for (int i = 0; i < shape.m * shape.n; ++i) codes.c.push_back(draw.c());
  }
  return codes;
}

}  // namespace

std::vector<InputFamily> unit_families(const MatrixInstruction& instruction) {
  std::vector<InputFamily> families = input_families(instruction);
  if (is_floating(instruction.a)) families.push_back(InputFamily::subnormal_results);
  return families;
}

BatchInputs unit_inputs(const MatrixInstruction& instruction, InputFamily family,
                        std::uint64_t seed, const Shape& shape, std::int64_t count) {
  if (family != InputFamily::subnormal_results)
    return batch_inputs(instruction, family, seed, shape, count);
  return batch_of(instruction, underflow_codes(instruction, seed, shape, count), shape, count);
}

BatchInputs mixed_unit_inputs(const MatrixInstruction& instruction, std::uint64_t seed,
                              std::int64_t count) {
  const Shape& s = instruction.shape;
  const std::vector<InputFamily> families = unit_families(instruction);
  BatchCodes codes;
  codes.a.resize(size_of(count, s.m, s.k));
  codes.b.resize(size_of(count, s.k, s.n));
  codes.c.resize(size_of(count, s.m, s.n));
  for (std::int64_t t = 0; t < count; ++t) {
    for (int i = 0; i < s.m; ++i) {
      const std::int64_t line = t * s.m + i;
      const BatchInputs one =
          unit_inputs(instruction, families[static_cast<std::size_t>(line) % families.size()],
                      mixed_seed(seed, line), {1, s.n, s.k}, 1);
      const emulator::MatrixBatch x = one.batch(instruction, nullptr);
      for (int k = 0; k < s.k; ++k) {
        codes.a[static_cast<std::size_t>(line * s.k + k)] = x.a[k];
        codes.b[static_cast<std::size_t>((t * s.k + k) * s.n + i)] = x.b[k * s.n + i];
      }
      for (int n = 0; n < s.n; ++n) codes.c[static_cast<std::size_t>(line * s.n + n)] = x.c[n];
    }
  }
  return batch_of(instruction, codes, s, count);
}

BatchInputs recorded_unit_inputs(const MatrixInstruction& instruction) {
  const auto families = static_cast<std::int64_t>(unit_families(instruction).size());
  const bool floating = is_floating(instruction.a);
  const bool is_lane = instruction.family == emulator::Family::avx;
  const std::int64_t lanes = floating ? 24 * families : 128, tiles = floating ? 4 : 1;
  return mixed_unit_inputs(instruction, recording_seed, is_lane ? lanes : tiles);
}

}  // namespace guardbit::tests
