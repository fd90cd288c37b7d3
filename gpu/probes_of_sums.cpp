#include "formats/catalogue.hpp"
#include "gpu/probe_collector.hpp"

namespace guardbit::gpu {

namespace {

std::string number(const char* prefix, int value) { return prefix + std::to_string(value); }

void probe_f16_result(Collector& x) {
  for (const bool negative : {false, true}) {
    const std::uint64_t c = negative ? sign_bit(x.row.c) : 0;
    const std::string name = negative ? "zero exponent, c=-0 p1=2^" : "zero exponent, c=+0 p1=2^";
    for (int e = 38; e <= 48; ++e)
      x.start(name + std::to_string(-e), c)
          .add(0, two(-12), two(-13))
          .add(1, two(-(e / 2)), two(-(e - e / 2)));
  }
  x.start("underflow, f16 -2^-25").add(0, -two(-12), two(-13));
  x.start("underflow, f16 -2^-48").add(0, -two(-24), two(-24));
  x.start("underflow, f16 -(2^-25+2^-26)").add(0, -two(-12), 1.5L * two(-13));
  x.start_value("subnormal addend, c=2^-23, 2^-25, 2^-40", two(-23))
      .add(0, two(-12), two(-13))
      .add(1, two(-20), two(-20));
  x.start("stages, .5*(1,1,2^-10,2^-23)")
      .add(0, .5L, 1)
      .add(1, .5L, 1)
      .add(2, .5L, two(-10))
      .add(3, .5L, two(-23));
  for (int e = 20; e <= 32; ++e)
    x.start_value(number("kept bits, c=1, 2^-11, 2^-", e), 1)
        .add(0, two(-11), 1)
        .add(1, two(-(e / 2)), two(-(e - e / 2)));
  for (int e = 20; e <= 32; ++e)
    x.start_value(number("kept bits, c=1, 2^-11, -2^-", e), 1)
        .add(0, two(-11), 1)
        .add(1, -two(-(e / 2)), two(-(e - e / 2)));
  x.start("overflow, 65520=255.9375*256 tie").add(0, 255.9375L, 256);
  x.start("overflow, 65519.97").add(0, 255.9375L, 256).add(1, -two(-5), 1);
  x.start("overflow, 2^17-2^17+1").add(0, 512, 256).add(1, -512, 256).add(2, 1, 1);
}

void probe_f32_tiny(Collector& x) {
  static constexpr int factors[][3] = {{5, 31, 1}, {6, 63, 1},   {7, 127, 1},  {8, 15, 17},
                                       {9, 7, 73}, {10, 33, 31}, {11, 23, 89}, {12, 45, 91}};
  for (const auto& [j, u, v] : factors)
    x.start(number("zero exponent, j=", j))
        .add(0, u * two(-78), v * two(-71 - j))
        .add(1, two(-78), two(-71 - j));
  for (const auto& [j, u, v] : factors)
    x.start_value(number("subnormal addend, c=2^-149 j=", j), two(-149))
        .add(0, u * two(-78), v * two(-71 - j))
        .add(1, two(-78), two(-71 - j));
  for (const auto& [j, u, v] : factors)
    x.start(number("zero exponent, c=-0 j=", j), sign_bit(x.row.c))
        .add(0, u * two(-78), v * two(-71 - j))
        .add(1, two(-78), two(-71 - j));
  for (int e = 149; e <= 162; ++e)
    x.start(number("underflow, -2^-", e)).add(0, -two(-75), two(75 - e));
  x.start("underflow, -1.5*2^-149").add(0, -1.5L * two(-75), two(-74));
  x.start_value("overflow, +-2^128, c=2^103", two(103))
      .add(0, two(64), two(64))
      .add(1, -two(64), two(64));
  x.start_value("overflow, +-2^128, c=2^102", two(102))
      .add(0, two(64), two(64))
      .add(1, -two(64), two(64));
  x.start_value("overflow, 2^128, c=-2^103", -two(103)).add(0, two(64), two(64));
  x.start_value("overflow, 2^128, c=-2^102", -two(102)).add(0, two(64), two(64));
  x.start("overflow, 2^127 twice").add(0, two(64), two(63)).add(1, two(64), two(63));
  x.start("overflow, 2^127 twice, -2^127")
      .add(0, two(64), two(63))
      .add(1, two(64), two(63))
      .add(2, -two(64), two(63));
  x.start("overflow, 2^254, -2^254, 1")
      .add(0, two(127), two(127))
      .add(1, -two(127), two(127))
      .add(2, 1, 1);
}

void probe_alignment(Collector& x) {
  x.start("alignment, 2^-24*2^15, 2^-12*2^-13")
      .add(0, two(-24), two(15))
      .add(1, two(-12), two(-13));
  x.start_value("alignment, c=1, -2^-26", 1).add(0, -two(-13), two(-13));
  x.start_value("alignment, c=1, -2^-25", 1).add(0, -two(-13), two(-12));
  for (int e = 8; e <= 32; ++e) {
    x.start_value(number("kept bits, c=1, -1, 2^-", e), 1)
        .add(0, -1, 1)
        .add(1, two(-(e / 2)), two(-(e - e / 2)));
    x.start(number("kept bits, 1, -1, 2^-", e))
        .add(0, 1, 1)
        .add(1, -1, 1)
        .add(2, two(-(e / 2)), two(-(e - e / 2)));
  }
  x.start("blocks, 2^26, -2^26, then 1/8 at 4..7")
      .add(0, two(13), two(13))
      .add(1, -two(13), two(13));
  for (int k = 4; k < 8; ++k) x.add(k, .125L, 1);
  x.start("blocks, 1/8 at 0..3, 2^26, -2^26 at 4, 5")
      .add(4, two(13), two(13))
      .add(5, -two(13), two(13));
  for (int k = 0; k < 4; ++k) x.add(k, .125L, 1);
  x.start_value("addend alone, A=0 c=1+2^-23", 1 + two(-23));
  x.start_value("addend alone, A=0 c=1+2^-13", 1 + two(-13));
  x.start_value("addend alone, A=0 c=1+2^-13+2^-14", 1 + two(-13) + two(-14));
  x.start_value("addend, c=1, -2^-14", 1).add(0, -two(-7), two(-7));
  x.start("addend, 1, 1, 2^-13").add(0, 1, 1).add(1, 1, 1).add(2, two(-6), two(-7));
  x.start("kept bits, 1, 2^-11, 2^-13")
      .add(0, 1, 1)
      .add(1, two(-5), two(-6))
      .add(2, two(-6), two(-7));
  x.start("kept bits, 1, 2^-11, 2^-14")
      .add(0, 1, 1)
      .add(1, two(-5), two(-6))
      .add(2, two(-7), two(-7));
  x.start("chain, 1, 1.5*2^-24").add(0, 1, 1).add(1, 1.5L * two(-12), two(-12));
}

}  // namespace

void probe_sums(Collector& x) {
  probe_alignment(x);
  if (x.row.d == formats::fp16) probe_f16_result(x);
  if (x.row.d == formats::fp32 && x.row.a.exponent_bits == 8) probe_f32_tiny(x);
}

void probe_saturation(Collector& x) {
  const long double top =
      x.row.a.has_sign ? two(word_bits(x.row.a) - 1) - 1 : two(word_bits(x.row.a)) - 1;
  const long double top_b =
      x.row.b.has_sign ? two(word_bits(x.row.b) - 1) - 1 : two(word_bits(x.row.b)) - 1;
  for (const long double end : {two(31) - 1, -two(31)}) {
    const std::string at = end > 0 ? " c=max" : " c=min";
    for (const auto& [first, second] :
         {std::pair(0, 1), std::pair(1, 0), std::pair(0, 2), std::pair(2, 0), std::pair(0, 4),
          std::pair(4, 0), std::pair(0, 8), std::pair(8, 0), std::pair(0, 15), std::pair(15, 16),
          std::pair(16, 15), std::pair(0, 31), std::pair(31, 0), std::pair(0, 32),
          std::pair(32, 0)}) {
      const std::string label =
          "saturation, +k" + std::to_string(first) + " -k" + std::to_string(second) + at;
      if (x.row.a.has_sign)
        x.start_value(label, end).add(first, top, top_b).add(second, -top, top_b);
      else if (x.row.b.has_sign)
        x.start_value(label, end).add(first, top, top_b).add(second, top, -top_b);
    }
  }
  x.start_value("saturation, c=max, +", two(31) - 1).add(0, top, top_b);
  x.start_value("saturation, c=min, -", -two(31)).add(0, -top, top_b);
}

}  // namespace guardbit::gpu
