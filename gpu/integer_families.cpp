#include "gpu/execution.hpp"

namespace guardbit::gpu {
namespace {

void raw_bits(Execution& x, int) {
  x.fill_a([&](int, int) { return x.raw(x.row.a); });
  x.fill_b([&](int, int) { return x.raw(x.row.b); });
  x.fill_c([&](int, int) { return x.raw(x.row.c); });
}

std::uint64_t largest_integer(const Format& type) {
  return type.has_sign ? sign_bit(type) - 1 : word_mask(type);
}

void extreme_integers(Execution& x, int) {
  const auto extreme = [&](const Format& type) {
    const std::uint64_t choices[] = {
        0, 1, word_mask(type), sign_bit(type), sign_bit(type) - 1, largest_integer(type)};
    return choices[x.random.range(0, 5)];
  };
  x.fill_a([&](int, int) { return extreme(x.row.a); });
  x.fill_b([&](int, int) { return extreme(x.row.b); });
  x.fill_c([&](int, int) { return extreme(x.row.c); });
}

/// Random products beside an addend within their reach of the end of the s32 range.
void near_saturation(Execution& x, int round) {
  raw_bits(x, round);
  const int reach = x.row.stored_k() << (word_bits(x.row.a) + word_bits(x.row.b) - 5);
  x.fill_c([&](int, int) {
    const auto distance = static_cast<std::uint32_t>(x.random.range(0, reach));
    return std::uint64_t{x.random.chance(50) ? 0x7FFFFFFFu - distance : 0x80000000u + distance};
  });
}

/// Large products whose signs alternate in blocks, so that any order of saturating steps would
/// show; totals stay small.
void alternating_saturation(Execution& x, int) {
  x.fill_b([&](int, int) { return largest_integer(x.row.b); });
  for (int i = 0; i < x.row.m; ++i) {
    const int block = 1 << x.random.range(0, 6), flip = x.random.range(0, 1);
    for (int s = 0; s < x.row.stored_k(); ++s) {
      const bool low = ((s / block) % 2 == 1) != (flip == 1);
      x.a(i, s) = x.row.a.has_sign ? (low ? word_mask(x.row.a) & (sign_bit(x.row.a) + 1)
                                          : largest_integer(x.row.a))
                                   : (low ? 0 : largest_integer(x.row.a));
    }
    if (x.random.chance(50)) x.a(i, x.random.range(0, x.row.stored_k() - 1)) = x.raw(x.row.a);
  }
  if (!x.row.a.has_sign && x.row.b.has_sign)  // the signs must come from b
    for (int k = 0; k < x.row.k; ++k)
      for (int j = 0; j < x.row.n; ++j)
        if ((k >> (j % 6)) & 1) x.b(k, j) = sign_bit(x.row.b) + 1;
  x.fill_c([&](int, int) {
    const auto distance = static_cast<std::uint32_t>(
        x.random.range(0, 3) == 0 ? x.random.range(0, 1000) : x.random.range(0, 5));
    return std::uint64_t{x.random.chance(50) ? 0x7FFFFFFFu - distance : 0x80000000u + distance};
  });
}

void small_integers(Execution& x, int) {
  const auto small = [&](const Format& type) {
    return static_cast<std::uint64_t>(type.has_sign ? x.random.range(-3, 3)
                                                    : x.random.range(0, 3)) &
           word_mask(type);
  };
  x.fill_a([&](int, int) { return small(x.row.a); });
  x.fill_b([&](int, int) { return small(x.row.b); });
  x.fill_c([&](int, int) {
    return static_cast<std::uint64_t>(x.random.range(-1000, 1000)) & word_mask(x.row.c);
  });
}

void sparse_bits(Execution& x, int) {
  x.fill_a([&](int, int) { return std::uint64_t{x.random.chance(20)}; });
  x.fill_b([&](int, int) { return std::uint64_t{x.random.chance(80)}; });
  x.fill_c([&](int, int) {
    return static_cast<std::uint64_t>(x.random.range(-300, 300)) & word_mask(x.row.c);
  });
}

void wrapping_bits(Execution& x, int round) {
  raw_bits(x, round);
  x.fill_c([&](int, int) {
    return std::uint64_t{0x7FFFFFFFu - static_cast<std::uint32_t>(x.random.range(0, x.row.k))};
  });
}

constexpr InputFamily integers_in_order[] = {
    {"raw_bits", raw_bits},
    {"small_integers", small_integers},
    {"extreme_integers", extreme_integers},
    {"near_saturation", near_saturation},
    {"alternating_saturation", alternating_saturation},
};

constexpr InputFamily bits_in_order[] = {
    {"raw_bits", raw_bits},
    {"sparse_bits", sparse_bits},
    {"wrapping_bits", wrapping_bits},
};

}  // namespace

std::span<const InputFamily> integer_families() { return integers_in_order; }
std::span<const InputFamily> bit_families() { return bits_in_order; }

}  // namespace guardbit::gpu
