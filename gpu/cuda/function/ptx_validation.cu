#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/functions/unit/double_rsqrt.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "gpu/cuda/function/instruction_kernel.hpp"
#include "gpu/cuda/function/ptx_validation.hpp"

// An instruction's kernel is text, which the driver compiles; the model's kernel has the
// interpreters of emulator/functions/.
namespace guardbit::gpu {

namespace {

namespace mufu = emulator::mufu;
using emulator::ReferenceNumber;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw formats::Error("CUDA", cudaGetErrorString(status));
}

/// What computes an instruction's results on the device.
enum class ModelKind : std::uint8_t { form, formatted, double_rsqrt, quotient, rounded };

struct DeviceModel {
  ModelKind kind = ModelKind::rounded;
  formats::Format format = formats::fp32;
  int operands = 1;
  bool is_packed = false;
  emulator::RoundedInstruction instruction{};
  mufu::SpecialFunctionForm form{};
  mufu::FormattedForm formatted{};
  int quotient = 0;
};

/// A function of the unit whose tables the device can read.
const mufu::UnitFunction* on_device(const mufu::UnitFunction& function) {
  mufu::UnitFunction* copy = nullptr;
  check(cudaMallocManaged(&copy, sizeof *copy));
  *copy = function;
  for (mufu::Interpolator& table : copy->binades) {
    if (table.segments.empty()) continue;
    mufu::Segment* segments = nullptr;
    check(cudaMallocManaged(&segments, table.segments.size_bytes()));
    std::copy(table.segments.begin(), table.segments.end(), segments);
    table.segments = std::span<const mufu::Segment>(segments, table.segments.size());
  }
  return copy;
}

constexpr std::array<std::string_view, 4> quotient_names = {"div.approx.f32", "div.approx.ftz.f32",
                                                            "div.full.f32", "div.full.ftz.f32"};

DeviceModel model_of(const std::string& name) {
  DeviceModel model;
  model.is_packed = name.ends_with("x2");
  for (const mufu::SpecialFunctionForm* const form : mufu::special_function_forms) {
    if (form->name != name) continue;
    model.kind = ModelKind::form;
    model.form = *form;
    model.form.function = on_device(*form->function);
    return model;
  }
  for (const mufu::FormattedForm& form : mufu::formatted_forms) {
    if (form.name != name) continue;
    model.kind = ModelKind::formatted;
    model.format = format_of(form.operand);
    model.formatted = form;
    model.formatted.function = on_device(*form.function);
    return model;
  }
  if (name == "rsqrt.approx.f64") {
    model.kind = ModelKind::double_rsqrt;
    model.format = formats::fp64;
    model.formatted = mufu::rsqrt64_form;
    model.formatted.function = on_device(mufu::rsqrt);
    return model;
  }
  const auto* const quotient = std::find(quotient_names.begin(), quotient_names.end(), name);
  if (quotient != quotient_names.end()) {
    model.kind = ModelKind::quotient;
    model.quotient = static_cast<int>(quotient - quotient_names.begin());
    model.operands = 2;
    model.form = mufu::rcp_approx_ftz_form;
    model.form.function = on_device(mufu::rcp);
    return model;
  }
  for (const auto& [other, instruction] : emulator::rounded_instructions()) {
    if (other != name) continue;
    model.instruction = instruction;
    model.format = instruction.format;
    model.operands = static_cast<int>(operands_of(instruction.operation));
    return model;
  }
  const std::vector<std::string> names = modelled_instructions();
  throw formats::Error("gpu",
                       formats::unknown_name("function", name, {names.begin(), names.end()}));
}

/// Numbers of a launch's inputs, and where they and the results are.
struct Launch {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  bool is_enumerated = false;
  void* operands[3] = {};
  void* results = nullptr;
};

__device__ std::uint64_t load(const void* array, int bits, std::uint32_t i) {
  if (bits == 64) return static_cast<const std::uint64_t*>(array)[i];
  if (bits == 32) return static_cast<const std::uint32_t*>(array)[i];
  return static_cast<const std::uint16_t*>(array)[i];
}
__device__ void store(void* array, int bits, std::uint32_t i, std::uint64_t code) {
  if (bits == 64) {
    static_cast<std::uint64_t*>(array)[i] = code;
  } else if (bits == 32) {
    static_cast<std::uint32_t*>(array)[i] = static_cast<std::uint32_t>(code);
  } else {
    static_cast<std::uint16_t*>(array)[i] = static_cast<std::uint16_t>(code);
  }
}

__global__ void draw(formats::Format format, int operands, Launch launch) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= launch.count) return;
  const int bits = formats::bits(format);
  if (launch.is_enumerated) {
    const std::uint64_t number = launch.first + i;
    // High words come with low ones that must not be read.
    const std::uint64_t low = emulator::inputs::mixed(number) >> 32;
    store(launch.operands[0], bits, i,
          bits == 64 ? number << 32 | (number % 2 == 0 ? 0 : low) : number);
    return;
  }
  const auto codes = emulator::drawn_operands(format, launch.first + i);
  for (int k = 0; k < operands; ++k)
    store(launch.operands[k], bits, i, codes[static_cast<std::size_t>(k)]);
}

