#include "emulator/gemm/plan_library.hpp"

#include <algorithm>
#include <array>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::emulator {

namespace {

// Every row was measured: results of an H200 (PyTorch 2.11.0 with its cuBLAS, cuSPARSELt and cuDNN,
// CUDA 13.0) whose profiler named such a kernel are reproduced bit for bit (tests/golden/gemm).
constexpr std::string_view hopper = "sm_90";

constexpr std::array rows = {
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_hsh_",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16",
                "splitK: split=Sx64:ceil; _badd_: add=rounded"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_tst_",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d=bf16",
                "splitK: split=Sx64:ceil; _badd_: add=rounded"},
    LibraryPlan{
        "cublas-13", hopper, "nvjet_sm90_qqtst_*_Ablk128_Bvec128",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 promote=128:scaled_fma d=bf16",
        "scales of 128 elements of K"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_qqsss_*_algo2",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 promote=128 d=fp32",
                "no fast accumulation; splitK: split=Sx128:ceil"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_qqsss_",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 d=fp32",
                "fast accumulation; splitK: split=Sx128:ceil"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_qqtst_*_algo2",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 promote=128 d=bf16",
                "no fast accumulation"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_qqtst_",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 d=bf16",
                "fast accumulation"},
    LibraryPlan{"cublas-13", hopper, "nvjet_sm90_rqtst_*_algo2",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2 promote=128 d=bf16",
                "no fast accumulation"},
    LibraryPlan{"cublas-13", hopper, "cutlass_75_wmma_tensorop_f16_s161616gemm_f16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16",
                "residue_first=T, T the tile of K in the name"},
    LibraryPlan{
        "cublas-13", hopper, "cutlass_80_tensorop_s1688gemm",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 d=fp32",
        "S parts of a multiple of 4 or more: split=SxT:ceil; residue_first=16 or 32, the tile in the name"},
    LibraryPlan{"cublas-13", hopper, "sm80_xmma_gemm_f32f32_tf32f32_f32",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 d=fp32", ""},
    LibraryPlan{"cublas-13", hopper, "cutlass_80_simt_sgemm", "simt/fma.fp32 d=fp32",
                "S parts: split=SxT:ceil; with alpha and beta then add=fma_addend"},
    LibraryPlan{"cublas-13", hopper, "sm80_xmma_gemm_f32f32_f32f32_f32_*_ffma",
                "simt/fma.fp32 d=fp32", "with a second kernel: split=Sx8:round_robin"},
    LibraryPlan{"cublas-13", hopper, "internal::gemvx::kernel<int, int, float, float, float",
                "simt/fma.fp32 split=32x1:round_robin:halves d=fp32",
                "threads of a warp share K: 32x1:round_robin or 32xT:ceil"},
    LibraryPlan{"cublas-13", hopper, "tensorop_h16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16 compute=fp16 d=fp16",
                "FP16 accumulation; S parts: split=Sx8:ceil"},
    LibraryPlan{"cublas-13", hopper, "sm90_xmma_gemm_f64f64_f64f64_f64",
                "simt/fma.fp64 compute=fp64 d=fp64", ""},
    LibraryPlan{"cublas-13", hopper, "tensorop_i16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8 compute=int32 d=int32",
                "exact in any order"},
    LibraryPlan{"cusparselt", hopper, "sm90_xmma_sparse_gemm_f16f16",
                "sm_90/wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.f16.f16 d=fp16", ""},
    LibraryPlan{"cusparselt", hopper, "sm90_xmma_sparse_gemm_bf16bf16",
                "sm_90/wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.bf16.bf16 d=bf16", ""},
    LibraryPlan{"cusparselt", hopper, "sm90_xmma_sparse_gemm_i8i8",
                "sm_90/wgmma.mma_async.sp.sync.aligned.m64nNk64.s32.s8.s8 d=int8", "saturated"},
    LibraryPlan{
        "cudnn-9", hopper, "sm90_xmma_fprop_implicit_gemm_f16f16",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 conv=rsc:block64:fill16 d=fp16",
        "block: the tile of K in the name"},
    LibraryPlan{
        "cudnn-9", hopper, "sm90_xmma_fprop_implicit_gemm_bf16bf16",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 conv=rsc:block64:fill16 d=bf16",
        "block: the tile of K in the name"},
    LibraryPlan{"cudnn-9", hopper, "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 conv=rsc:block32 d=fp32",
                "block: the tile of K in the name"},
    LibraryPlan{"cudnn-9", hopper, "fprop_implicit_gemm_indexed_wo_smem_f16f16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 loads=4x8:4 d=fp16", ""},
    LibraryPlan{"cudnn-9", hopper, "fprop_implicit_gemm_indexed_bf16bf16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d=bf16", ""},
    LibraryPlan{"cudnn-9", hopper, "fprop_implicit_gemm_f16f16",
                "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16", ""},
    LibraryPlan{"cudnn-9", hopper, "fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs",
                "simt/fma.fp32 conv=crs d=fp32", ""},
    LibraryPlan{"cudnn-9", hopper, "convolve_common_engine_float_NHWC<float",
                "simt/fma.fp32 d=fp32", ""},
    LibraryPlan{"cudnn-9", hopper, "implicit_convolve_sgemm<__half",
                "simt/fma.fp32 conv=crs d=fp16", ""},
};

}  // namespace

