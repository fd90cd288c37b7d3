#include "gpu/inputs/inputs.hpp"

#include <utility>

#include "formats/format_catalogue.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "gpu/inputs/mixed_rows.hpp"

namespace guardbit::gpu {
namespace {

MixedRows mixed_rows_of(const TensorCoreInstruction& instruction) {
  if (!is_integer(instruction.a)) return mixed_floats();
  return instruction.a == formats::b1 ? mixed_bits() : mixed_integers();
}

/// The stream of one execution depends on seed, instruction and variant alone.
std::uint64_t key_of(const TensorCoreInstruction& instruction, std::uint64_t seed,
                     std::int64_t execution) {
  std::uint64_t hash = std::uint64_t{0xCBF29CE484222325} ^ seed;  // FNV-1a over the names
  for (const std::string_view text : {instruction.name, instruction.variant})
    for (const char ch : text)
      hash = (hash ^ static_cast<unsigned char>(ch)) * std::uint64_t{0x100000001B3};
  return Random(hash + static_cast<std::uint64_t>(execution) * std::uint64_t{0xD1B54A32D192ED03})
      .bits();
}

/// Random valid metadata: two different positions, increasing unless the instruction says
/// otherwise, or one of two for TF32.
void fill_positions(Execution& x) {
  const SparseGroup group = sparse_group(x.instruction);
  for (int i = 0; i < x.instruction.m; ++i)
    for (int s = 0; s < x.instruction.stored_k(); s += group.stored) {
      if (group.positions == 2) {
        x.e(i, s) = static_cast<std::uint8_t>(x.random.range(0, 1));
        continue;
      }
      int first = x.random.range(0, 2), second = x.random.range(first + 1, 3);
      if (x.instruction.unordered && x.random.chance(60)) std::swap(first, second);
      for (int n = 0; n < group.stored; ++n)
        x.e(i, s + n) = static_cast<std::uint8_t>(n < group.stored / 2 ? first : second);
    }
}

/// Scale factors around one for execution t of the stream, so that scaled values stay within the
/// range of the other operands; now and then any code, NaN among them, unless all must be `plain`.
void fill_scales(const TensorCoreInstruction& instruction, Batch& batch, int execution,
                 std::uint64_t seed, std::int64_t t, bool plain = false) {
  Random random(key_of(instruction, seed, t) ^ 0x5CA1E);
  const Format& type = instruction.scale.format;
  const auto scale = [&]() -> std::uint64_t {
    if (!plain && random.chance(3)) return random.bits() & word_mask(type);
    const auto exponent = static_cast<std::uint64_t>(type.bias + random.range(-3, 3));
    return exponent << type.fraction_bits |
           (plain ? 0 : random.bits() & formats::low_bits(type.fraction_bits));
  };
  const auto fill = [&](std::vector<std::uint64_t>& scales, int vectors) {
    const std::size_t begin = element_index(instruction.scale.count, vectors, execution, 0, 0),
                      end = element_index(instruction.scale.count, vectors, execution + 1, 0, 0);
    for (std::size_t i = begin; i < end; ++i) scales[i] = scale();
  };
  fill(batch.a_scale, instruction.m);
  fill(batch.b_scale, instruction.n);
}

}  // namespace

std::vector<std::string_view> families(const TensorCoreInstruction& instruction) {
  std::vector<std::string_view> names;
  for (const InputFamilyEntry& entry : input_families(input_kind(instruction)))
    names.push_back(entry.name);
  return names;
}

std::string_view mixed_kind(const TensorCoreInstruction& instruction) {
  return mixed_rows_of(instruction).name;
}

std::vector<std::string_view> mixed_families(const TensorCoreInstruction& instruction) {
  std::vector<std::string_view> names;
  for (const RowFamily& family : mixed_rows_of(instruction).rows) names.push_back(family.name);
  return names;
}

void fill_execution(Batch& batch, int execution, const InputShape& x, InputFamily family,
                    std::uint64_t seed, std::int64_t t) {
  for (int i = 0; i < x.m; ++i) {
    for (int s = 0; s < x.stored_k; ++s) {
      const std::size_t at = element_index(x.m, x.stored_k, execution, i, s);
      batch.a[at] = a_word(x, family, seed, t, i, s);
      if (x.sparse) batch.e[at] = static_cast<std::uint8_t>(e_position(x, family, seed, t, i, s));
    }
    for (int j = 0; j < x.n; ++j)
      batch.c[element_index(x.m, x.n, execution, i, j)] = c_word(x, family, seed, t, i, j);
  }
  for (int k = 0; k < x.k; ++k)
    for (int j = 0; j < x.n; ++j)
      batch.b[element_index(x.k, x.n, execution, k, j)] = b_word(x, family, seed, t, k, j);
  const auto fill = [&](std::vector<std::uint64_t>& scales, Place place, int lines) {
    const int count = lines * x.scales;
    for (int i = 0; i < count; ++i)
      scales[static_cast<std::size_t>(execution * count + i)] =
          scale_word(x, family, seed, t, place, i);
  };
  fill(batch.a_scale, Place::a_scale, x.m);
  fill(batch.b_scale, Place::b_scale, x.n);
}

Batch make_inputs(const TensorCoreInstruction& instruction, int executions, std::uint64_t seed) {
  Batch batch(instruction, executions);
  const InputShape x = input_shape(instruction);
  const auto list = input_families(x.kind);
  for (int t = 0; t < executions; ++t) {
    const auto count = static_cast<int>(list.size());
    fill_execution(batch, t, x, list[static_cast<std::size_t>(t % count)].family, seed, t / count);
  }
  return batch;
}

Batch make_family_inputs(const TensorCoreInstruction& instruction, InputFamily family,
                         std::uint64_t seed, std::int64_t first, int executions) {
  Batch batch(instruction, executions);
  const InputShape x = input_shape(instruction);
  for (int t = 0; t < executions; ++t) fill_execution(batch, t, x, family, seed, first + t);
  return batch;
}

Batch make_mixed_rows(const TensorCoreInstruction& instruction, int executions,
                      std::uint64_t seed) {
  Batch batch(instruction, executions);
  const MixedRows mixed = mixed_rows_of(instruction);
  for (int t = 0; t < executions; ++t) {
    Execution x(instruction, batch, t, key_of(instruction, seed, t));
    if (instruction.sparse) fill_positions(x);
    fill_scales(instruction, batch, t, seed, t);
    mixed.make_columns(x);
    for (int i = 0; i < instruction.m; ++i)
      mixed.rows[static_cast<std::size_t>(t * instruction.m + i) % mixed.rows.size()].fill(x, i);
    if (instruction.ignore_c) x.fill_c([](int, int) { return std::uint64_t{0}; });
  }
  return batch;
}

Batch make_small_integers(const TensorCoreInstruction& instruction, int executions,
                          std::uint64_t seed) {
  Batch batch(instruction, executions);
  for (int t = 0; t < executions; ++t) {
    Execution x(instruction, batch, t, key_of(instruction, seed, t));
    if (instruction.sparse) fill_positions(x);
    fill_scales(instruction, batch, t, seed, t, true);
    const auto small = [&](const Format& type) {
      if (bits(type) == 1) return std::uint64_t{x.random.chance(50)};
      return word_of(type, x.random.range(type.has_sign ? -2 : 0, 2));
    };
    x.fill_a([&](int, int) { return small(instruction.a); });
    x.fill_b([&](int, int) { return small(instruction.b); });
    x.fill_c([&](int, int) {
      return instruction.ignore_c ? std::uint64_t{0}
                                  : word_of(instruction.c, x.random.range(-8, 8));
    });
  }
  return batch;
}

namespace {

/// The factor that the scales of row i and column j give to the product at k.
long double scale_of(const TensorCoreInstruction& instruction, const Batch& batch, int t, int i,
                     int j, int k) {
  const int count = instruction.scale.count;
  if (count == 0) return 1;
  const int s = k / (instruction.k / count);
  return value_of(instruction.scale.format,
                  batch.a_scale[element_index(instruction.m, count, t, i, s)]) *
         value_of(instruction.scale.format,
                  batch.b_scale[element_index(count, instruction.n, t, s, j)]);
}

}  // namespace

long double exact_total(const TensorCoreInstruction& instruction, const Batch& batch, int t, int i,
                        int j) {
  long double total =
      value_of(instruction.c, batch.c[element_index(instruction.m, instruction.n, t, i, j)]);
  const bool exclusive = instruction.name.find("xor") != std::string_view::npos;
  const long double sign = instruction.negate_a != instruction.negate_b ? -1 : 1;
  for (int s = 0; s < instruction.stored_k(); ++s) {
    const std::size_t a = element_index(instruction.m, instruction.stored_k(), t, i, s);
    const int k = instruction.sparse ? dense_column(instruction, s, batch.e[a]) : s;
    const std::uint64_t a_code = batch.a[a],
                        b_code = batch.b[element_index(instruction.k, instruction.n, t, k, j)];
    total += exclusive ? static_cast<long double>(a_code ^ b_code)
                       : sign * value_of(instruction.a, a_code) * value_of(instruction.b, b_code) *
                             scale_of(instruction, batch, t, i, j, k);
  }
  return total;
}

}  // namespace guardbit::gpu