__device__ std::uint64_t quotient_of(const DeviceModel& model, std::uint64_t x, std::uint64_t y) {
  const auto reciprocal = [&](ReferenceNumber v) { return mufu::evaluate(model.form, v); };
  const ReferenceNumber a = ReferenceNumber::of(static_cast<std::uint32_t>(x)),
                        b = ReferenceNumber::of(static_cast<std::uint32_t>(y));
  const ReferenceNumber result = model.quotient == 0   ? mufu::div_approx(a, b, reciprocal)
                                 : model.quotient == 1 ? mufu::div_approx_ftz(a, b, reciprocal)
                                 : model.quotient == 2 ? mufu::div_full(a, b, reciprocal)
                                                       : mufu::div_full_ftz(a, b, reciprocal);
  return emulator::with_one_nan(bits(result));
}

__device__ std::uint64_t result_of(const DeviceModel& model,
                                   const std::array<std::uint64_t, 4>& x) {
  switch (model.kind) {
    case ModelKind::form:
      return emulator::with_one_nan(
          bits(mufu::evaluate(model.form, ReferenceNumber::of(static_cast<std::uint32_t>(x[0])))));
    case ModelKind::formatted: return mufu::evaluate(model.formatted, x[0]);
    case ModelKind::double_rsqrt: return mufu::rsqrt_approx_f64(x[0], model.formatted);
    case ModelKind::quotient: return quotient_of(model, x[0], x[1]);
    case ModelKind::rounded: return emulator::evaluate(model.instruction, x);
  }
  return 0;
}

constexpr std::uint32_t most_examples = 24;
struct Sums {
  unsigned long long mismatches, digest, first_digest;
  FunctionMismatch examples[most_examples];
};

__global__ void compare(const DeviceModel* model, Launch launch, Sums* sums) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= launch.count) return;
  const int bits = formats::bits(model->format);
  std::array<std::uint64_t, 4> codes{};
  for (int k = 0; k < model->operands; ++k)
    codes[static_cast<std::size_t>(k)] = load(launch.operands[k], bits, i);
  const std::uint64_t device = load(launch.results, bits, i), wanted = result_of(*model, codes);
  const std::uint64_t number = launch.first + i;
  unsigned long long share = emulator::function_digest_share(
      number, static_cast<std::uint32_t>(bits == 64 ? device >> 32 ^ device : device));
  unsigned long long first = number < first_inputs ? share : 0;
  for (int step = 16; step > 0; step /= 2) {
    share += __shfl_xor_sync(__activemask(), share, step);
    first += __shfl_xor_sync(__activemask(), first, step);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&sums->digest, share);
    atomicAdd(&sums->first_digest, first);
  }
  if (device == wanted) return;
  const unsigned long long place = atomicAdd(&sums->mismatches, 1ULL);
  if (place < most_examples)
    sums->examples[place] = {{codes[0], codes[1], codes[2]}, device, wanted};
}

/// An instruction's compiled text, its model, and arrays for one launch.
class InstructionOnDevice {
 public:
  static constexpr std::uint32_t most_at_once = 1 << 26;

