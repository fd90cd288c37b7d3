// Mixed rows of integer and single-bit operands.

#include "gpu/inputs/mixed_rows.hpp"

namespace guardbit::gpu {

namespace {

template <class Make>
void fill_column(Execution& x, int j, Make make) {
  for (int k = 0; k < x.instruction.k; ++k) x.b(k, j) = make(k);
}
template <class MakeA, class MakeC>
void fill_row(Execution& x, int i, MakeA make_a, MakeC make_c) {
  for (int s = 0; s < x.instruction.stored_k(); ++s) x.a(i, s) = make_a(s);
  for (int j = 0; j < x.instruction.n; ++j) x.c(i, j) = make_c(j);
}

std::uint64_t largest(const Format& type) { return formats::magnitude_mask(type); }
std::uint64_t lowest(const Format& type) { return type.has_sign ? sign_bit(type) : 0; }

std::uint64_t extreme(Execution& x, const Format& type) {
  const std::uint64_t choices[] = {0, 1, word_mask(type), lowest(type), largest(type)};
  return choices[x.random.between(0, 4)];
}

/// Within `reach` of either end of the int32 range.
std::uint64_t near_an_end(Execution& x, int reach) {
  const auto distance = static_cast<std::uint32_t>(x.random.between(0, reach));
  return x.random.chance(50) ? 0x7FFFFFFFU - distance : 0x80000000U + distance;
}

/// Elements whose sign, or for unsigned formats presence, alternates in blocks of a power of two.
auto alternating(Execution& x, const Format& type) {
  const int block = 1 << x.random.between(0, 5), flip = x.random.between(0, 1);
  return [=](int k) { return (k / block) % 2 == flip ? largest(type) : lowest(type); };
}

void make_integer_columns(Execution& x) {
  const Format& type = x.instruction.b;
  for (int j = 0; j < x.instruction.n; ++j) {
    switch (j % 8) {
      case 2: fill_column(x, j, [&](int) { return largest(type); }); break;
      case 3: fill_column(x, j, [&](int) { return type.has_sign ? lowest(type) : 1; }); break;
      case 4: fill_column(x, j, alternating(x, type)); break;
      case 5: fill_column(x, j, [&](int) { return x.random.chance(80) ? 0 : x.raw(type); }); break;
      case 6: fill_column(x, j, [&](int) { return extreme(x, type); }); break;
      default: fill_column(x, j, [&](int) { return x.raw(type); }); break;
    }
  }
}

void raw_bits(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return x.raw(x.instruction.a); },
      [&](int) { return x.raw(x.instruction.c); });
}

void extreme_integers(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return extreme(x, x.instruction.a); },
      [&](int) { return extreme(x, x.instruction.c); });
}

/// Random products beside an addend that they may or may not carry past the end.
void near_saturation(Execution& x, int i) {
  const int reach = x.instruction.stored_k() << (bits(x.instruction.a) + bits(x.instruction.b) - 5);
  fill_row(
      x, i, [&](int) { return x.raw(x.instruction.a); },
      [&](int) { return near_an_end(x, reach); });
}

/// Large products whose signs alternate in blocks, so that any order of saturating steps would
/// show.
void alternating_saturation(Execution& x, int i) {
  fill_row(x, i, alternating(x, x.instruction.a),
           [&](int) { return near_an_end(x, x.random.chance(25) ? 1000 : 5); });
}

void saturating_products(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return largest(x.instruction.a); },
      [&](int) { return near_an_end(x, 100); });
}

void small_integers(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return x.random.bits() & word_mask(x.instruction.a) & 3; },
      [&](int) {
        return static_cast<std::uint64_t>(x.random.between(-1000, 1000)) &
               word_mask(x.instruction.c);
      });
}

void make_bit_columns(Execution& x) {
  for (int j = 0; j < x.instruction.n; ++j) {
    constexpr int percent_of_ones[] = {50, 50, 90, 10, 100, 0, 50, 75};
    fill_column(x, j, [&](int) { return std::uint64_t{x.random.chance(percent_of_ones[j % 8])}; });
  }
}

void sparse_bits(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return std::uint64_t{x.random.chance(20)}; },
      [&](int) {
        return static_cast<std::uint64_t>(x.random.between(-300, 300)) & word_mask(x.instruction.c);
      });
}

void wrapping_bits(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return x.raw(x.instruction.a); },
      [&](int) {
        return std::uint64_t{0x7FFFFFFFU} -
               static_cast<std::uint64_t>(x.random.between(0, x.instruction.k));
      });
}

void all_ones(Execution& x, int i) {
  fill_row(
      x, i, [&](int) { return std::uint64_t{1}; }, [&](int) { return x.raw(x.instruction.c); });
}

constexpr RowFamily integers_in_order[] = {
    {InputFamily::raw_bits, raw_bits},
    {InputFamily::extreme_integers, extreme_integers},
    {InputFamily::near_saturation, near_saturation},
    {InputFamily::alternating_saturation, alternating_saturation},
    {InputFamily::saturating_products, saturating_products},
    {InputFamily::small_integers, small_integers},
};

constexpr RowFamily bits_in_order[] = {
    {InputFamily::raw_bits, raw_bits},
    {InputFamily::sparse_bits, sparse_bits},
    {InputFamily::wrapping_bits, wrapping_bits},
    {InputFamily::all_ones, all_ones},
};

}  // namespace

MixedRows mixed_integers() { return {"mixed_integers", make_integer_columns, integers_in_order}; }
MixedRows mixed_bits() { return {"mixed_bits", make_bit_columns, bits_in_order}; }

}  // namespace guardbit::gpu
