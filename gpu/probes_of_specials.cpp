#include <cstdio>

#include "formats/catalogue.hpp"
#include "gpu/probe_collector.hpp"

namespace guardbit::gpu {

namespace {

void probe_signed_zeros(Collector& x) {
  const std::uint64_t a_minus = sign_bit(x.row.a), c_minus = sign_bit(x.row.c);
  const std::uint64_t b_one = word_of(x.row.b, 1);
  x.start("signed zeros, all -0*1, c=-0", c_minus);
  for (int k = 0; k < x.row.k; ++k) x.add_codes(k, a_minus, b_one);
  x.start("signed zeros, all -0*1, c=+0");
  for (int k = 0; k < x.row.k; ++k) x.add_codes(k, a_minus, b_one);
  x.start("signed zeros, all +0*1, c=-0", c_minus);
  for (int k = 0; k < x.row.k; ++k) x.add_codes(k, 0, b_one);
  x.start("signed zeros, 1-1, c=-0", c_minus).add(0, 1, 1).add(1, -1, 1);
  x.start_value("signed zeros, 1, c=-1", -1).add(0, 1, 1);
}

void probe_nan_words(Collector& x) {
  const std::uint64_t one_a = word_of(x.row.a, 1), one_b = word_of(x.row.b, 1);
  const auto words = [](const Format& type) {
    std::vector<std::uint64_t> codes;
    if (!has_infinity(type)) return std::vector<std::uint64_t>{sign_bit(type) - 1, word_mask(type)};
    const std::uint64_t quiet = (std::uint64_t{1} << word_fraction_bits(type)) >> 1;
    for (const std::uint64_t sign : {std::uint64_t{0}, sign_bit(type)})
      for (const std::uint64_t fraction : {quiet, quiet | 3, std::uint64_t{1} << ignored_bits(type),
                                           std::uint64_t{1}, std::uint64_t{0}})
        codes.push_back(sign | infinity_word(type) | fraction);
    return codes;
  };
  char text[64];
  const auto label = [&](const char* operand, std::uint64_t code) {
    std::snprintf(text, sizeof text, "specials, %s=%llx", operand,
                  static_cast<unsigned long long>(code));
    return std::string(text);
  };
  for (const std::uint64_t code : words(x.row.a))
    x.start(label("a", code)).add_codes(0, code, one_b);
  for (const std::uint64_t code : words(x.row.b))
    x.start(label("b", code)).add_codes(0, one_a, code);
  for (const std::uint64_t code : words(x.row.c)) x.start(label("c", code), code);
  if (!has_infinity(x.row.a) || !has_infinity(x.row.b)) return;
  const std::uint64_t inf_a = infinity_word(x.row.a), inf_b = infinity_word(x.row.b),
                      inf_c = infinity_word(x.row.c);
  x.start("specials, Inf*0").add_codes(0, inf_a, 0);
  x.start("specials, 0*Inf").add_codes(0, 0, inf_b);
  x.start("specials, -Inf*0").add_codes(0, inf_a | sign_bit(x.row.a), 0);
  x.start("specials, Inf, -Inf")
      .add_codes(0, inf_a, one_b)
      .add_codes(1, inf_a | sign_bit(x.row.a), one_b);
  x.start("specials, Inf, c=-Inf", inf_c | sign_bit(x.row.c)).add_codes(0, inf_a, one_b);
  x.start("specials, Inf*-Inf").add_codes(0, inf_a, inf_b | sign_bit(x.row.b));
  if (x.row.a == formats::tf32) {
    x.start("ignored bits, 3f801fff*1").add_codes(0, 0x3F801FFF, 0x3F800000);
    x.start("ignored bits, 1*3f801fff").add_codes(0, 0x3F800000, 0x3F801FFF);
    x.start("ignored bits, 7f800001*1").add_codes(0, 0x7F800001, 0x3F800000);
    x.start("ignored bits, 7f800001*0").add_codes(0, 0x7F800001, 0);
    x.start("ignored bits, 00001fff*Inf").add_codes(0, 0x00001FFF, 0x7F800000);
    x.start("ignored bits, 00002000*Inf").add_codes(0, 0x00002000, 0x7F800000);
  }
}

}  // namespace

void probe_specials(Collector& x) {
  probe_signed_zeros(x);
  probe_nan_words(x);
}

void probe_double_precision(Collector& x) {
  x.start("chain, 1, 2^-53, 2^-53, -1")
      .add(0, 1, 1)
      .add(1, two(-53), 1)
      .add(2, two(-53), 1)
      .add(3, -1, 1);
  x.start_value("chain, c=1, 2^-53 four times", 1);
  for (int k = 0; k < 4; ++k) x.add(k, two(-53), 1);
  x.start_value("rounding, c=1, 2^-60", 1).add(0, two(-60), 1);
  x.start_value("rounding, c=1, -2^-60", 1).add(0, -two(-60), 1);
  x.start_value("rounding, c=-1, 2^-60", -1).add(0, two(-60), 1);
  x.start("rounding, subnormal 2^-537*2^-537").add(0, two(-537), two(-537));
  x.start("rounding, -2^-600*2^-600").add(0, -two(-600), two(-600));
  x.start("rounding, 2^-600*2^-600").add(0, two(-600), two(-600));
  x.start("rounding, 2^1023*2").add(0, two(1023), 2);
  x.start("rounding, -2^1023*2").add(0, -two(1023), 2);
  const std::uint64_t quiet = 0x7FF8000000000000, signalling = 0x7FF0000000000000,
                      minus = std::uint64_t{1} << 63;
  const std::uint64_t one = 0x3FF0000000000000;
  // Payloads name their place: 0xa0k in a[k], 0xb0k in b[k], 0xc00 in c.
  for (const std::uint64_t kind : {quiet, signalling, quiet | minus, signalling | minus}) {
    const char* name = kind == quiet                               ? "qNaN "
                       : kind == signalling                        ? "sNaN "
                       : kind & minus && kind & 0x0008000000000000 ? "-qNaN "
                                                                   : "-sNaN ";
    const auto a = [&](int k) { return kind | 0xA00 | static_cast<std::uint64_t>(k); };
    const auto b = [&](int k) { return kind | 0xB00 | static_cast<std::uint64_t>(k); };
    const std::uint64_t c = kind | 0xC00;
    const auto start = [&](const char* places, std::uint64_t addend) {
      x.start(std::string("NaN, ") + name + places, addend);
    };
    start("a0", 0), x.add_codes(0, a(0), one);
    start("b0", 0), x.add_codes(0, one, b(0));
    start("c", c);
    start("a0 b0", 0), x.add_codes(0, a(0), b(0));
    start("a0 c", c), x.add_codes(0, a(0), one);
    start("b0 c", c), x.add_codes(0, one, b(0));
    start("a0 b0 c", c), x.add_codes(0, a(0), b(0));
    start("a0 a1", 0), x.add_codes(0, a(0), one).add_codes(1, a(1), one);
    start("a0 b1", 0), x.add_codes(0, a(0), one).add_codes(1, one, b(1));
    start("b0 a1", 0), x.add_codes(0, one, b(0)).add_codes(1, a(1), one);
    start("b0 b1", 0), x.add_codes(0, one, b(0)).add_codes(1, one, b(1));
    start("a0 b0 a1 b1", 0), x.add_codes(0, a(0), b(0)).add_codes(1, a(1), b(1));
    start("a3 c", c), x.add_codes(3, a(3), one);
    start("a0 a1 a2 a3 b0 b1 b2 b3 c", c);
    for (int k = 0; k < 4; ++k) x.add_codes(k, a(k), b(k));
    start("a5 a2", 0), x.add_codes(5, a(5), one).add_codes(2, a(2), one);
    start("Inf*0, c", c), x.add_codes(0, signalling, 0);
    start("Inf*0, then a1", 0), x.add_codes(0, signalling, 0).add_codes(1, a(1), one);
    start("a0, then Inf*0", 0), x.add_codes(1, signalling, 0).add_codes(0, a(0), one);
    start("a0 times 0", 0), x.add_codes(0, a(0), 0);
    start("a0 times Inf", 0), x.add_codes(0, a(0), signalling);
  }
  x.start("NaN, sNaN a0, qNaN c", quiet | 0xC00).add_codes(0, signalling | 0xA00, one);
  x.start("NaN, qNaN a0, sNaN c", signalling | 0xC00).add_codes(0, quiet | 0xA00, one);
  x.start("NaN, sNaN a0, qNaN b0").add_codes(0, signalling | 0xA00, quiet | 0xB00);
  x.start("NaN, qNaN a0, sNaN b0").add_codes(0, quiet | 0xA00, signalling | 0xB00);
  x.start("NaN, -qNaN a0, qNaN b0").add_codes(0, minus | quiet | 0xA00, quiet | 0xB00);
}

}  // namespace guardbit::gpu