  InstructionOnDevice(const std::string& name, std::uint32_t at_once) : host_(model_of(name)) {
    check(cudaMallocManaged(&model_, sizeof *model_));
    *model_ = host_;
    const std::string text = instruction_kernel({name, bits(), host_.operands, host_.is_packed});
    check(cudaLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    check(cudaLibraryGetKernel(&kernel_, library_, "compute"));
    const std::uint64_t bytes = std::uint64_t{at_once} * static_cast<unsigned>(bits()) / 8;
    for (void*& array : launch_.operands) check(cudaMalloc(&array, bytes));
    check(cudaMalloc(&launch_.results, bytes));
    // All codes, or high words, of what has one operand.
    launch_.is_enumerated =
        host_.operands == 1 && (bits() <= 32 || host_.kind == ModelKind::formatted);
  }
  InstructionOnDevice(const InstructionOnDevice&) = delete;
  InstructionOnDevice& operator=(const InstructionOnDevice&) = delete;
  ~InstructionOnDevice() {
    for (void* const array : launch_.operands) cudaFree(array);
    cudaFree(launch_.results);
    cudaFree(model_);
    cudaLibraryUnload(library_);
  }

  int bits() const { return formats::bits(host_.format); }
  std::size_t operands() const { return static_cast<std::size_t>(host_.operands); }
  /// How many inputs there are, where all are taken; else 0.
  std::uint64_t enumerated() const {
    return launch_.is_enumerated ? std::uint64_t{1} << std::min(bits(), 32) : 0;
  }

  /// Draws the inputs from a number on, and computes.
  void run(std::uint64_t first, std::uint32_t count) {
    launch_.first = first;
    launch_.count = count;
    draw<<<blocks(), block>>>(host_.format, host_.operands, launch_);
    std::uint32_t threads = host_.is_packed ? (count + 1) / 2 : count;
    std::uint32_t first_input = 0, mask = ~0U;
    void* places = nullptr;
    void* arguments[] = {&launch_.results,
                         &launch_.operands[0],
                         &launch_.operands[1],
                         &launch_.operands[2],
                         &threads,
                         &first_input,
                         &mask,
                         &places};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_), dim3(blocks()), dim3(block),
                           arguments, 0, nullptr));
    check(cudaGetLastError());
  }
  void compare_with_model(Sums* sums) {
    compare<<<blocks(), block>>>(model_, launch_, sums);
    check(cudaGetLastError());
  }

  /// Codes of an operand, or with -1 of the results.
  std::vector<std::uint64_t> codes(int operand) const {
    const std::size_t bytes = static_cast<std::size_t>(bits()) / 8;
    std::vector<std::byte> words(launch_.count * bytes);
    check(cudaMemcpy(words.data(), operand < 0 ? launch_.results : launch_.operands[operand],
                     words.size(), cudaMemcpyDeviceToHost));
    std::vector<std::uint64_t> codes(launch_.count);
    for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &words[i * bytes], bytes);
    return codes;
  }

 private:
  static constexpr std::uint32_t block = 256;
  std::uint32_t blocks() const { return (launch_.count + block - 1) / block; }

  DeviceModel host_;
  DeviceModel* model_ = nullptr;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  Launch launch_;
};

}  // namespace

std::vector<std::string> modelled_instructions() {
  std::vector<std::string> names;
  for (const auto* const form : mufu::special_function_forms) names.emplace_back(form->name);
  for (const auto& form : mufu::formatted_forms) names.emplace_back(form.name);
  names.emplace_back("rsqrt.approx.f64");
  for (const std::string_view name : quotient_names) names.emplace_back(name);
  for (const auto& [name, instruction] : emulator::rounded_instructions()) names.push_back(name);
  return names;
}

FunctionReport validate_instruction(const std::string& name, std::uint64_t count,
                                    const std::function<bool(std::uint64_t)>& goes_on) {
  constexpr std::uint32_t at_once = InstructionOnDevice::most_at_once;
  InstructionOnDevice instruction(name, at_once);
  const std::uint64_t total = instruction.enumerated() != 0 ? instruction.enumerated() : count;
  Sums* sums = nullptr;
  check(cudaMallocManaged(&sums, sizeof *sums));
  *sums = {};
  FunctionReport report;
  report.function = name;
  for (std::uint64_t first = 0; first < total && goes_on(first); first += at_once) {
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(at_once, total - first));
    instruction.run(first, part);
    instruction.compare_with_model(sums);
    check(cudaDeviceSynchronize());
    report.compared += part;
  }
  report.mismatches = sums->mismatches;
  report.digest = sums->digest;
  report.first_digest = sums->first_digest;
  report.examples.assign(sums->examples,
                         sums->examples + std::min<std::uint64_t>(sums->mismatches, most_examples));
  check(cudaFree(sums));
  return report;
}

FunctionRecording record_instruction(const std::string& name, std::uint32_t count) {
  InstructionOnDevice instruction(name, count);
  instruction.run(0, count);
  FunctionRecording recording;
  for (std::size_t i = 0; i < instruction.operands(); ++i)
    recording.operands.push_back(instruction.codes(static_cast<int>(i)));
  recording.results = instruction.codes(-1);
  return recording;
}

}  // namespace guardbit::gpu
