#include "gpu/execution.hpp"

namespace guardbit::gpu {
namespace {

void raw_bits(Execution& x, int) {
  x.fill_a([&](int, int) { return x.raw(x.row.a); });
  x.fill_b([&](int, int) { return x.raw(x.row.b); });
  x.fill_c([&](int, int) { return x.raw(x.row.c); });
}

void finite_bits(Execution& x, int) {
  x.fill_a([&](int, int) { return x.finite(x.row.a); });
  x.fill_b([&](int, int) { return x.finite(x.row.b); });
  x.fill_c([&](int, int) { return x.finite(x.row.c); });
}

void near_one(Execution& x, int) { x.fill_near_one(); }

void wide_exponents(Execution& x, int round) {
  const int low = round % 2 ? -30 : -12, high = round % 2 ? 30 : 8;
  x.fill_products(low, high);
  x.fill_c([&](int, int) { return x.value(x.row.c, low - 4, high + 4); });
}

void staggered_terms(Execution& x, int) {
  x.fill_a([&](int, int) { return x.value(x.row.a, -13, 0); });
  x.fill_b([&](int, int) { return x.value(x.row.b, -13, 0); });
  x.fill_c([&](int, int) { return x.value(x.row.c, -13, 1); });
}

void cancellation(Execution& x, int) {
  x.fill_near_one();
  x.cancel();
}

void pair_cancellation(Execution& x, int round) {
  x.fill_near_one();
  x.pair_up(90);
  x.fill_c([&](int, int) {
    return x.random.chance(30) ? x.zero(x.row.c) : x.value(x.row.c, -30, round % 2 ? 0 : -12);
  });
}

void subnormal(Execution& x, int round) {
  if (round % 2) {
    const int low = min_exponent(x.row.d);
    x.fill_products(low - 6, low + 6);
  } else {
    x.fill_a([&](int, int) {
      return x.value(x.row.a, min_exponent(x.row.a) - x.row.a.fraction_bits, min_exponent(x.row.a));
    });
    x.fill_b([&](int, int) { return x.value(x.row.b, -6, max_exponent(x.row.b)); });
  }
  x.fill_c([&](int, int) {
    return x.value(x.row.c, min_exponent(x.row.c) - x.row.c.fraction_bits,
                   min_exponent(x.row.c) + 2);
  });
}

void near_overflow(Execution& x, int round) {
  const int high = max_exponent(x.row.d);
  x.fill_products(high - 4, high - 1);
  x.fill_c([&](int, int) { return x.value(x.row.c, high - 2, high); });
  if (round % 2 == 0) return;
  x.fill_a([&](int i, int s) { return x.a(i, s) & ~sign_bit(x.row.a); });
  x.fill_b([&](int k, int j) {
    return (x.b(k, j) & ~sign_bit(x.row.b)) | (j % 2 ? sign_bit(x.row.b) : 0);
  });
  x.fill_c([&](int, int) { return x.value(x.row.c, high - 8, high); });
}

void huge_products(Execution& x, int) {
  const int high = max_exponent(x.row.d);
  x.fill_products(high - 1, high + 6);
  x.pair_up(80);
  x.fill_c([&](int, int) {
    return x.random.chance(30) ? x.zero(x.row.c) : x.value(x.row.c, high - 30, high);
  });
}

void sparse_zeros(Execution& x, int) {
  const auto mostly_zero = [&](const Format& type) {
    return x.random.chance(70) ? x.zero(type) : x.value(type, -4, 2);
  };
  x.fill_a([&](int, int) { return mostly_zero(x.row.a); });
  x.fill_b([&](int, int) { return mostly_zero(x.row.b); });
  x.fill_c([&](int, int) { return mostly_zero(x.row.c); });
}

void dominant_product(Execution& x, int) {
  x.fill_near_one();
  x.fill_c(
      [&](int, int) { return x.random.chance(30) ? x.zero(x.row.c) : x.value(x.row.c, -16, 0); });
  for (int i = 0; i < x.row.m; ++i)
    x.a(i, x.random.range(0, x.row.stored_k() - 1)) = x.value(x.row.a, 4, 14);
}

void wide_addend(Execution& x, int) {
  x.fill_near_one();
  x.fill_c([&](int, int) { return x.value(x.row.c, -30, 30); });
}

void short_fractions(Execution& x, int) {
  x.fill_a([&](int, int) { return x.value(x.row.a, -4, 1, 2); });
  x.fill_b([&](int, int) { return x.value(x.row.b, -4, 1, 1); });
  x.fill_c([&](int, int) { return x.value(x.row.c, -3, 4); });
}

void tiny_zero_addend(Execution& x, int round) {
  const int last =
      min_exponent(x.row.d) - x.row.d.fraction_bits;  // exponent of the smallest subnormal result
  if (round % 2)
    x.fill_products(last - 8, last + 2);
  else
    x.fill_products(last - 16, last + 8);
  if (x.random.chance(30)) x.pair_up(60);
  x.fill_c([&](int, int) {
    return x.random.chance(85) ? x.zero(x.row.c) : x.value(x.row.c, last, last + 2);
  });
}

void exact_zeros(Execution& x, int round) {
  const bool all_negative_zero = round % 2;
  x.fill_a(
      [&](int, int) { return x.random.chance(50) ? x.zero(x.row.a) : x.value(x.row.a, 0, 0, 0); });
  x.fill_b(
      [&](int, int) { return x.random.chance(70) ? x.zero(x.row.b) : x.value(x.row.b, 0, 0, 0); });
  if (all_negative_zero) {
    x.fill_a([&](int, int) { return sign_bit(x.row.a); });
    x.fill_b([&](int, int j) { return j % 2 ? std::uint64_t{0} : compose(x.row.b, false, 0, 0); });
  }
  x.fill_c([&](int, int) { return x.random.chance(70) ? sign_bit(x.row.c) : 0; });
}

/// Even rows of A, the upper half of B's columns, and c where neither: most outputs see exactly one
/// special.
void single_special(Execution& x, int) {
  x.fill_near_one();
  for (int i = 0; i < x.row.m; i += 2)
    x.a(i, x.random.range(0, x.row.stored_k() - 1)) = x.special(x.row.a);
  for (int j = x.row.n / 2; j < x.row.n; ++j)
    x.b(x.random.range(0, x.row.k - 1), j) = x.special(x.row.b);
  x.fill_c(
      [&](int i, int j) { return i % 2 == 1 && j < x.row.n / 2 ? x.special(x.row.c) : x.c(i, j); });
}

void infinity_times_zero(Execution& x, int) {
  x.fill_near_one();
  for (int i = 0; i < x.row.m; ++i)
    if (x.random.chance(70)) x.a(i, x.random.range(0, x.row.stored_k() - 1)) = x.infinite(x.row.a);
  x.fill_b([&](int k, int j) { return x.random.chance(20) ? x.zero(x.row.b) : x.b(k, j); });
  for (int j = 0; j < x.row.n; ++j)
    if (x.random.chance(30)) x.b(x.random.range(0, x.row.k - 1), j) = x.infinite(x.row.b);
}

void infinity_minus_infinity(Execution& x, int) {
  x.fill_near_one();
  for (int i = 0; i < x.row.m; ++i)
    for (int n = x.random.range(0, 2); n > 0; --n)
      x.a(i, x.random.range(0, x.row.stored_k() - 1)) = x.infinite(x.row.a);
  x.fill_c([&](int i, int j) { return x.random.chance(30) ? x.infinite(x.row.c) : x.c(i, j); });
}

void special_addend(Execution& x, int round) {
  if (round % 2) {
    x.fill_products(max_exponent(x.row.d) - 2, max_exponent(x.row.d) + 3);
  } else {
    x.fill_near_one();
  }
  x.fill_c([&](int, int) { return x.special(x.row.c, true); });
}

void mixed_specials(Execution& x, int) {
  x.fill_near_one();
  x.fill_a([&](int i, int s) { return x.random.chance(5) ? x.special(x.row.a) : x.a(i, s); });
  x.fill_b([&](int k, int j) { return x.random.chance(5) ? x.special(x.row.b) : x.b(k, j); });
  x.fill_c([&](int i, int j) { return x.random.chance(30) ? x.special(x.row.c) : x.c(i, j); });
}

void nan_payloads(Execution& x, int) {
  x.fill_near_one();
  const int percent = 40 / x.row.stored_k() + 3;
  x.fill_a([&](int i, int s) { return x.random.chance(percent) ? x.any_nan(x.row.a) : x.a(i, s); });
  x.fill_b([&](int k, int j) { return x.random.chance(percent) ? x.any_nan(x.row.b) : x.b(k, j); });
  x.fill_c([&](int i, int j) { return x.random.chance(30) ? x.any_nan(x.row.c) : x.c(i, j); });
}

constexpr InputFamily families_in_order[] = {
    {"raw_bits", raw_bits},
    {"finite_bits", finite_bits},
    {"near_one", near_one},
    {"wide_exponents", wide_exponents},
    {"staggered_terms", staggered_terms},
    {"cancellation", cancellation},
    {"pair_cancellation", pair_cancellation},
    {"subnormal", subnormal},
    {"near_overflow", near_overflow},
    {"huge_products", huge_products},
    {"sparse_zeros", sparse_zeros},
    {"dominant_product", dominant_product},
    {"wide_addend", wide_addend},
    {"short_fractions", short_fractions},
    {"tiny_zero_addend", tiny_zero_addend},
    {"exact_zeros", exact_zeros},
    {"single_special", single_special},
    {"infinity_times_zero", infinity_times_zero},
    {"infinity_minus_infinity", infinity_minus_infinity},
    {"special_addend", special_addend},
    {"mixed_specials", mixed_specials},
    {"nan_payloads", nan_payloads},
};

}  // namespace

std::span<const InputFamily> floating_families() { return families_in_order; }

}  // namespace guardbit::gpu
