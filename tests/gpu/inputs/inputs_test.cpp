#include "gpu/inputs/inputs.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "formats/format_catalogue.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "gpu/operands/register_words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

bool same_inputs(const Batch& x, const Batch& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.e == y.e;
}

/// Every seventh instruction, wide ones left out: all units and formats are among them.
std::vector<TensorCoreInstruction> sample() {
  std::vector<TensorCoreInstruction> instructions;
  int at = 0;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions())
    if (instruction.n <= 32 && at++ % 7 == 0) instructions.push_back(instruction);
  return instructions;
}

}  // namespace

TEST_CASE("inputs depend on seed, instruction and execution alone") {
  for (const TensorCoreInstruction& instruction : sample()) {
    INFO(std::string(instruction.name) << " " << std::string(instruction.variant));
    const Batch batch = make_inputs(instruction, 6, 1);
    REQUIRE(same_inputs(batch, make_inputs(instruction, 6, 1)));
    REQUIRE_FALSE(same_inputs(batch, make_inputs(instruction, 6, 2)));
    const Batch fewer = make_inputs(instruction, 4, 1);
    REQUIRE(std::equal(fewer.a.begin(), fewer.a.end(), batch.a.begin()));
    REQUIRE(std::equal(fewer.c.begin(), fewer.c.end(), batch.c.begin()));
    REQUIRE(same_inputs(make_mixed_rows(instruction, 2, 1), make_mixed_rows(instruction, 2, 1)));
    REQUIRE_FALSE(
        same_inputs(make_mixed_rows(instruction, 2, 1), make_mixed_rows(instruction, 2, 2)));
  }
}

TEST_CASE("inputs are codes of their formats and sparse positions are valid") {
  for (const TensorCoreInstruction& instruction : sample()) {
    INFO(std::string(instruction.name) << " " << std::string(instruction.variant));
    for (const Batch& batch : {make_inputs(instruction, 44, 1), make_mixed_rows(instruction, 4, 1),
                               make_small_integers(instruction, 2, 1)}) {
      const auto fits = [](const Format& f) {
        return [f](std::uint64_t word) { return (word & ~word_mask(f)) == 0; };
      };
      REQUIRE(std::all_of(batch.a.begin(), batch.a.end(), fits(instruction.a)));
      REQUIRE(std::all_of(batch.b.begin(), batch.b.end(), fits(instruction.b)));
      REQUIRE(std::all_of(batch.c.begin(), batch.c.end(), fits(instruction.c)));
      if (!instruction.sparse) continue;
      const SparseGroup group = sparse_group(instruction);
      const auto stored = static_cast<std::size_t>(group.stored);
      for (std::size_t at = 0; at < batch.e.size(); at += stored) {
        REQUIRE(batch.e[at] < group.positions);
        if (group.positions == 2) continue;
        const std::uint8_t first = batch.e[at], second = batch.e[at + stored / 2];
        REQUIRE(second < group.positions);
        REQUIRE((instruction.unordered ? first != second : first < second));
      }
    }
  }
}

TEST_CASE("families without specials in their name make finite numbers only") {
  const std::set<InputFamily> with_specials = {InputFamily::raw_bits, InputFamily::one_special,
                                               InputFamily::many_specials, InputFamily::infinities,
                                               InputFamily::nan_payloads};
  for (const TensorCoreInstruction& instruction : sample()) {
    if (is_integer(instruction.a)) continue;
    for (const InputFamilyEntry& entry : generated_families(InputKind::floating)) {
      INFO(std::string(instruction.name) << " " << entry.name);
      const Batch batch = make_family_inputs(instruction, entry.family, 3, 1000, 2);
      const auto all_finite = [](const Format& f, const std::vector<std::uint64_t>& words) {
        return std::all_of(words.begin(), words.end(),
                           [&](std::uint64_t word) { return is_finite(f, word); });
      };
      const bool special = with_specials.count(entry.family) != 0;
      REQUIRE(((all_finite(instruction.a, batch.a) && all_finite(instruction.b, batch.b) &&
                all_finite(instruction.c, batch.c)) ||
               special));
    }
  }
}

