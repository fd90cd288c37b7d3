"""The C++ that logs what CUDA calls launch, as a shared library."""

SOURCE = r'''
// Logs what CUDA calls launch: names of kernels, grids, blocks and memory sets, without running a
// profiler.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>
namespace {
struct Call {
  std::string text;
  std::uint32_t grids[6] = {};
  int launches = 0;
  std::uint32_t word = 0;
  /// of the grid of the first kernel that can cut K; 0: there is none
  std::uint32_t depth = 0;
};

Call current;
std::unordered_map<std::string, std::uint32_t> numbers;
std::vector<std::string> names;
std::vector<std::uint32_t> ids, grids, words;
using ParamInfo = CUresult (*)(void*, std::size_t, std::size_t*, std::size_t*);
ParamInfo function_info = nullptr, kernel_info = nullptr;
/// Grids are kept of so many calls.
std::uint64_t grid_calls = 60000;
/// A word of a kernel's parameters.
std::uint32_t word_of(void* f, void** parameters) {
  if (parameters == nullptr) return 0;
  std::uint32_t pending[64] = {};
  for (std::size_t i = 0; i < 16; ++i) {
    std::size_t offset = 0, size = 0;
    CUresult r = function_info ? function_info(f, i, &offset, &size) : CUDA_ERROR_UNKNOWN;
    if (r != CUDA_SUCCESS && i == 0 && kernel_info) r = kernel_info(f, i, &offset, &size);
    if (r != CUDA_SUCCESS) break;
    if (offset >= 256) break;
    if (offset + size > 256) size = 256 - offset;
    std::memcpy(reinterpret_cast<char*>(pending) + offset, parameters[i], size);
  }
  return pending[10];  // how many parts cuBLASLt's reduction adds
}
void launch(const CUpti_CallbackData* data, void* f, unsigned gx, unsigned gy, unsigned gz,
            unsigned bx, unsigned by, unsigned bz, void** parameters) {
  const char* name = data->symbolName ? data->symbolName : "?";
  current.text += name;
  current.text += '/';
  current.text += std::to_string(bx * by * bz);
  current.text += ';';
  if (current.launches < 2) {
    const std::uint32_t g[3] = {gx, gy, gz};
    std::memcpy(current.grids + 3 * current.launches, g, sizeof g);
  }
  ++current.launches;
  for (const char* const part : {"cutlass", "xmma", "sgemm_largek"})
    if (current.depth == 0 && std::strstr(name, part) != nullptr) current.depth = gz;
  if (std::strstr(name, "splitKreduce") != nullptr) current.word = word_of(f, parameters);
}
void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                       const CUpti_CallbackData* data) {
  if (data->callbackSite != CUPTI_API_ENTER) return;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      auto* p = static_cast<const cuLaunchKernel_params*>(data->functionParams);
      launch(data, p->f, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
             p->blockDimZ, p->kernelParams);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      auto* p = static_cast<const cuLaunchKernelEx_params*>(data->functionParams);
      const CUlaunchConfig* c = p->config;
      launch(data, p->f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
             c->blockDimZ, p->kernelParams);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      auto* p = static_cast<const cuLaunchCooperativeKernel_params*>(data->functionParams);
      current.text += "cooperative:";
      launch(data, p->f, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
             p->blockDimZ, p->kernelParams);
      break;
    }
    default: current.text += "set" + std::to_string(id) + ";"; break;
  }
}
}  // namespace
extern "C" {
int log_start() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver != nullptr) {
    function_info = reinterpret_cast<ParamInfo>(dlsym(driver, "cuFuncGetParamInfo"));
    kernel_info = reinterpret_cast<ParamInfo>(dlsym(driver, "cuKernelGetParamInfo"));
  }
  CUpti_SubscriberHandle subscriber;
  CUptiResult r =
      cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr);
  if (r != CUPTI_SUCCESS) return static_cast<int>(r);
  const CUpti_CallbackId wanted[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                                     CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz};
  for (const CUpti_CallbackId id : wanted) {
    r = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (r != CUPTI_SUCCESS) return 1000 + static_cast<int>(r);
  }
  return 0;
}
void log_grid_calls(std::uint64_t n) { grid_calls = n; }
void log_drop() { current = Call{}; }
/// Ends a call; gives the number of what it launched. The key has the names; of kernels that can
/// cut K their grid's depth, by the batch where that divides it; and how many parts a reduction
/// adds.
std::uint32_t log_mark(std::uint32_t batch) {
  const std::uint32_t z = current.depth == 0 ? 1 : current.depth;
  std::string key = current.text + '#';
  if (batch > 1 && z % batch == 0)
    key += std::to_string(z / batch);
  else if (batch > 1)
    key += z > 64 ? "x" : "x" + std::to_string(z);
  else
    key += std::to_string(z);
  key += '#';
  key += std::to_string(current.word);
  const auto [at, fresh] = numbers.try_emplace(key, static_cast<std::uint32_t>(names.size()));
  if (fresh) names.push_back(key);
  ids.push_back(at->second);
  if (ids.size() <= grid_calls) grids.insert(grids.end(), current.grids, current.grids + 6);
  current = Call{};
  return at->second;
}
std::uint64_t log_calls() { return ids.size(); }
std::uint64_t log_grid_count() { return grids.size() / 6; }
const std::uint32_t* log_ids() { return ids.data(); }
const std::uint32_t* log_grids() { return grids.data(); }
std::uint64_t log_names() { return names.size(); }
const char* log_name(std::uint64_t i) { return names[i].c_str(); }
}
'''
