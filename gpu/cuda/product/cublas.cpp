#include "gpu/cuda/product/cublas.hpp"

#include <dlfcn.h>
#include <library_types.h>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"

namespace guardbit::gpu {

namespace {

// cublas_api.h, CUDA 12 and 13: the few names that this file needs.
using Handle = void*;
using Create = int (*)(Handle*);
using Destroy = int (*)(Handle);
using GemmEx = int (*)(Handle, int transa, int transb, int m, int n, int k, const void* alpha,
                       const void* a, cudaDataType a_type, int lda, const void* b,
                       cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type,
                       int ldc, int compute_type, int algorithm);
constexpr int no_transpose = 0, default_algorithm = -1;
constexpr int compute_16f = 64, compute_32f = 68, compute_32f_fast_tf32 = 77;

struct Library {
  std::string name;
  void* handle = nullptr;

  Library() {
    for (const char* candidate : {"libcublas.so.13", "libcublas.so.12"}) {
      handle = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
      name = candidate;
      if (handle != nullptr) return;
    }
  }

  template <class Function>
  Function find(const char* symbol) const {
    void* const address = dlsym(handle, symbol);
    if (address == nullptr) throw formats::Error(name, std::string("has no ") + symbol);
    return reinterpret_cast<Function>(address);
  }
};

void check_status(int status, const char* what) {
  if (status != 0)
    throw formats::Error("cuBLAS", std::string(what) + " gave status " + std::to_string(status));
}

std::optional<cudaDataType> data_type(const formats::Format& f) {
  if (f == formats::fp16) return CUDA_R_16F;
  if (f == formats::bf16) return CUDA_R_16BF;
  if (f == formats::tf32 || f == formats::fp32) return CUDA_R_32F;
  return std::nullopt;
}

}  // namespace

std::string cublas_refusal(const emulator::MatrixInstruction& instruction, bool has_addend) {
  if (has_addend) return "cublasGemmEx is compared without C, which its epilogue adds";
  if (instruction.a != instruction.b || !data_type(instruction.a) || !data_type(instruction.d))
    return "cublasGemmEx does not multiply " + formats::name_of(instruction.a) + " by " +
           formats::name_of(instruction.b) + " into " + formats::name_of(instruction.d);
  return {};
}

std::optional<CublasRun> run_cublas(const emulator::MatrixInstruction& instruction,
                                    const DeviceMatrices& x) {
  // Never unloaded: a library with a CUDA context of its own does not survive that.
  static const Library library;
  if (library.handle == nullptr) return std::nullopt;
  const auto gemm = library.find<GemmEx>("cublasGemmEx");
  Handle handle = nullptr;
  check_status(library.find<Create>("cublasCreate_v2")(&handle), "cublasCreate");
  const bool half = instruction.d == formats::fp16;
  const int compute = half                             ? compute_16f
                      : instruction.a == formats::tf32 ? compute_32f_fast_tf32
                                                       : compute_32f;
  const float one = 1, zero = 0;
  constexpr std::uint16_t half_one = 0x3C00, half_zero = 0;
  // Row-major A * B is column-major B * A.
  const auto multiply = [&] {
    return gemm(handle, no_transpose, no_transpose, x.n, x.m, x.k,
                half ? static_cast<const void*>(&half_one) : &one, x.b, *data_type(instruction.b),
                x.n, x.a, *data_type(instruction.a), x.k,
                half ? static_cast<const void*>(&half_zero) : &zero, x.d, *data_type(instruction.d),
                x.n, compute, default_algorithm);
  };
  check_status(multiply(), "cublasGemmEx");
  DeviceTimer timer;
  timer.start();
  const int status = multiply();
  const double seconds = timer.stop();
  library.find<Destroy>("cublasDestroy_v2")(handle);
  check_status(status, "cublasGemmEx");
  return CublasRun{library.name, seconds};
}

}  // namespace guardbit::gpu
