#include "gpu/operands/tcgen05_descriptors.hpp"

#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu::tcgen05;
namespace formats = guardbit::formats;

constexpr Operation f16 = {
    .kind = Kind::f16, .a = formats::fp16, .b = formats::fp16, .d = formats::fp32, .m = 64, .n = 8};

/// The operation with one change.
template <class Change>
Operation changed(Operation x, Change change) {
  change(x);
  return x;
}

}  // namespace

// Each value is the sum of the fields in the comment, added by hand from PTX ISA, Tables 42 to 44.
TEST_CASE("tcgen05 instruction descriptors without block scales have their fields in place") {
  // D F32 0x10, N/8 = 1 at 17, M/16 = 4 at 24
  STATIC_REQUIRE(instruction_descriptor(f16) == 0x04020010);
  // D F32, A BF16 0x80, B BF16 0x400, N/8 = 16 at 17, M/16 = 8 at 24
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::f16,
                                         .a = formats::bf16,
                                         .b = formats::bf16,
                                         .d = formats::fp32,
                                         .m = 128,
                                         .n = 128}) == 0x08200490);
  // D F16 0, A M-major 0x8000, B N-major 0x10000, N/8 = 32, M/16 = 8
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::f16,
                                         .a = formats::fp16,
                                         .b = formats::fp16,
                                         .d = formats::fp16,
                                         .m = 128,
                                         .n = 256,
                                         .a_m_major = true,
                                         .b_n_major = true}) == 0x08418000);
  // selector 1, sparse 4, D F32, A TF32 0x100, B TF32 0x800, negate A 0x2000
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::tf32,
                                         .a = formats::tf32,
                                         .b = formats::tf32,
                                         .d = formats::fp32,
                                         .m = 64,
                                         .n = 8,
                                         .sparse = true,
                                         .negate_a = true,
                                         .sparsity_selector = 1}) == 0x04022915);
  // D F16 0, A E3M2 4 at 7, B E2M3 3 at 10, N/8 = 2
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::f8f6f4,
                                         .a = formats::e3m2,
                                         .b = formats::e2m3,
                                         .d = formats::fp16,
                                         .m = 128,
                                         .n = 16}) == 0x08040E00);
  // saturate 8, D S32 0x20, A signed 0x80, B unsigned 0, N/8 = 4
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::i8,
                                         .a = formats::int8,
                                         .b = formats::uint8,
                                         .d = formats::int32,
                                         .m = 64,
                                         .n = 32,
                                         .saturate = true}) == 0x040800A8);
}

TEST_CASE("tcgen05 instruction descriptors with block scales have their fields in place") {
  // sparse 4, A E5M2 0x80, B E2M1 5 at 10, negate B 0x4000, N/8 = 32, UE8M0 at 23, M/128 at 27
  STATIC_REQUIRE(instruction_descriptor({.kind = Kind::mxf8f6f4,
                                         .a = formats::e5m2,
                                         .b = formats::e2m1,
                                         .d = formats::fp32,
                                         .m = 128,
                                         .n = 256,
                                         .sparse = true,
                                         .negate_b = true}) == 0x08C05484);
  // A and B E2M1 1 at 7 and 10, N/8 = 2, UE4M3 0, M/128 at 27
  constexpr Operation nvf4 = {.kind = Kind::mxf4nvf4,
                              .a = formats::e2m1,
                              .b = formats::e2m1,
                              .d = formats::fp32,
                              .m = 128,
                              .n = 16,
                              .scale = formats::ue4m3};
  STATIC_REQUIRE(instruction_descriptor(nvf4) == 0x08040480);
  REQUIRE(instruction_descriptor(changed(nvf4, [](Operation& x) { x.scale = formats::e8m0; })) ==
          0x08840480);
}

TEST_CASE("tcgen05 operations that PTX does not have are not valid") {
  STATIC_REQUIRE(is_valid(f16));
  const auto accepts = [](auto change) { return is_valid(changed(f16, change)); };
  REQUIRE(accepts([](Operation& x) { x.d = formats::fp16; }));
  REQUIRE(accepts([](Operation& x) { x.b_n_major = x.negate_a = true; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.a = x.b = formats::bf16, x.d = formats::fp16; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.a = formats::tf32; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.m = 32; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.n = 12; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.n = 264; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.saturate = true; }));
  REQUIRE_FALSE(accepts([](Operation& x) { x.sparsity_selector = 1; }));

  const auto accepts_int8 = [](auto change) {
    const Operation i8 = {.kind = Kind::i8,
                          .a = formats::int8,
                          .b = formats::int8,
                          .d = formats::int32,
                          .m = 128,
                          .n = 16};
    return is_valid(changed(i8, change));
  };
  REQUIRE(accepts_int8([](Operation& x) { x.n = 24; }));
  REQUIRE(accepts_int8([](Operation& x) { x.b_n_major = true; }));
  REQUIRE_FALSE(accepts_int8([](Operation& x) { x.n = 40; }));
  REQUIRE_FALSE(accepts_int8([](Operation& x) { x.n = 8, x.b_n_major = true; }));
  REQUIRE_FALSE(accepts_int8([](Operation& x) { x.negate_b = true; }));

  const auto accepts_scaled = [](auto change) {
    const Operation mx = {.kind = Kind::mxf8f6f4,
                          .a = formats::e4m3,
                          .b = formats::e2m3,
                          .d = formats::fp32,
                          .m = 128,
                          .n = 8};
    return is_valid(changed(mx, change));
  };
  REQUIRE(accepts_scaled([](Operation& x) { x.a_m_major = true; }));
  REQUIRE_FALSE(accepts_scaled([](Operation& x) { x.m = 64; }));
  REQUIRE_FALSE(accepts_scaled([](Operation& x) { x.d = formats::fp16; }));
  REQUIRE_FALSE(accepts_scaled([](Operation& x) { x.scale = formats::ue4m3; }));
  REQUIRE_FALSE(accepts_scaled([](Operation& x) { x.n = 16, x.b_n_major = true; }));  // six bits
}

TEST_CASE("tcgen05 shared-memory descriptors encode address and strides in units of 16 bytes") {
  // Start 0x2400, leading 2048, stride 128 bytes, the constant at bit 46, no swizzle.
  STATIC_REQUIRE(shared_memory_descriptor(0x2400, {.leading = 2048, .stride = 128}) ==
                 0x0000400800800240);
  // The encoded LBO = 16 and SBO = 8 of PTX ISA's examples: 16 rows of TF32, K-major, and 16
  // columns of BF16, MN-major.
  STATIC_REQUIRE(shared_memory_descriptor(0, core_matrix_strides(16, 32, false)) ==
                 0x0000400800100000);
  STATIC_REQUIRE(shared_memory_descriptor(0, core_matrix_strides(16, 16, true)) ==
                 0x0000400800100000);
  STATIC_REQUIRE(core_matrix_strides(128, 8, true).leading == 1024);
}
