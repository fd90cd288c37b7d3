#include "emulator/chain.hpp"

#include <string>
#include <vector>

#include "emulator/catalogue.hpp"
#include "emulator/dot.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/input_codes.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;

std::vector<std::byte> random_codes(const Format& f, std::int64_t count, Random& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * formats::container_bits(f) / 8));
  const emulator::Codes codes = emulator::codes_of(f, bytes.data());
  for (std::int64_t i = 0; i < count; ++i)
    codes.set(i, code_between(f, -3, 3, random) << formats::container_shift(f));
  return bytes;
}

/// One output of a chain, execution by execution, by the model.
std::uint64_t chained(const MatrixInstruction& row, const emulator::MatrixBatch& x, std::int64_t t,
                      int i, int j) {
  const emulator::Shape& s = x.shape;
  std::uint64_t c = x.c[(t * s.m + i) * s.n + j];
  for (int begin = 0; begin < s.k; begin += row.shape.k) {
    std::vector<std::uint64_t> a, b;
    for (int k = begin; k < begin + row.shape.k; ++k) {
      a.push_back(k < s.k ? x.a[(t * s.m + i) * s.k + k] : 0);
      b.push_back(k < s.k ? x.b[(t * s.k + k) * s.n + j] : 0);
    }
    c = emulator::dot(row, {a, b, c});
  }
  return c;
}

}  // namespace

TEST_CASE("a chain over any K is the model's executions one after the other") {
  struct Case {
    const char *arch, *name;
  };
  for (const Case& x : {Case{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
                        Case{"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
                        Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
                        Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
                        Case{"cdna3", "v_mfma_f32_16x16x16_f16"}}) {
    CAPTURE(x.name);
    const MatrixInstruction row = emulator::require_instruction(x.arch, x.name, "test");
    Random random(3);
    for (const int k : {1, row.shape.k, 2 * row.shape.k + 3}) {
      emulator::MatrixBatch batch;
      batch.count = 2;
      batch.shape = {5, 3, k};
      const auto a = random_codes(row.a, 2 * 5 * k, random);
      const auto b = random_codes(row.b, 2 * k * 3, random);
      const auto c = random_codes(row.c, 2 * 5 * 3, random);
      std::vector<std::byte> d(c.size());
      batch.a = emulator::codes_of(row.a, a.data());
      batch.b = emulator::codes_of(row.b, b.data());
      batch.c = emulator::codes_of(row.c, c.data());
      batch.d = emulator::codes_of(row.d, d.data());
      emulator::run_chain(emulator::require_engine("auto", row), row, batch, 1, "test");
      const auto got = emulator::codes_of(row.d, static_cast<const std::byte*>(d.data()));
      int wrong = 0;
      for (int t = 0; t < 2; ++t)
        for (int i = 0; i < 5; ++i)
          for (int j = 0; j < 3; ++j)
            wrong += got[(t * 5 + i) * 3 + j] != chained(row, batch, t, i, j) ? 1 : 0;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("what cannot be chained is refused with the reason") {
  const auto refusal = [](const char* arch, const char* name, int k) {
    try {
      emulator::require_chain(emulator::require_instruction(arch, name, "test"), k, "test");
    } catch (const formats::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const char* const mixed = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16";
  CHECK(refusal("sm_70", mixed, 4).empty());
  CHECK(refusal("sm_70", mixed, 5).find("cannot be chained") != std::string::npos);
  CHECK(refusal("sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 0).find("K") !=
        std::string::npos);
  CHECK(
      refusal("sm_90", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 32).find("sparse") !=
      std::string::npos);
}

}  // namespace guardbit::tests
