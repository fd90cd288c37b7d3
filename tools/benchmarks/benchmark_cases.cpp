#include "tools/benchmarks/benchmark_cases.hpp"

#include <array>

#include "formats/format_catalogue.hpp"

namespace guardbit::tools {

namespace {

constexpr std::array all_cases = {
    Case{"hopper_f16", "sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 0.45, 0.8, 0.2,
         0.5},
    Case{"hopper_bf16", "sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", 0.45, 0.8},
    Case{"blackwell_f16", "sm_100", "tcgen05.mma.kind::f16.mMnNk16.f32.f16.f16", 0.45, 0.8},
    Case{"blackwell_bf16", "sm_100", "tcgen05.mma.kind::f16.mMnNk16.f32.bf16.bf16", 0.45, 0.8},
    Case{"hopper_fp8", "sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", 0.8, 1.3},
    Case{"ada_fp8", "sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 0.6, 1.0},
    Case{"blackwell_fp8", "sm_100", "tcgen05.mma.kind::f8f6f4.mMnNk32.f32.e4m3.e4m3", 0.3, 0.6},
    Case{"ampere_f16", "sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 0.25, 0.5},
    Case{"ampere_bf16", "sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 0.25, 0.5},
    Case{"turing_f16", "sm_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 0.25, 0.5},
    Case{"volta_f16", "sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 0.15, 0.3},
    Case{"ampere_tf32", "sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 0.15, 0.3},
    Case{"hopper_tf32", "sm_90", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", 0.15, 0.3},
    Case{"hopper_f16_to_f16", "sm_90", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 0.15,
         0.4},
    Case{"ampere_f16_to_f16", "sm_80", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 0.15,
         0.4},
    Case{"nvfp4", "sm_100",
         "tcgen05.mma.kind::mxf4nvf4.mMnNk64.f32.e2m1.e2m1.block_scale.scale_vec::4X.ue4m3", 0.3,
         1.0},
    Case{"mxfp4", "sm_100",
         "tcgen05.mma.kind::mxf4.mMnNk64.f32.e2m1.e2m1.block_scale.scale_vec::2X.ue8m0", 0.3, 1.0},
    Case{"mxfp8", "sm_100",
         "tcgen05.mma.kind::mxf8f6f4.mMnNk32.f32.e4m3.e4m3.block_scale.scale_vec::1X.ue8m0"},
    Case{"hopper_fp8_emulated", "sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
    Case{"hopper_sparse_f16", "sm_90",
         "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"},
    Case{"int8", "sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 1.5, 3.0},
    Case{"int8_saturating", "sm_90", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"},
    Case{"int4", "sm_90", "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"},
    Case{"b1", "sm_90", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"},
    Case{"fp64", "sm_90", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 0.6, 1.0},
    Case{"cdna3_f16", "cdna3", "v_mfma_f32_16x16x16_f16"},
    Case{"x86_bf16", "x86", "VDPBF16PS"},
};

}  // namespace

std::span<const Case> cases() { return all_cases; }

bool is_double_precision(const emulator::MatrixInstruction& instruction) {
  return instruction.a == formats::fp64 || instruction.b == formats::fp64;
}

}  // namespace guardbit::tools
