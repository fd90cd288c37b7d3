#include "gpu/cuda/product/cublas.hpp"

#include <dlfcn.h>
#include <library_types.h>

#include <cstring>

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
constexpr int compute_16f = 64, compute_32f = 68, compute_64f = 70, compute_32f_fast_tf32 = 77;

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
  if (f == formats::fp64) return CUDA_R_64F;
  return std::nullopt;
}

/// Never unloaded: a library with a CUDA context of its own does not survive that.
const Library& library() {
  static const Library instance;
  return instance;
}

}  // namespace

std::string cublas_refusal(const emulator::MatrixInstruction& instruction, bool has_addend) {
  if (has_addend) return "cublasGemmEx is compared without C, which its epilogue adds";
  if (instruction.a != instruction.b || !data_type(instruction.a) || !data_type(instruction.d))
    return "cublasGemmEx does not multiply " + formats::name_of(instruction.a) + " by " +
           formats::name_of(instruction.b) + " into " + formats::name_of(instruction.d);
  return {};
}

CublasProduct::CublasProduct(const emulator::MatrixInstruction& instruction)
    : a_(*data_type(instruction.a)), d_(*data_type(instruction.d)) {
  const bool is_half = instruction.d == formats::fp16;
  compute_ = is_half                          ? compute_16f
             : instruction.a == formats::tf32 ? compute_32f_fast_tf32
             : instruction.a == formats::fp64 ? compute_64f
                                              : compute_32f;
  const float one = 1;
  const double wide_one = 1;
  constexpr std::uint16_t half_one = 0x3C00;
  if (is_half)
    std::memcpy(one_, &half_one, sizeof half_one);
  else if (instruction.a == formats::fp64)
    std::memcpy(one_, &wide_one, sizeof wide_one);
  else
    std::memcpy(one_, &one, sizeof one);
  if (library().handle == nullptr)
    throw formats::Error("cuBLAS", "no libcublas.so.13 or libcublas.so.12 was found");
  check_status(library().find<Create>("cublasCreate_v2")(&handle_), "cublasCreate");
}

void CublasProduct::accumulate_wide() {
  if (compute_ != compute_16f) return;
  const float one = 1;
  std::memcpy(one_, &one, sizeof one);
  compute_ = compute_32f;
}

CublasProduct::~CublasProduct() { library().find<Destroy>("cublasDestroy_v2")(handle_); }

const std::string& CublasProduct::library_name() { return library().name; }

bool CublasProduct::is_there() { return library().handle != nullptr; }

void CublasProduct::multiply(const DeviceMatrices& x) const {
  static const auto gemm = library().find<GemmEx>("cublasGemmEx");
  const unsigned char zero[8] = {};
  // Row-major A * B is column-major B * A.
  check_status(gemm(handle_, no_transpose, no_transpose, x.n, x.m, x.k, one_, x.b,
                    static_cast<cudaDataType>(a_), x.n, x.a, static_cast<cudaDataType>(a_), x.k,
                    zero, x.d, static_cast<cudaDataType>(d_), x.n, compute_, default_algorithm),
               "cublasGemmEx");
}

std::optional<CublasRun> run_cublas(const emulator::MatrixInstruction& instruction,
                                    const DeviceMatrices& x) {
  if (!CublasProduct::is_there()) return std::nullopt;
  const CublasProduct product(instruction);
  product.multiply(x);
  DeviceTimer timer;
  timer.start();
  product.multiply(x);
  return CublasRun{CublasProduct::library_name(), timer.stop()};
}

}  // namespace guardbit::gpu
