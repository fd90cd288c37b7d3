// Logs what CUDA calls launch: names of kernels, grids, blocks and memory sets, without running a profiler.
// g++ -shared -fPIC -O2 dispatch_log.cpp -o libdispatch_log.so -I$CUDA/include -L$CUDA/lib64 -lcupti -ldl
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
};

Call current;
std::unordered_map<std::string, std::uint32_t> numbers;
std::vector<std::string> names;
std::vector<std::uint32_t> ids, grids, words, word_calls;
std::vector<std::uint32_t> samples_of;
using ParamInfo = CUresult (*)(void*, std::size_t, std::size_t*, std::size_t*);
ParamInfo function_info = nullptr, kernel_info = nullptr;
std::vector<std::uint32_t> pending;  // words of parameters of this call
bool want_words = true;
constexpr std::size_t words_each = 64;
std::uint64_t stored_words = 0;

void keep_parameters(void* f, void** parameters, bool all) {
  if (parameters == nullptr || !want_words) return;
  pending.assign(words_each, 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16 && at < words_each * 4; ++i) {
    std::size_t offset = 0, size = 0;
    CUresult r = function_info ? function_info(f, i, &offset, &size) : CUDA_ERROR_UNKNOWN;
    if (r != CUDA_SUCCESS && i == 0 && kernel_info) r = kernel_info(f, i, &offset, &size);
    if (r != CUDA_SUCCESS) break;
    if (offset + size > words_each * 4) size = words_each * 4 > offset ? words_each * 4 - offset : 0;
    std::memcpy(reinterpret_cast<char*>(pending.data()) + (offset < words_each * 4 ? offset : 0), parameters[i], size);
    at = offset + size;
  }
  (void)all;
}

void launch(const CUpti_CallbackData* data, void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
            unsigned bz, void** parameters) {
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
  if (std::strstr(name, "splitKreduce") != nullptr) keep_parameters(f, parameters, false);
}

void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData* data) {
  if (data->callbackSite != CUPTI_API_ENTER) return;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      auto* p = static_cast<const cuLaunchKernel_params*>(data->functionParams);
      launch(data, p->f, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
             p->kernelParams);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      auto* p = static_cast<const cuLaunchKernelEx_params*>(data->functionParams);
      const CUlaunchConfig* c = p->config;
      launch(data, p->f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
             p->kernelParams);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      auto* p = static_cast<const cuLaunchCooperativeKernel_params*>(data->functionParams);
      current.text += "cooperative:";
      launch(data, p->f, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
             p->kernelParams);
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
  CUptiResult r = cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr);
  if (r != CUPTI_SUCCESS) return static_cast<int>(r);
  const CUpti_CallbackId wanted[] = {
      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async, CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz};
  for (const CUpti_CallbackId id : wanted) {
    r = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (r != CUPTI_SUCCESS) return 1000 + static_cast<int>(r);
  }
  return 0;
}

/// Forgets what was launched since the last call ended.
void log_drop() {
  current = Call{};
  pending.clear();
}

/// Ends a call.
void log_mark() {
  const auto [at, fresh] = numbers.try_emplace(current.text, static_cast<std::uint32_t>(names.size()));
  if (fresh) names.push_back(current.text);
  ids.push_back(at->second);
  grids.insert(grids.end(), current.grids, current.grids + 6);
  if (!pending.empty() && word_calls.size() < 60000) {
    word_calls.push_back(static_cast<std::uint32_t>(ids.size() - 1));
    words.insert(words.end(), pending.begin(), pending.end());
  }
  log_drop();
}

std::uint64_t log_calls() { return ids.size(); }
const std::uint32_t* log_ids() { return ids.data(); }
const std::uint32_t* log_grids() { return grids.data(); }
std::uint64_t log_word_calls() { return word_calls.size(); }
const std::uint32_t* log_word_call() { return word_calls.data(); }
const std::uint32_t* log_words() { return words.data(); }
std::uint64_t log_names() { return names.size(); }
const char* log_name(std::uint64_t i) { return names[i].c_str(); }
}
