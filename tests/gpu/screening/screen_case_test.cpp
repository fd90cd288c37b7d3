#include "gpu/screening/screen_case.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>

#include "gpu/model/host_model.hpp"
#include "gpu/operands/register_words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

constexpr std::uint64_t seed = 3;

const TensorCoreInstruction& plain(const std::string& name) {
  const TensorCoreInstruction* const instruction = find_plain(name);
  REQUIRE(instruction != nullptr);
  return *instruction;
}

/// One form of each kind of operands and results.
const std::vector<std::string> forms = {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
                                        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                                        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
                                        "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
                                        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
                                        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16",
                                        "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32"};

}  // namespace

TEST_CASE("A screening's expected results are the model's, where the kernel writes them") {
  for (const std::string& name : forms) {
    const TensorCoreInstruction& instruction = plain(name);
    INFO(name);
    const ScreenCase x = make_screen_case(instruction, seed);
    REQUIRE(x.batch.executions * instruction.m >= 64);
    REQUIRE(x.expected.size() == static_cast<std::size_t>(x.operands.images) *
                                     static_cast<std::size_t>(x.layout.d_bytes));
    Batch read(instruction, x.batch.executions);
    unpack_results(instruction, x.layout, x.expected, read);
    REQUIRE(read.d == x.batch.d);
    // Every bit that the kernel compares belongs to an output.
    REQUIRE(x.layout.d.size() * static_cast<std::size_t>(word_bits(instruction.d)) ==
            static_cast<std::size_t>(x.layout.d_bytes) * 8);
  }
}

TEST_CASE("A screening's inputs show every event that its instruction can show") {
  for (const std::string& name : forms) {
    const CaseCoverage covered = coverage_of(make_screen_case(plain(name), seed));
    INFO(name);
    std::string never;
    for (const std::string_view event : covered.never) never += std::string(event) + " ";
    INFO(never);
    CHECK(covered.never.empty());
    REQUIRE(covered.coverage.outputs >= 64 * 8);
  }
}

TEST_CASE("Wide forms have their rows and columns in several registers") {
  int forms_seen = 0;
  for (const bool is_sparse : {false, true})
    for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
      if (instruction.unit != Unit::wgmma || instruction.n != 64 || instruction.sparse != is_sparse)
        continue;
      INFO(instruction.name);
      const ScreenCase x = make_screen_case(instruction, seed);
      Batch again = x.batch;
      std::fill(again.d.begin(), again.d.end(), 0);
      run_on_host_model(catalogue_instruction(instruction), instruction, again);
      REQUIRE(again.d == x.batch.d);
      // A bit that is 0 or 1 in all images hides that it is stuck.
      std::vector<std::byte> zeros(static_cast<std::size_t>(x.layout.d_bytes), std::byte{0xFF}),
          ones = zeros;
      for (std::size_t i = 0; i < x.expected.size(); ++i) {
        zeros[i % zeros.size()] &= ~x.expected[i];
        ones[i % ones.size()] &= x.expected[i];
      }
      int hidden = 0;
      for (std::size_t i = 0; i < zeros.size(); ++i)
        hidden += std::popcount(std::to_integer<unsigned>(zeros[i] | ones[i]));
      CHECK(hidden < 8 * x.layout.d_bytes / 4);
      ++forms_seen;
      break;
    }
  REQUIRE(forms_seen == 2);
}

TEST_CASE("A wrong word of a screening names its output and operands") {
  for (const std::string& name : forms) {
    const TensorCoreInstruction& instruction = plain(name);
    const ScreenCase x = make_screen_case(instruction, seed);
    INFO(name);
    const int lanes = instruction.unit == Unit::wgmma ? 128 : 32, words = x.layout.d_bytes / 4;
    std::set<std::pair<int, int>> seen;
    for (int word = 0; word < words; ++word) {
      const auto lane = static_cast<std::uint32_t>(word / (words / lanes)),
                 in_lane = static_cast<std::uint32_t>(word % (words / lanes));
      for (int bit = 0; bit < 32; bit += 16) {
        const OutputPlace at = wrong_output_at(x, 1, lane, in_lane, 1U << bit);
        REQUIRE(at.execution >= x.layout.executions_per_image);
        REQUIRE(at.row < instruction.m);
        seen.insert({at.execution * instruction.m + at.row, at.column});
        // The model's result stands in that very word.
        const std::uint64_t d =
            x.batch.d[element_index(instruction.m, instruction.n, at.execution, at.row, at.column)];
        std::uint32_t stored = 0;
        std::memcpy(&stored, x.expected.data() + x.layout.d_bytes + word * 4, 4);
        const int width = word_bits(instruction.d);
        const std::uint32_t part = width == 16   ? stored >> bit & 0xFFFFU
                                   : width == 32 ? stored
                                   : static_cast<std::uint32_t>(d >> (word % 2 * 32)) == stored
                                       ? stored
                                       : ~stored;
        REQUIRE(part == (width == 64 ? stored : static_cast<std::uint32_t>(d)));
      }
    }
    REQUIRE(seen.size() == static_cast<std::size_t>(instruction.m * instruction.n *
                                                    x.layout.executions_per_image));
  }
  const ScreenCase x = make_screen_case(plain(forms[0]), seed);
  const std::string text = operands_text(x, {0, 0, 0});
  REQUIRE(text.substr(0, 2) == "a=");
  REQUIRE(std::count(text.begin(), text.end(), ',') == 30);
}