TEST_CASE("scales are finite beside finite operands and differ from one another") {
  for (const TensorCoreInstruction& instruction : tensor_core_instructions("sm_120a")) {
    if (instruction.scale.count == 0 || instruction.sparse) continue;
    const Format& f = instruction.scale.format;
    const auto largest = guardbit::formats::max_finite_code(f);
    INFO(std::string(instruction.name));
    bool any_special = false;
    for (const InputFamilyEntry& entry : generated_families(InputKind::floating)) {
      const bool special = entry.family == InputFamily::raw_bits ||
                           entry.family == InputFamily::one_special ||
                           entry.family == InputFamily::many_specials;
      const Batch batch = make_family_inputs(instruction, entry.family, 3, 1000, 16);
      std::set<std::uint64_t> seen;
      int wrong = 0;
      for (const auto* const scales : {&batch.a_scale, &batch.b_scale}) {
        for (const std::uint64_t code : *scales) {
          wrong += code > guardbit::formats::code_mask(f) || (code > largest && !special) ? 1 : 0;
          any_special = any_special || code > largest;
          seen.insert(code);
        }
      }
      REQUIRE(wrong == 0);
      REQUIRE(seen.size() > 4);
    }
    REQUIRE(any_special);
  }
}

TEST_CASE("every family, seed and execution has a stream of its own") {
  const auto instructions = sample();
  for (std::size_t at = 0; at < instructions.size(); at += 3) {
    const TensorCoreInstruction& instruction = instructions[at];
    std::set<std::vector<std::uint64_t>> seen;
    std::size_t count = 0;
    for (const InputFamilyEntry& entry : generated_families(input_kind(instruction))) {
      // Their A and B may be zeros alone.
      if (entry.family == InputFamily::addend_alone || entry.family == InputFamily::exact_zeros)
        continue;
      for (const std::uint64_t seed : {1U, 2U}) {
        for (const std::int64_t t : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 32}) {
          Batch batch = make_family_inputs(instruction, entry.family, seed, t, 1);
          batch.a.insert(batch.a.end(), batch.b.begin(), batch.b.end());
          seen.insert(std::move(batch.a));
          ++count;
        }
      }
    }
    INFO(std::string(instruction.name));
    REQUIRE(seen.size() == count);
  }
}

TEST_CASE("one_special puts at most one special in a row of A, a column of B and an output") {
  const TensorCoreInstruction* const instruction =
      find_plain("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  REQUIRE(instruction != nullptr);
  const Batch batch = make_family_inputs(*instruction, InputFamily::one_special, 1, 0, 20);
  int specials_of_c = 0;
  for (int t = 0; t < batch.executions; ++t) {
    std::vector<int> in_row(16), in_column(8);
    for (int i = 0; i < 16; ++i)
      for (int s = 0; s < 16; ++s)
        in_row.at(static_cast<std::size_t>(i)) +=
            is_finite(instruction->a, batch.a[element_index(16, 16, t, i, s)]) ? 0 : 1;
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j)
        in_column.at(static_cast<std::size_t>(j)) +=
            is_finite(instruction->b, batch.b[element_index(16, 8, t, k, j)]) ? 0 : 1;
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        const int line =
            in_row.at(static_cast<std::size_t>(i)) + in_column.at(static_cast<std::size_t>(j));
        const bool finite = is_finite(instruction->c, batch.c[element_index(16, 8, t, i, j)]);
        specials_of_c += finite ? 0 : 1;
        REQUIRE((finite || line == 0));
      }
    for (const int count : in_row) REQUIRE(count <= 1);
    for (const int count : in_column) REQUIRE(count <= 1);
  }
  REQUIRE(specials_of_c > 100);
}

// One element is computed at compile time: nothing but its indices decides it.
static_assert(a_word(InputShape{}, InputFamily::raw_bits, 1, 2, 0, 0) == 0);

TEST_CASE("mixed rows hold specials, zeros of both signs, subnormals and the ends of the range") {
  for (const TensorCoreInstruction& instruction : sample()) {
    if (is_integer(instruction.a) || instruction.ignore_c) continue;
    INFO(std::string(instruction.name) << " " << std::string(instruction.variant));
    const auto count = static_cast<int>(mixed_families(instruction).size());
    const Batch batch =
        make_mixed_rows(instruction, (count + instruction.m - 1) / instruction.m, 20261120);
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
    REQUIRE(kinds_among(instruction.c, batch.c) == all);
    const std::set<std::string> of_a = kinds_among(instruction.a, batch.a);
    for (const char* kind : {"NaN", "zero", "negative zero"}) REQUIRE(of_a.count(kind) == 1);
    REQUIRE(of_a.count("infinity") == (has_infinity(instruction.a) ? 1 : 0));
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
