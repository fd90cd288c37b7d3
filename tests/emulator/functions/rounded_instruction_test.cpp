#include "emulator/functions/rounded_instruction.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_digest.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {
namespace {

using emulator::drawn_operands;
using emulator::rounded_instructions;
using emulator::RoundedInstruction;

const RoundedInstruction& named(const std::string& name) {
  const auto& all = rounded_instructions();
  const auto found = std::ranges::find(all, name, &emulator::NamedInstruction::name);
  REQUIRE(found != all.end());
  return found->instruction;
}

TEST_CASE("instructions that round once are those that ptxas takes") {
  std::ifstream file(in_source("tests/golden/functions/ptx_names.txt"));
  std::vector<std::string> accepted, known;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') accepted.push_back(line);
  for (const auto& [name, instruction] : rounded_instructions()) known.push_back(name);
  std::ranges::sort(accepted);
  std::ranges::sort(known);
  CHECK(known == accepted);
}

/// The host's FP32 and FP64, which round to nearest even.
template <class Number, class Word>
void compare_with_host(const char* type, const formats::Format& format) {
  const auto of = [](std::uint64_t code) { return std::bit_cast<Number>(static_cast<Word>(code)); };
  const auto instruction = [&](const char* operation) {
    return named(std::string(operation) + ".rn" + type);
  };
  const auto check = [&](const char* operation, std::uint64_t result, Number host) {
    INFO(operation << type);
    if (std::isnan(host)) {
      REQUIRE(std::isnan(of(result)));
    } else {
      REQUIRE(result == std::bit_cast<Word>(host));
    }
  };
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto codes = drawn_operands(format, i);
    const Number x = of(codes[0]), y = of(codes[1]), z = of(codes[2]);
    check("add", evaluate(instruction("add"), codes), x + y);
    check("sub", evaluate(instruction("sub"), codes), x - y);
    check("mul", evaluate(instruction("mul"), codes), x * y);
    check("div", evaluate(instruction("div"), codes), x / y);
    check("fma", evaluate(instruction("fma"), codes), std::fma(x, y, z));
    check("rcp", evaluate(instruction("rcp"), codes), Number{1} / x);
    check("sqrt", evaluate(instruction("sqrt"), codes), std::sqrt(x));
  }
}

TEST_CASE("instructions that round to nearest give the host's results") {
  compare_with_host<float, std::uint32_t>(".f32", formats::fp32);
  compare_with_host<double, std::uint64_t>(".f64", formats::fp64);
}

TEST_CASE("directed instructions enclose the exact result") {
  for (const std::string type : {".f32", ".f64"}) {
    for (const std::string operation : {"add", "mul", "fma", "div"}) {
      const auto with = [&](const char* rounding) { return named(operation + rounding + type); };
      const RoundedInstruction nearest = with(".rn"), down = with(".rm"), up = with(".rp"),
                               cut = with(".rz");
      for (std::uint64_t i = 0; i < 4000; ++i) {
        const auto codes = drawn_operands(nearest.format, i);
        const std::uint64_t n = evaluate(nearest, codes), d = evaluate(down, codes),
                            u = evaluate(up, codes), z = evaluate(cut, codes);
        const auto magnitude = [&](std::uint64_t x) {
          return x & formats::magnitude_mask(nearest.format);
        };
        INFO(operation << type << " " << i);
        REQUIRE((n == d || n == u));
        REQUIRE((z == d || z == u));
        REQUIRE(magnitude(z) == std::min(magnitude(d), magnitude(u)));
      }
    }
  }
}

