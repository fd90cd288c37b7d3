#include "tools/benchmarks/benchmark_operands.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::tools {

namespace {

using formats::Format;
using Random = std::mt19937_64;

/// Codes that matrices draw from: encoding every element would take longer than the products.
constexpr std::size_t pool_size = 1 << 16;

std::uint64_t encoded(const Format& f, double x) {
  const bool has_sign = formats::sign_mask(f) != 0;
  const auto bits = std::bit_cast<std::uint64_t>(has_sign ? x : std::abs(x));
  return formats::encode(f, formats::decode(formats::fp64, bits));
}

/// 1.f * 2^e, e uniform in [lowest, highest], random sign where there is one.
std::uint64_t spread_code(const Format& f, int lowest, int highest, Random& random) {
  const int exponent = std::uniform_int_distribution(lowest, highest)(random);
  const std::uint64_t implicit = std::uint64_t{1} << f.fraction_bits;
  const formats::Value value{formats::Kind::finite, (random() >> 63) != 0,
                             exponent - f.fraction_bits,
                             implicit | (random() & formats::fraction_mask(f))};
  return formats::encode(f, value);
}

/// Binades around 1 whose products, added up, stay within D.
std::pair<int, int> wide_range(const Format& f, const Format& d) {
  constexpr int headroom = 12;  // K to 2^24 in powers of two, shared by both factors
  const int reach = std::max(1, formats::max_exponent(d) / 2 - headroom);
  return {std::max(formats::min_exponent(f) - f.fraction_bits, -reach),
          std::min(formats::max_exponent(f) - 1, reach)};
}

std::uint64_t random_code(const Format& f, const Format& d, const DataFamily& data,
                          Random& random) {
  const auto chance = [&](double share) {
    return share > 0 && std::uniform_real_distribution(0.0, 1.0)(random) < share;
  };
  if (chance(data.zeros)) return 0;
  if (formats::is_integer(f)) {
    // An addend is what some thousand products add up to.
    const std::uint64_t word = random();
    const bool is_addend = formats::bits(f) > 16;
    const auto value =
        is_addend ? static_cast<std::int64_t>(word) >> 40 : static_cast<std::int64_t>(word);
    return static_cast<std::uint64_t>(value) & formats::code_mask(f);
  }
  if (formats::has_nan(f) && chance(data.specials)) {
    const bool infinity = formats::has_infinity(f) && (random() >> 63) != 0;
    return infinity ? formats::infinity_code(f) : formats::quiet_nan_code(f);
  }
  if (f.has_subnormals && chance(data.subnormals)) {
    const std::uint64_t code = random() & (formats::sign_mask(f) | formats::fraction_mask(f));
    return code | 1;
  }
  if (data.wide) {
    const auto [lowest, highest] = wide_range(f, d);
    return spread_code(f, lowest, highest, random);
  }
  if (data.binades > 0) {
    const int lowest = std::max(1 - data.binades, formats::min_exponent(f));
    return spread_code(f, lowest, 0, random);
  }
  return encoded(f, std::normal_distribution()(random));
}

/// Of the block scales beside elements of a family.
DataFamily family_of_scales(const DataFamily& data) {
  DataFamily scales;
  scales.specials = data.specials;
  scales.binades = data.scale_binades;
  scales.wide = data.wide;
  return scales;
}

/// A matrix of codes in containers, row by row.
std::vector<std::byte> random_matrix(const Format& f, const Format& d, const DataFamily& data,
                                     std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint64_t> pool(pool_size);
  for (std::uint64_t& code : pool)
    code = random_code(f, d, data, random) << formats::container_shift(f);
  const auto container = static_cast<std::size_t>(formats::container_bits(f)) / 8;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * container);
  const emulator::Codes codes = emulator::codes_of(f, bytes.data());
  for (std::int64_t i = 0; i < count; ++i) codes.set(i, pool[random() % pool_size]);
  return bytes;
}

