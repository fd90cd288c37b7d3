#include "gpu/inputs.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "formats/catalogue.hpp"
#include "gpu/words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

bool same_inputs(const Batch& x, const Batch& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.e == y.e;
}

/// Every third instruction, wide ones left out: all units and formats are among them.
std::vector<TensorCoreInstruction> sample() {
  std::vector<TensorCoreInstruction> rows;
  int at = 0;
  for (const TensorCoreInstruction& row : tensor_core_instructions())
    if (row.n <= 32 && at++ % 3 == 0) rows.push_back(row);
  return rows;
}

}  // namespace

TEST_CASE("inputs depend on seed, instruction and execution alone") {
  for (const TensorCoreInstruction& row : sample()) {
    INFO(std::string(row.name) << " " << std::string(row.variant));
    const Batch batch = make_inputs(row, 6, 1);
    REQUIRE(same_inputs(batch, make_inputs(row, 6, 1)));
    REQUIRE_FALSE(same_inputs(batch, make_inputs(row, 6, 2)));
    const Batch fewer = make_inputs(row, 4, 1);
    REQUIRE(std::equal(fewer.a.begin(), fewer.a.end(), batch.a.begin()));
    REQUIRE(std::equal(fewer.c.begin(), fewer.c.end(), batch.c.begin()));
    REQUIRE(same_inputs(make_mixed_tiles(row, 2, 1), make_mixed_tiles(row, 2, 1)));
    REQUIRE_FALSE(same_inputs(make_mixed_tiles(row, 2, 1), make_mixed_tiles(row, 2, 2)));
  }
}

TEST_CASE("inputs are codes of their formats and sparse positions are valid") {
  for (const TensorCoreInstruction& row : sample()) {
    INFO(std::string(row.name) << " " << std::string(row.variant));
    for (const Batch& batch :
         {make_inputs(row, 44, 1), make_mixed_tiles(row, 4, 1), make_small_integers(row, 2, 1)}) {
      const auto fits = [](const Format& f) {
        return [f](std::uint64_t word) { return (word & ~word_mask(f)) == 0; };
      };
      REQUIRE(std::all_of(batch.a.begin(), batch.a.end(), fits(row.a)));
      REQUIRE(std::all_of(batch.b.begin(), batch.b.end(), fits(row.b)));
      REQUIRE(std::all_of(batch.c.begin(), batch.c.end(), fits(row.c)));
      if (!row.sparse) continue;
      const SparseGroup group = sparse_group(row);
      const auto stored = static_cast<std::size_t>(group.stored);
      for (std::size_t at = 0; at < batch.e.size(); at += stored) {
        REQUIRE(batch.e[at] < group.positions);
        if (group.positions == 2) continue;
        const std::uint8_t first = batch.e[at], second = batch.e[at + stored / 2];
        REQUIRE(second < group.positions);
        REQUIRE((row.unordered ? first != second : first < second));
      }
    }
  }
}

TEST_CASE("mixed tiles hold specials, zeros of both signs, subnormals and the ends of the range") {
  for (const TensorCoreInstruction& row : sample()) {
    if (is_integer(row.a) || row.ignore_c) continue;
    INFO(std::string(row.name) << " " << std::string(row.variant));
    const auto count = static_cast<int>(mixed_families(row).size());
    const Batch batch = make_mixed_tiles(row, (count + row.m - 1) / row.m, 20261120);
    const auto kinds_among = [](const Format& f, const std::vector<std::uint64_t>& words) {
      std::set<std::string> kinds;
      for (const std::uint64_t word : words) {
        const std::uint64_t magnitude = word & (sign_bit(f) - 1);
        if (magnitude == 0) kinds.insert(word == 0 ? "zero" : "negative zero");
        if (!is_finite(f, word)) kinds.insert(magnitude == infinity_word(f) ? "infinity" : "NaN");
        if (magnitude != 0 && magnitude <= word_fraction_mask(f)) kinds.insert("subnormal");
        if (is_finite(f, word) && magnitude >= largest_finite_word(f) >> 1U) kinds.insert("large");
      }
      return kinds;
    };
    const std::set<std::string> all = {"infinity", "NaN",           "large",
                                       "zero",     "negative zero", "subnormal"};
    REQUIRE(kinds_among(row.c, batch.c) == all);
    const std::set<std::string> of_a = kinds_among(row.a, batch.a);
    for (const char* kind : {"NaN", "zero", "negative zero"}) REQUIRE(of_a.count(kind) == 1);
    REQUIRE(of_a.count("infinity") == (has_infinity(row.a) ? 1 : 0));
  }
}

TEST_CASE("words of values round toward zero, stop at the largest finite one and come back") {
  using namespace guardbit::formats;
  REQUIRE(word_of(fp16, 1) == 0x3C00);
  REQUIRE(word_of(fp16, -1.99999L) == 0xBFFF);
  REQUIRE(word_of(fp16, 1e9L) == 0x7BFF);
  REQUIRE(word_of(tf32, 1) == 0x3F800000);
  REQUIRE(word_of(e4m3, 480) == 0x7E);
  REQUIRE(word_of(int8, -3) == 0xFD);
  REQUIRE(word_of(fp32, -0.0L) == 0x80000000);
  for (const Format& f : {fp16, bf16, e4m3, e5m2, int8, uint8, int4, uint4})
    for (std::uint64_t code = 0; code <= word_mask(f); ++code)
      if (is_integer(f) || is_finite(f, code)) REQUIRE(word_of(f, value_of(f, code)) == code);
  REQUIRE(value_of(tf32, 0x3F801FFF) == 1);     // the low 13 bits are ignored
  REQUIRE(compose(e4m3, false, 8, 7) == 0x7E);  // not the NaN
  REQUIRE(compose(bf16, true, -133, 0) == 0x8001);
}