TEST_CASE("suffixes flush, limit and fill") {
  const auto result = [](const char* name, std::uint64_t x, std::uint64_t y, std::uint64_t z = 0) {
    return evaluate(named(name), {x, y, z, 0});
  };
  CHECK(result("add.ftz.f32", 0x00000001, 0x3f800000) == 0x3f800000);
  CHECK(result("mul.ftz.f32", 0x80800000, 0x3f000000) == 0x80000000);
  CHECK(result("mul.f32", 0x80800000, 0x3f000000) == 0x80400000);
  CHECK(result("add.sat.f32", 0x7fffffff, 0) == 0);
  CHECK(result("add.sat.f32", 0x40000000, 0) == 0x3f800000);
  CHECK(result("add.sat.f16", 0xc000, 0) == 0);
  CHECK(result("fma.rn.relu.f16", 0xbc00, 0x3c00, 0x3800) == 0);
  CHECK(result("fma.rn.relu.f16", 0x3c00, 0x3c00, 0x3c00) == 0x4000);
  CHECK(result("add.f16", 0x7c01, 0) == 0x7fff);
  CHECK(result("add.rm.f64", 0x3ff0000000000000, 0xbff0000000000000) == 0x8000000000000000);
  // Recorded on an H200, as are the NaNs below. Only a factor that is 0x7ff7 of either sign counts.
  CHECK(result("fma.rn.oob.f16", 0x7ff7, 0x3c00, 0x3c00) == 0);
  CHECK(result("fma.rn.oob.f16", 0x3c00, 0xfff7, 0x7e00) == 0);
  CHECK(result("fma.rn.oob.relu.bf16", 0x7ff7, 0x7fff, 0x3f80) == 0);
  CHECK(result("fma.rn.oob.f16", 0x7fff, 0x3c00, 0x3c00) == 0x7fff);
  CHECK(result("fma.rn.oob.f16", 0x3c00, 0x3c00, 0x7ff7) == 0x7fff);
}

TEST_CASE("of several NaNs of FP64 the second operand's is given, then the third's") {
  constexpr std::uint64_t x = 0x7ff0000000000102, y = 0xfff4000000000203, z = 0x7ff8000000000300,
                          one = 0x3ff0000000000000, quiet = 0x0008000000000000;
  const auto result = [](const char* name, std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
    return evaluate(named(name), {a, b, c, 0});
  };
  for (const char* name : {"add.f64", "sub.rz.f64", "mul.rp.f64"}) {
    INFO(name);
    CHECK(result(name, x, y) == (y | quiet));
    CHECK(result(name, x, one) == (x | quiet));
  }
  CHECK(result("div.rn.f64", x, y) == (x | quiet));
  CHECK(result("fma.rn.f64", x, y, z) == (y | quiet));
  CHECK(result("fma.rn.f64", x, one, z) == z);
  CHECK(result("fma.rm.f64", x, one, one) == (x | quiet));
}

/// What `guardbit gpu validate --functions` reports of the device's results: of numbered inputs,
/// which are the codes of what has one operand of at most 32 bits, else drawn ones.
std::uint64_t digest_of(const RoundedInstruction& i, std::uint64_t inputs) {
  const bool takes_codes = operands_of(i.operation) == 1 && formats::bits(i.format) <= 32;
  std::uint64_t total = 0;
  std::mutex mutex;
  formats::parallel_for(inputs, 1 << 14, 0, [&](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t number = begin; number < end; ++number) {
      const auto operands =
          takes_codes ? std::array<std::uint64_t, 4>{number} : drawn_operands(i.format, number);
      const std::uint64_t result = evaluate(i, operands);
      sum += emulator::function_digest_share(number,
                                             static_cast<std::uint32_t>(result >> 32 ^ result));
    }
    const std::lock_guard lock(mutex);
    total += sum;
  });
  return total;
}

/// Holds every instruction to the digest of that key in the recording, which is of so many inputs,
/// or with 0 of all that were recorded.
void compare_with_recorded(const char* key, std::uint64_t inputs) {
  std::ifstream file(in_source("tests/golden/functions/rounded_instructions.json"));
  const nlohmann::json recording = nlohmann::json::parse(file);
  std::size_t found = 0;
  for (const nlohmann::json& row : recording.at("functions")) {
    const auto name = row.at("function").get<std::string>();
    INFO(name);
    const auto text = row.at(key).get<std::string>();
    std::uint64_t recorded = 0;
    std::from_chars(text.data(), text.data() + text.size(), recorded, 16);
    CHECK(digest_of(named(name), inputs != 0 ? inputs : row.at("inputs").get<std::uint64_t>()) ==
          recorded);
    ++found;
  }
  CHECK(found == rounded_instructions().size());
}

