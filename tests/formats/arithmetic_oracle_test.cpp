#include <algorithm>
#include <random>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_arithmetic.hpp"
#include "tests/formats/patterns.hpp"

namespace guardbit::formats {
namespace {

constexpr std::array pair_formats = {judged::e4m3, judged::e5m2, judged::e4m3fnuz, judged::e5m2fnuz,
                                     judged::e3m2, judged::e2m3, judged::e2m1,     judged::ue4m3};

/// Every operation on every pair of codes, to `each` of the destinations in turn.
void judge_pairs(const JudgedFormat& a, const JudgedFormat& b, std::span<const Destination> to,
                 std::size_t each, Mismatches& mismatches) {
  parallel_for(code_mask(a.model) + 1, 16, 0, [&](std::size_t begin, std::size_t end) {
    for (std::uint64_t x = begin; x < end; ++x) {
      for (std::uint64_t y = 0; y <= code_mask(b.model); ++y) {
        const auto turn = to.subspan((x + y / 2) % (to.size() / each) * each, each);
        for (const Operation operation : two_operands) {
          judge_operation(operation, {a, x}, {b, y}, {b, 0}, turn, mismatches);
        }
      }
      judge_operation(Operation::sqrt, {a, x}, {b, 0}, {b, 0}, to, mismatches);
    }
  });
}

/// Every operation on crossed patterns: each pair under one rounding in turn, or under all six.
void judge_patterns(const JudgedFormat& format, bool all_roundings, Mismatches& mismatches) {
  std::vector<Destination> destinations;
  for (const JudgedRounding& rounding : judged_roundings)
    destinations.push_back({format, rounding});
  const std::span<const Destination> all = destinations;
  const std::vector<std::uint64_t> patterns = crossed_patterns(format.model);
  parallel_for(patterns.size(), 8, 0, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Operand x{format, patterns[i]};
      judge_operation(Operation::sqrt, x, x, x, all, mismatches);
      // Signs alternate in the list, so that neither sum of indices nor their parity will do.
      for (std::size_t j = 0; j < patterns.size(); ++j) {
        const auto turn = all.subspan((i / 2 + 5 * (j / 2) + j) % all.size(), 1);
        for (const Operation operation : two_operands) {
          judge_operation(operation, x, {format, patterns[j]}, x, all_roundings ? all : turn,
                          mismatches);
        }
      }
    }
  });
}

/// Crossed patterns, and `count` random cases per operation, in one format.
void judge_format(const JudgedFormat& format, std::size_t count) {
  Mismatches mismatches;
  judge_patterns(format, false, mismatches);
  judge_random_cases(format, count, mismatches);
  CHECK(mismatches.report() == "");
}

/// Pairs of one format, and mixed ones of e4m3 and e5m2; `all` takes every destination of each
/// pair.
void judge_all_pairs(bool all) {
  Mismatches mismatches;
  for (const JudgedFormat& format : pair_formats) {
    const std::array to = {Destination{format, nearest_even}, Destination{format, downward},
                           Destination{judged::fp16, nearest_even},
                           Destination{judged::fp32, nearest_even}};
    judge_pairs(format, format, to, all ? 4 : 2, mismatches);
  }
  constexpr std::array to = {Destination{judged::fp16, nearest_even},
                             Destination{judged::fp32, nearest_even}};
  judge_pairs(judged::e4m3, judged::e5m2, to, all ? 2 : 1, mismatches);
  judge_pairs(judged::e5m2, judged::e4m3, to, all ? 2 : 1, mismatches);
  CHECK(mismatches.report() == "");
}

}  // namespace

TEST_CASE("every pair of codes of at most 8 bits, every operation", "[long]") {
  judge_all_pairs(false);
}

TEST_CASE("every pair of codes of at most 8 bits, every operation, each destination", "[sweep]") {
  judge_all_pairs(true);
}