/// Odd k repeat the even ones before them, of A with the other sign; every tenth of those differs
/// in its last bit. Formats without a sign stay as they are.
void make_cancelling(const emulator::MatrixInstruction& instruction,
                     const emulator::MatrixProduct& x, std::byte* a_bytes, std::byte* b_bytes) {
  if (formats::is_integer(instruction.a) || formats::sign_mask(instruction.a) == 0) return;
  const emulator::Codes a = emulator::codes_of(instruction.a, a_bytes);
  const emulator::Codes b = emulator::codes_of(instruction.b, b_bytes);
  const std::int64_t stored = x.a.row_stride;
  const int shift = formats::container_shift(instruction.a),
            b_shift = formats::container_shift(instruction.b);
  for (std::int64_t at = 1; at < x.m * stored; at += 2) {
    std::uint64_t code = x.a.codes[at - 1] ^ formats::sign_mask(instruction.a);
    if (at % 10 == 1) code ^= 1;
    a.set(at, code << shift);
  }
  for (std::int64_t k = 1; k < x.k; k += 2) {
    for (std::int64_t j = 0; j < x.n; ++j) b.set(k * x.n + j, x.b(k - 1, j) << b_shift);
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

}  // namespace

const std::vector<DataFamily>& data_families() {
  static const std::vector<DataFamily> families = {{.name = "normal"},
                                                   {.name = "wide", .wide = true},
                                                   {.name = "cancelling", .cancelling = true},
                                                   {.name = "specials", .specials = 0.01},
                                                   {.name = "zeros", .zeros = 0.97},
                                                   {.name = "subnormals", .subnormals = 0.5}};
  return families;
}

ProductOperands::ProductOperands(const emulator::MatrixInstruction& instruction,
                                 const DataFamily& data, std::int64_t m, std::int64_t n,
                                 std::int64_t k) {
  const std::int64_t stored = emulator::stored_k(instruction, static_cast<int>(k));
  const DataFamily normal, of_scales = family_of_scales(data);
  DataFamily of_b = data;
  of_b.subnormals = 0;
  a_ = random_matrix(instruction.a, instruction.d, data, m * stored, 1);
  b_ = random_matrix(instruction.b, instruction.d, of_b, k * n, 2);
  c_ = random_matrix(instruction.c, instruction.d, normal, m * n, 3);
  d_.resize(static_cast<std::size_t>(m * n * formats::container_bits(instruction.d) / 8));
  product_.m = m;
  product_.n = n;
  product_.k = k;
  product_.a = {view(instruction.a, a_), stored};
  product_.b = {view(instruction.b, b_), n};
  product_.c = {view(instruction.c, c_), n};
  product_.d = {emulator::codes_of(instruction.d, d_.data()), n};
  if (data.cancelling) make_cancelling(instruction, product_, a_.data(), b_.data());
  if (instruction.sparsity.group_elements != 0) {
    e_ = positions(instruction.sparsity, m * stored);
    product_.e = {{e_.data(), 1, 0}, stored};
  }
  if (instruction.scale.count != 0) {
    const std::int64_t scales = emulator::scales_along(instruction, k);
    a_scale_ = random_matrix(instruction.scale.format, instruction.d, of_scales, m * scales, 4);
    b_scale_ = random_matrix(instruction.scale.format, instruction.d, of_scales, n * scales, 5);
    product_.a_scale = {view(instruction.scale.format, a_scale_), scales};
    product_.b_scale = {view(instruction.scale.format, b_scale_), n};
  }
}

BatchOperands::BatchOperands(const emulator::MatrixInstruction& instruction,
                             std::int64_t executions) {
  const DataFamily normal;
  emulator::Shape s = instruction.shape;
  if (s.m == 0) s.m = 64;  // left open by the name: what the instruction may have
  if (s.n == 0) s.n = 8;
  const std::int64_t stored = emulator::stored_k(instruction, s.k);
  a_ = random_matrix(instruction.a, instruction.d, normal, executions * s.m * stored, 1);
  b_ = random_matrix(instruction.b, instruction.d, normal, executions * s.k * s.n, 2);
  c_ = random_matrix(instruction.c, instruction.d, normal, executions * s.m * s.n, 3);
  d_.resize(static_cast<std::size_t>(executions * s.m * s.n *
                                     formats::container_bits(instruction.d) / 8));
  batch_.count = executions;
  batch_.shape = s;
  batch_.a = view(instruction.a, a_);
  batch_.b = view(instruction.b, b_);
  batch_.c = view(instruction.c, c_);
  batch_.d = emulator::codes_of(instruction.d, d_.data());
  if (instruction.sparsity.group_elements != 0) {
    e_ = positions(instruction.sparsity, executions * s.m * stored);
    batch_.e = {e_.data(), 1, 0};
  }
  if (instruction.scale.count != 0) {
    const Format& f = instruction.scale.format;
    a_scale_ =
        random_matrix(f, instruction.d, normal, executions * s.m * instruction.scale.count, 4);
    b_scale_ =
        random_matrix(f, instruction.d, normal, executions * s.n * instruction.scale.count, 5);
    batch_.a_scale = view(f, a_scale_);
    batch_.b_scale = view(f, b_scale_);
  }
}

}  // namespace guardbit::tools
