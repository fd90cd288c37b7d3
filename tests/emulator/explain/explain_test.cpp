#include "emulator/explain/explain.hpp"

#include <array>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using emulator::Explanation;
using emulator::MatrixInstruction;

MatrixInstruction instruction_of(std::string_view arch, std::string_view name) {
  const auto instruction = emulator::find_instruction(arch, name);
  REQUIRE(instruction.has_value());
  return *instruction;
}

/// Explains a 1 x 1 dot product of the given codes.
Explanation explain_dot(const MatrixInstruction& instruction, std::vector<std::uint64_t> a,
                        std::vector<std::uint64_t> b, std::uint64_t c,
                        std::vector<std::uint8_t> e = {}) {
  emulator::MatrixBatch batch;
  const int k =
      instruction.sparsity.group_elements == 0 ? static_cast<int>(a.size()) : instruction.shape.k;
  a.resize(static_cast<std::size_t>(emulator::stored_k(instruction, k)));
  b.resize(static_cast<std::size_t>(k));
  batch.count = 1;
  batch.shape = {1, 1, k};
  const auto pack = [](const formats::Format& f, const std::vector<std::uint64_t>& codes) {
    return formats::tensor_of_codes("", f, formats::Packing::container,
                                    {static_cast<std::int64_t>(codes.size())}, codes);
  };
  const formats::Tensor ta = pack(instruction.a, a), tb = pack(instruction.b, b),
                        tc = pack(instruction.c, {c});
  e.resize(a.size());
  batch.a = emulator::codes_of(instruction.a, ta.bytes.data());
  batch.b = emulator::codes_of(instruction.b, tb.bytes.data());
  batch.c = emulator::codes_of(instruction.c, tc.bytes.data());
  const std::byte* const positions = reinterpret_cast<const std::byte*>(e.data());
  batch.e = emulator::codes_of(formats::uint8, positions);
  return emulator::explain(instruction, batch, 0, 0, 0);
}

bool mentions(const Explanation& explanation, const std::string& text) {
  for (const std::string& line : emulator::explanation_lines(explanation)) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("a fused block shows its exponent, its grid and what each term lost") {
  const auto instruction =
      instruction_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  // 2^13 * 2^10, then 1.5 * 2^-3: E = 23 and the grid is 2^-2, so that the second term is cut to
  // zero.
  const Explanation x = explain_dot(instruction, {0x7000, 0x3E00}, {0x6400, 0x3000}, 0x3F800000);
  REQUIRE(x.blocks.size() == 1);
  const emulator::ExplainedBlock& block = x.blocks[0];
  REQUIRE(block.alignment.has_value());
  CHECK(block.alignment->exponent == 23);
  CHECK(block.alignment->grid == -2);
  REQUIRE(block.largest.size() == 2);
  CHECK(formats::to_string(block.largest[0].value) == "8388608");
  CHECK(formats::to_string(block.largest[0].cut) == "0");
  CHECK(formats::to_string(block.largest[1].value) == "0.1875");
  CHECK(formats::to_string(block.largest[1].cut) == "0.1875");
  CHECK(block.terms_cut == 1);
  CHECK(formats::to_string(block.exact_sum) == "8388609.1875");
  CHECK(formats::to_string(*block.kept_sum) == "8388609");
  CHECK(x.result == 0x4B000001);
  CHECK(mentions(x, "E = 23, grid 2^-2 (F = 25), 1 term cut"));
}

TEST_CASE("products stand at their k, also in sparse instructions and compositions") {
  const auto sparse =
      instruction_of("sm_90", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
  std::vector<std::uint64_t> b(32, 0);
  b[7] = 0x4000;  // stored value 3 stands for position 3 of the second group
  const Explanation x = explain_dot(sparse, {0, 0, 0, 0x3C00}, b, 0, {0, 1, 2, 3});
  CHECK(x.result == 0x40000000);
  REQUIRE(x.blocks.at(0).largest.size() == 1);
  CHECK(x.pairs.at(x.blocks[0].largest[0].pairs.at(0)).k == 7);

  const auto fp8 = instruction_of("sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32");
  std::vector<std::uint64_t> ones(32, 0x38);
  const Explanation y = explain_dot(fp8, ones, ones, 0x3F800000);
  REQUIRE(y.blocks.size() == 2);
  CHECK(y.blocks[0].first_k == 0);
  CHECK(y.blocks[0].last_k == 29);
  CHECK(y.blocks[1].first_k == 2);
  CHECK(y.blocks[1].last_k == 31);
  REQUIRE(y.steps.size() == 3);
  CHECK(y.steps[0].result.code == 0x41800000);  // 16
  CHECK(y.steps[1].result.code == 0x42000000);  // 32
  CHECK(y.steps[2].result.code == y.result);
  CHECK(y.result == 0x42040000);  // 33
}

TEST_CASE("a chain shows the step that rounded most") {
  const auto instruction =
      instruction_of("sm_90", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  // 1 + 2^-54 rounds to 1; then 3 * 2^-55 is lost as well, and more of it.
  const Explanation x = explain_dot(instruction, {0x3C90000000000000, 0x3C98000000000000},
                                    {0x3FF0000000000000, 0x3FF0000000000000}, 0x3FF0000000000000);
  REQUIRE(x.blocks.at(0).worst.has_value());
  CHECK(x.pairs.at(x.blocks[0].worst->pair).k == 1);
  CHECK(x.blocks[0].worst->error.negative);
  CHECK(x.result == 0x3FF0000000000000);
}

TEST_CASE("an integer sum shows the exact total before it wraps") {
  const auto instruction =
      instruction_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32");
  const Explanation x = explain_dot(instruction, {1}, {1}, 0x7FFFFFFF);
  CHECK(formats::to_string(x.blocks.at(0).exact_sum) == "2147483648");
  CHECK(x.result == 0x80000000);
  CHECK(mentions(x, "wrapped modulo 2^32"));
}

TEST_CASE("an infinity is named as what decides") {
  const auto instruction =
      instruction_of("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  const Explanation x = explain_dot(instruction, {0x3C00, 0x7C00}, {0x3C00, 0}, 0);
  REQUIRE(x.blocks.at(0).special);
  CHECK(x.pairs.at(x.blocks[0].special_pair.value()).k == 1);
  CHECK(x.result == 0x7FFFFFFF);
  CHECK(mentions(x, "the product at k=1 is an infinity or NaN"));
}

TEST_CASE(
    "every instruction of the catalogue can be explained, and the explanation ends in the model's result") {
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.scale.count != 0) continue;  // explain_dot gives no scales
    const std::uint64_t one =
        formats::encode(instruction.a, formats::Value{formats::Kind::finite, false, 0, 1});
    const std::uint64_t other =
        formats::encode(instruction.b, formats::Value{formats::Kind::finite, false, 0, 1});
    const auto k = static_cast<std::size_t>(instruction.shape.k);
    const Explanation x = explain_dot(instruction, std::vector<std::uint64_t>(k, one),
                                      std::vector<std::uint64_t>(k, other), 0);
    INFO(instruction.arch << " " << std::string_view(instruction.name));
    REQUIRE(x.steps.size() == static_cast<std::size_t>(instruction.steps.count));
    CHECK(x.steps.back().result.code == x.result);
    CHECK_FALSE(emulator::explanation_lines(x).empty());
    CHECK(emulator::operand_lines(x).size() > 1);
  }
}

}  // namespace
