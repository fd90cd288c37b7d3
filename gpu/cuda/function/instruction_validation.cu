#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>

#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/functions/unit/double_rsqrt.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "gpu/cuda/function/instruction_validation.hpp"

// An instruction's kernel is text, which the driver compiles; the model's kernel has the
// interpreters of emulator/functions/.
namespace guardbit::gpu {

namespace {

namespace mufu = emulator::mufu;
using emulator::ReferenceNumber;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
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
  throw std::runtime_error("no model of " + name);
}

/// The text of a kernel that executes the instruction on arrays of operands, a thread each.
std::string kernel_text(const std::string& name, const DeviceModel& model) {
  const int bits = formats::bits(model.format);
  const bool is_half = bits == 16;
  const std::string type = is_half ? (model.is_packed ? "b32" : "b16") : bits == 64 ? "f64" : "f32";
  const int bytes = is_half ? (model.is_packed ? 4 : 2) : bits / 8;
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry compute(.param .u64 d, "
      ".param .u64 x, .param .u64 y, .param .u64 z, .param .u32 count)\n{\n.reg .pred %p;\n"
      ".reg .b32 %r<4>;\n.reg .b64 %a<8>;\n.reg ." +
      type + " %v<4>;\n" +
      "mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\n"
      "mad.lo.u32 %r0, %r0, %r1, %r2;\nld.param.u32 %r3, [count];\nsetp.ge.u32 %p, %r0, %r3;\n"
      "@%p ret;\nmul.wide.u32 %a7, %r0, " +
      std::to_string(bytes) + ";\n";
  const std::array<std::string, 3> parameters = {"x", "y", "z"};
  std::string operands;
  for (int i = 0; i < model.operands; ++i) {
    const std::string n = std::to_string(i + 1), pointer = "%a" + n, value = "%v" + n;
    text += "ld.param.u64 " + pointer + ", [" + parameters[static_cast<std::size_t>(i)] +
            "];\nadd.u64 " + pointer + ", " + pointer + ", %a7;\nld.global." + type + " " + value +
            ", [" + pointer + "];\n";
    operands += ", " + value;
  }
  return text + name + " %v0" + operands +
         ";\nld.param.u64 %a0, [d];\nadd.u64 %a0, %a0, %a7;\nst.global." + type +
         " [%a0], %v0;\nret;\n}\n";
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
  unsigned long long first = number < 1 << 20 ? share : 0;
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

FunctionReport validate_instruction(const std::string& name, std::uint64_t count) {
  constexpr std::uint32_t at_once = 1 << 26, block = 256;
  FunctionReport report;
  report.function = name;
  DeviceModel* model = nullptr;
  check(cudaMallocManaged(&model, sizeof *model));
  *model = model_of(name);
  const std::string text = kernel_text(name, *model);
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, "compute"));
  const int bits = formats::bits(model->format);
  Launch launch;
  launch.is_enumerated =
      model->operands == 1 && (bits <= 32 || model->kind == ModelKind::formatted);
  const std::uint64_t total = launch.is_enumerated ? std::uint64_t{1} << std::min(bits, 32) : count;
  const std::uint64_t bytes = std::uint64_t{at_once} * static_cast<unsigned>(bits) / 8;
  for (void*& array : launch.operands) check(cudaMalloc(&array, bytes));
  check(cudaMalloc(&launch.results, bytes));
  Sums* sums = nullptr;
  check(cudaMallocManaged(&sums, sizeof *sums));
  *sums = {};
  for (launch.first = 0; launch.first < total; launch.first += at_once) {
    launch.count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(at_once, total - launch.first));
    const std::uint32_t blocks = (launch.count + block - 1) / block;
    draw<<<blocks, block>>>(model->format, model->operands, launch);
    std::uint32_t threads = model->is_packed ? launch.count / 2 : launch.count;
    void* arguments[] = {&launch.results, &launch.operands[0], &launch.operands[1],
                         &launch.operands[2], &threads};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(block),
                           arguments, 0, nullptr));
    compare<<<blocks, block>>>(model, launch, sums);
    check(cudaGetLastError());
  }
  check(cudaDeviceSynchronize());
  report.compared = total;
  report.mismatches = sums->mismatches;
  report.digest = sums->digest;
  report.first_digest = sums->first_digest;
  report.examples.assign(sums->examples,
                         sums->examples + std::min<std::uint64_t>(sums->mismatches, most_examples));
  for (void* const array : launch.operands) check(cudaFree(array));
  check(cudaFree(launch.results));
  check(cudaFree(sums));
  check(cudaFree(model));
  check(cudaLibraryUnload(library));
  return report;
}

}  // namespace guardbit::gpu
