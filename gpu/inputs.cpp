#include "gpu/inputs.hpp"

#include <utility>

#include "formats/catalogue.hpp"
#include "gpu/mixed_tiles.hpp"

namespace guardbit::gpu {
namespace {

std::span<const InputFamily> families_of(const TensorCoreInstruction& row) {
  if (!is_integer(row.a)) return floating_families();
  return row.a == formats::b1 ? bit_families() : integer_families();
}

MixedTiles mixed_tiles_of(const TensorCoreInstruction& row) {
  if (!is_integer(row.a)) return mixed_floats();
  return row.a == formats::b1 ? mixed_bits() : mixed_integers();
}

/// The stream of one execution depends on seed, instruction and variant alone.
std::uint64_t key_of(const TensorCoreInstruction& row, std::uint64_t seed, int execution) {
  std::uint64_t hash = std::uint64_t{0xCBF29CE484222325} ^ seed;  // FNV-1a over the names
  for (const std::string_view text : {row.name, row.variant})
    for (const char ch : text)
      hash = (hash ^ static_cast<unsigned char>(ch)) * std::uint64_t{0x100000001B3};
  return Random(hash + static_cast<std::uint64_t>(execution) * std::uint64_t{0xD1B54A32D192ED03})
      .bits();
}

/// Random valid metadata: two different positions, increasing unless the row says otherwise, or one
/// of two for TF32.
void fill_positions(Execution& x) {
  const SparseGroup group = sparse_group(x.row);
  for (int i = 0; i < x.row.m; ++i)
    for (int s = 0; s < x.row.stored_k(); s += group.stored) {
      if (group.positions == 2) {
        x.e(i, s) = static_cast<std::uint8_t>(x.random.range(0, 1));
        continue;
      }
      int first = x.random.range(0, 2), second = x.random.range(first + 1, 3);
      if (x.row.unordered && x.random.chance(60)) std::swap(first, second);
      for (int n = 0; n < group.stored; ++n)
        x.e(i, s + n) = static_cast<std::uint8_t>(n < group.stored / 2 ? first : second);
    }
}

/// Scale factors around one, so that scaled values stay within the range of the other operands;
/// now and then any code, NaN among them, where `any_code` asks for that.
void fill_scales(Execution& x, bool any_code) {
  const Format& type = x.row.scale.format;
  const auto scale = [&]() -> std::uint64_t {
    if (any_code && x.random.chance(3)) return x.random.bits() & word_mask(type);
    const auto exponent = static_cast<std::uint64_t>(type.bias + x.random.range(-3, 3));
    return exponent << type.fraction_bits |
           (any_code ? x.random.bits() & formats::low_bits(type.fraction_bits) : 0);
  };
  const auto count = static_cast<std::size_t>(x.row.scale.count);
  const auto fill = [&](std::vector<std::uint64_t>& scales, int vectors) {
    const std::size_t size = count * static_cast<std::size_t>(vectors);
    const std::size_t first = size * static_cast<std::size_t>(x.index());
    for (std::size_t i = 0; i < size; ++i) scales[first + i] = scale();
  };
  fill(x.batch().a_scale, x.row.m);
  fill(x.batch().b_scale, x.row.n);
}

}  // namespace

std::vector<std::string_view> families(const TensorCoreInstruction& row) {
  std::vector<std::string_view> names;
  for (const InputFamily& family : families_of(row)) names.push_back(family.name);
  return names;
}

std::string_view mixed_kind(const TensorCoreInstruction& row) { return mixed_tiles_of(row).name; }

std::vector<std::string_view> mixed_families(const TensorCoreInstruction& row) {
  std::vector<std::string_view> names;
  for (const RowFamily& family : mixed_tiles_of(row).rows) names.push_back(family.name);
  return names;
}

Batch make_inputs(const TensorCoreInstruction& row, int executions, std::uint64_t seed) {
  Batch batch(row, executions);
  const auto list = families_of(row);
  for (int t = 0; t < executions; ++t) {
    Execution x(row, batch, t, key_of(row, seed, t));
    if (row.sparse) fill_positions(x);
    if (row.scale.count != 0) fill_scales(x, true);
    const auto count = static_cast<int>(list.size());
    list[static_cast<std::size_t>(t % count)].fill(x, t / count);
    if (row.ignore_c) x.fill_c([](int, int) { return std::uint64_t{0}; });
  }
  return batch;
}

Batch make_mixed_tiles(const TensorCoreInstruction& row, int executions, std::uint64_t seed) {
  Batch batch(row, executions);
  const MixedTiles tiles = mixed_tiles_of(row);
  for (int t = 0; t < executions; ++t) {
    Execution x(row, batch, t, key_of(row, seed, t));
    if (row.sparse) fill_positions(x);
    if (row.scale.count != 0) fill_scales(x, true);
    tiles.make_columns(x);
    for (int i = 0; i < row.m; ++i)
      tiles.rows[static_cast<std::size_t>(t * row.m + i) % tiles.rows.size()].fill(x, i);
    if (row.ignore_c) x.fill_c([](int, int) { return std::uint64_t{0}; });
  }
  return batch;
}

Batch make_small_integers(const TensorCoreInstruction& row, int executions, std::uint64_t seed) {
  Batch batch(row, executions);
  for (int t = 0; t < executions; ++t) {
    Execution x(row, batch, t, key_of(row, seed, t));
    if (row.sparse) fill_positions(x);
    if (row.scale.count != 0) fill_scales(x, false);
    const auto small = [&](const Format& type) {
      if (bits(type) == 1) return std::uint64_t{x.random.chance(50)};
      return word_of(type, x.random.range(type.has_sign ? -2 : 0, 2));
    };
    x.fill_a([&](int, int) { return small(row.a); });
    x.fill_b([&](int, int) { return small(row.b); });
    x.fill_c([&](int, int) {
      return row.ignore_c ? std::uint64_t{0} : word_of(row.c, x.random.range(-8, 8));
    });
  }
  return batch;
}

namespace {

/// The factor that the scales of row i and column j give to the product at k.
long double scale_of(const TensorCoreInstruction& row, const Batch& batch, int t, int i, int j,
                     int k) {
  const int count = row.scale.count;
  if (count == 0) return 1;
  const int s = k / (row.k / count);
  return value_of(row.scale.format, batch.a_scale[element_index(row.m, count, t, i, s)]) *
         value_of(row.scale.format, batch.b_scale[element_index(count, row.n, t, s, j)]);
}

}  // namespace

long double exact_total(const TensorCoreInstruction& row, const Batch& batch, int t, int i, int j) {
  long double total = value_of(row.c, batch.c[element_index(row.m, row.n, t, i, j)]);
  const bool exclusive = row.name.find("xor") != std::string_view::npos;
  const long double sign = row.negate_a != row.negate_b ? -1 : 1;
  for (int s = 0; s < row.stored_k(); ++s) {
    const std::size_t a = element_index(row.m, row.stored_k(), t, i, s);
    const int k = row.sparse ? dense_column(row, s, batch.e[a]) : s;
    const std::uint64_t a_code = batch.a[a], b_code = batch.b[element_index(row.k, row.n, t, k, j)];
    total += exclusive ? static_cast<long double>(a_code ^ b_code)
                       : sign * value_of(row.a, a_code) * value_of(row.b, b_code) *
                             scale_of(row, batch, t, i, j, k);
  }
  return total;
}

}  // namespace guardbit::gpu