TEST_CASE("fp16: crossed patterns and random cases") { judge_format(judged::fp16, 20'000); }
TEST_CASE("bf16: crossed patterns and random cases") { judge_format(judged::bf16, 20'000); }
TEST_CASE("fp32: crossed patterns and random cases") { judge_format(judged::fp32, 8'000); }
TEST_CASE("fp64: crossed patterns and random cases") { judge_format(judged::fp64, 8'000); }

TEST_CASE("fused multiply-add on crossed patterns") {
  Mismatches mismatches;
  for (const JudgedFormat& format : {judged::fp16, judged::bf16, judged::fp32, judged::fp64}) {
    std::vector<std::uint64_t> patterns = crossed_patterns(format.model);
    std::mt19937_64 generator(5);
    std::shuffle(patterns.begin(), patterns.end(), generator);
    patterns.resize(32);
    for (const std::uint64_t special : special_codes(format.model)) patterns.push_back(special);
    const std::array to = {Destination{format, nearest_even}, Destination{format, downward}};
    parallel_for(patterns.size(), 4, 0, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        for (const std::uint64_t y : patterns) {
          for (const std::uint64_t z : patterns) {
            judge_operation(Operation::fma, {format, patterns[i]}, {format, y}, {format, z}, to,
                            mismatches);
          }
        }
      }
    });
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("operands and results of different formats, integers of 64 bits included") {
  Mismatches mismatches;
  constexpr std::array formats = {judged::fp64,  judged::fp32, judged::uint64, judged::int64,
                                  judged::int32, judged::bf16, judged::e4m3,   judged::e8m0};
  std::mt19937_64 generator(6);
  const auto any_format = [&]() -> const JudgedFormat& {
    return formats[generator() % formats.size()];
  };
  for (int i = 0; i < 150'000; ++i) {
    const Operation operation = all_operations[generator() % all_operations.size()];
    const std::array<Operand, 3> operands = {random_operand(any_format(), generator),
                                             random_operand(any_format(), generator),
                                             random_operand(any_format(), generator)};
    const std::array to = {Destination{any_format(), judged_roundings[generator() % 6]}};
    judge_operation(operation, operands[0], operands[1], operands[2], to, mismatches);
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("a product of 128 bits less one of 64 is exact") {
  // (2^63 + 1) (2^64 - 1) - (2^63 - 1) = 2^127, next to which every bit of the product counts.
  const Value x = decode(uint64, 0x8000000000000001);
  const Value y = decode(uint64, 0xFFFFFFFFFFFFFFFF);
  const Value z = {Kind::finite, true, 0, 0x7FFFFFFFFFFFFFFF};
  CHECK(encode(fp64, fused_multiply_add(x, y, z), Rounding::toward_zero) == 0x47E0000000000000);
}

TEST_CASE("quotients and roots have all the bits that stochastic rounding looks at") {
  Mismatches mismatches;
  std::mt19937_64 generator(7);
  for (const JudgedFormat& format : {judged::fp64, judged::fp32, judged::fp16, judged::e4m3}) {
    for (int i = 0; i < 8'000; ++i) {
      const int count = 1 + static_cast<int>(generator() % 32);
      const std::uint64_t drawn = generator() & low_bits(count);
      const std::array to = {
          Destination{format,
                      {"stochastic", Rounding::stochastic, oracle::stochastic(drawn, count)},
                      ieee,
                      {drawn, count}}};
      const Operand x = random_operand(format, generator);
      const Operand y = random_operand(format, generator);
      judge_operation(all_operations[generator() % all_operations.size()], x, y,
                      random_operand(format, generator), to, mismatches);
      judge_operation(Operation::div, x, y, x, to, mismatches);
      judge_operation(Operation::sqrt, x, x, x, to, mismatches);
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("fp16, bf16, fp32 and fp64: 10^7 random cases per operation", "[sweep]") {
  Mismatches mismatches;
  for (const JudgedFormat& format : {judged::fp16, judged::bf16, judged::fp32, judged::fp64}) {
    judge_random_cases(format, 10'000'000, mismatches);
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("fp16, bf16, fp32 and fp64: crossed patterns under all roundings", "[sweep]") {
  Mismatches mismatches;
  for (const JudgedFormat& format : {judged::fp16, judged::bf16, judged::fp32, judged::fp64}) {
    judge_patterns(format, true, mismatches);
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("every pair of FP8 codes under every rounding and policy", "[sweep]") {
  Mismatches mismatches;
  for (const JudgedFormat& format : pair_formats) {
    std::vector<Destination> to;
    for (const JudgedRounding& rounding : judged_roundings) {
      for (const JudgedOverflow& overflow : judged_overflows)
        to.push_back({format, rounding, overflow});
      to.push_back({judged::fp16, rounding});
      to.push_back({judged::e2m1, rounding, saturating});
    }
    judge_pairs(format, format, to, to.size(), mismatches);
  }
  CHECK(mismatches.report() == "");
}

namespace {

void judge_triples(const JudgedFormat& format) {
  Mismatches mismatches;
  const std::array to = {Destination{format, nearest_even}, Destination{format, downward},
                         Destination{judged::fp16, nearest_even}};
  const std::uint64_t codes = code_mask(format.model) + 1;
  parallel_for(codes, 1, 0, [&](std::size_t x, std::size_t) {
    for (std::uint64_t y = 0; y < codes; ++y) {
      for (std::uint64_t z = 0; z < codes; ++z) {
        judge_operation(Operation::fma, {format, x}, {format, y}, {format, z}, to, mismatches);
      }
    }
  });
  CHECK(mismatches.report() == "");
}

}  // namespace

TEST_CASE("fma of every e4m3 triple", "[sweep]") { judge_triples(judged::e4m3); }
TEST_CASE("fma of every e5m2 triple", "[sweep]") { judge_triples(judged::e5m2); }
TEST_CASE("fma of every e4m3fnuz triple", "[sweep]") { judge_triples(judged::e4m3fnuz); }
TEST_CASE("fma of every e5m2fnuz triple", "[sweep]") { judge_triples(judged::e5m2fnuz); }
TEST_CASE("fma of every e2m3 triple") { judge_triples(judged::e2m3); }
TEST_CASE("fma of every e2m1 triple") { judge_triples(judged::e2m1); }

}  // namespace guardbit::formats