TEST_CASE("instructions that round once give the hardware's results, in part") {
  compare_with_recorded("first_digest", 1 << 14);
}

TEST_CASE("instructions that round once give the hardware's results for all recorded operands",
          "[sweep]") {
  compare_with_recorded("digest", 0);
}

/// Those of one FP32 operand are recorded over all codes.
bool is_drawn(const RoundedInstruction& i) {
  return operands_of(i.operation) > 1 || i.format == formats::fp64;
}

/// An instruction with one fact changed.
std::vector<RoundedInstruction> mutants(const RoundedInstruction& of) {
  std::vector<RoundedInstruction> all;
  const auto mutated = [&](const auto& change) {
    RoundedInstruction other = of;
    change(other);
    all.push_back(other);
  };
  using formats::Rounding;
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::nearest_away,
                                  Rounding::toward_zero, Rounding::downward, Rounding::upward})
    if (rounding != of.rounding) mutated([&](auto& i) { i.rounding = rounding; });
  for (const auto limit :
       {emulator::ResultLimit::none, emulator::ResultLimit::sat, emulator::ResultLimit::relu})
    if (limit != of.limit) mutated([&](auto& i) { i.limit = limit; });
  mutated([](auto& i) { i.flushes = !i.flushes; });
  mutated([](auto& i) { i.takes_out_of_bounds = !i.takes_out_of_bounds; });
  return all;
}

/// Whether one of the first drawn operands has another result.
bool is_noticed(const RoundedInstruction& of, const RoundedInstruction& mutant) {
  for (std::uint64_t i = 0; i < 1 << 14; ++i) {
    const auto operands = drawn_operands(of.format, i);
    if (evaluate(of, operands) != evaluate(mutant, operands)) return true;
  }
  return false;
}

/// Mutants that are the same function: of what is not negative, down is toward zero; no reciprocal
/// and no root ties; a NaN is 0 by .sat, too.
bool is_same_function(const RoundedInstruction& of, const RoundedInstruction& mutant) {
  using emulator::RoundedOperation;
  using formats::Rounding;
  const auto is_one_of = [&](Rounding x, Rounding y) {
    return (of.rounding == x && mutant.rounding == y) || (of.rounding == y && mutant.rounding == x);
  };
  const bool never_ties = (of.operation == RoundedOperation::div && of.flushes) ||
                          of.operation == RoundedOperation::rcp ||
                          of.operation == RoundedOperation::sqrt;
  const bool is_same_fill = of.limit == emulator::ResultLimit::sat && mutant.limit == of.limit &&
                            of.takes_out_of_bounds != mutant.takes_out_of_bounds;
  const bool is_positive =
      of.limit != emulator::ResultLimit::none || of.operation == RoundedOperation::sqrt;
  return (is_positive && is_one_of(Rounding::toward_zero, Rounding::downward)) ||
         (never_ties && is_one_of(Rounding::nearest_even, Rounding::nearest_away)) || is_same_fill;
}

TEST_CASE("every fact of an instruction that rounds once is noticed by drawn operands") {
  for (const auto& [name, instruction] : rounded_instructions()) {
    // Packed forms and mad are the same instructions.
    if (!is_drawn(instruction) || name.ends_with("x2") || name.starts_with("mad")) continue;
    for (const RoundedInstruction& mutant : mutants(instruction)) {
      INFO(name << ": rounding " << static_cast<int>(mutant.rounding) << ", limit "
                << static_cast<int>(mutant.limit) << ", flushes " << mutant.flushes << ", oob "
                << mutant.takes_out_of_bounds);
      CHECK(is_noticed(instruction, mutant) == !is_same_function(instruction, mutant));
    }
  }
}

}  // namespace
}  // namespace guardbit::tests
