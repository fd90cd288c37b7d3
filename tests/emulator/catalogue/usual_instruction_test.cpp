#include "emulator/catalogue/usual_instruction.hpp"

#include <string>

#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using emulator::MatrixInstruction;
using emulator::usual_instruction;
using formats::fp16, formats::fp32;

std::string name_of(const std::optional<MatrixInstruction>& instruction) {
  return instruction ? std::string(std::string_view(instruction->name)) : "none";
}

TEST_CASE("the usual instruction is the newest unit's with the longest K") {
  const emulator::ProductFormats half = {fp16, fp16, fp32};
  CHECK(name_of(usual_instruction("sm_75", half)) ==
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
  CHECK(name_of(usual_instruction("sm_80", half)) ==
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  // Hopper has mma.sync with a K as long.
  CHECK(name_of(usual_instruction("sm_90", half)) ==
        "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16");
  CHECK(usual_instruction("sm_100", half)->family == emulator::Family::tcgen05);
  CHECK(usual_instruction("cdna3", half)->family == emulator::Family::mfma);
  CHECK(name_of(usual_instruction("rdna3", half)) == "v_wmma_f32_16x16x16_f16");
  CHECK(name_of(usual_instruction("rdna4", half)) == "v_wmma_f32_16x16x16_f16_w32");
  CHECK(name_of(usual_instruction("sm_90", {formats::e3m2, formats::e3m2, fp32})) == "none");
}

TEST_CASE("the usual instruction has no block scales unless they are asked for") {
  const emulator::ProductFormats fp8 = {formats::e4m3, formats::e4m3, fp32};
  CHECK(usual_instruction("sm_100", fp8)->scale.count == 0);
  const auto scaled = usual_instruction("sm_100", fp8, emulator::newest_toolkit,
                                        [](const MatrixInstruction& instruction) {
                                          return instruction.scale.format == formats::e8m0;
                                        });
  REQUIRE(scaled);
  CHECK(scaled->scale.count * 32 == scaled->shape.k);
}

TEST_CASE("a sparse family has the rank of its dense one") {
  using emulator::Family, emulator::usual_rank;
  CHECK(usual_rank(Family::mma_sp) == usual_rank(Family::mma));
  CHECK(usual_rank(Family::wgmma_sp) == usual_rank(Family::wgmma));
  CHECK(usual_rank(Family::tcgen05_sp) == usual_rank(Family::tcgen05));
  CHECK(usual_rank(Family::wgmma) < usual_rank(Family::mma));
  CHECK(usual_rank(Family::mma) < usual_rank(Family::wmma));
  CHECK(usual_rank(Family::amx) < usual_rank(Family::avx));
}

}  // namespace