std::span<const LibraryPlan> library_plans() { return rows; }

bool matches_kernel(std::string_view pattern, std::string_view kernel) {
  std::size_t at = 0;
  while (true) {
    const std::size_t star = pattern.find('*');
    const std::size_t found = kernel.find(pattern.substr(0, star), at);
    if (found == std::string_view::npos) return false;
    if (star == std::string_view::npos) return true;
    at = found + star;
    pattern.remove_prefix(star + 1);
  }
}

const LibraryPlan& require_library_plan(std::string_view name, const Format& a, const Format& b,
                                        std::string_view where) {
  const std::size_t first = name.find(':');
  const std::size_t second = first == std::string_view::npos ? first : name.find(':', first + 1);
  const std::string_view library = name.substr(0, first);
  const std::string_view arch =
      first == std::string_view::npos ? "" : name.substr(first + 1, second - first - 1);
  const std::string_view kernel = second == std::string_view::npos ? "" : name.substr(second + 1);
  bool known = false;
  for (const LibraryPlan& row : rows) {
    if (row.library != library || (!arch.empty() && row.arch != arch)) continue;
    known = true;
    const GemmPlan plan = parse_plan(row.plan, "table of plans");
    if (!kernel.empty()) {
      if (matches_kernel(row.kernel, kernel)) return row;
      continue;
    }
    // Plans of convolutions and of block scales are asked for by kernel only.
    if (plan.convolution != ConvolutionOrder{} || plan.loads != LoadOrder{} ||
        plan.promotion.adder != Promotion::Adder::add)
      continue;
    if (plan.unit.arch == "simt") {
      const bool fp64 = plan.unit.instruction == "fma.fp64";
      if (a == b && a == (fp64 ? formats::fp64 : formats::fp32)) return row;
      continue;
    }
    const MatrixInstruction instruction =
        require_instruction(plan.unit.arch, plan.unit.instruction, "table of plans");
    if (instruction.a == a && instruction.b == b) return row;
  }
  if (!known) {
    // Another version or machine of a library in the table: there is nothing to go by.
    const std::string_view product = library.substr(0, library.find('-'));
    const bool other = std::any_of(rows.begin(), rows.end(), [&](const LibraryPlan& row) {
      return row.library.substr(0, row.library.find('-')) == product;
    });
    throw formats::Error(std::string(where),
                         other ? "nothing was recorded of " + formats::printable(name) +
                                     ", and plans change with version and machine"
                               : "unknown library " + formats::in_quotes(name),
                         "cublas-13:sm_90, cusparselt:sm_90, cudnn-9:sm_90");
  }
  throw formats::Error(std::string(where), "the table of plans has no row of " +
                                               formats::printable(name) + " for " +
                                               formats::name_of(a) + " times " +
                                               formats::name_of(b) + "; see guardbit gemm --list");
}

}  // namespace guardbit::emulator
