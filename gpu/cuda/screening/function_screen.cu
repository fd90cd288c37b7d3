#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "gpu/cuda/function/instruction_kernel.hpp"
#include "gpu/cuda/screening/function_screen.hpp"
#include "gpu/cuda/screening/screen_logs.hpp"
#include "gpu/cuda/tensor_core/note_entry.cuh"
#include "gpu/screening/integer_rounds.hpp"
#include "gpu/screening/log_places.hpp"

namespace guardbit::gpu {

namespace {

constexpr const char* where = "gpu screen";
constexpr std::uint32_t block = 256, executions = 1 << 19;

/// Results of one launch, and what they must be.
struct Comparison {
  const void* results;
  const void* expected;
  const std::uint32_t* places;
  std::uint32_t count, first, mask;
  int bits, per_thread;
};

__device__ std::uint64_t load(const void* array, int bits, std::uint32_t i) {
  if (bits == 64) return static_cast<const std::uint64_t*>(array)[i];
  if (bits == 32) return static_cast<const std::uint32_t*>(array)[i];
  return static_cast<const std::uint16_t*>(array)[i];
}

__global__ void compare_results(Comparison x, ScreenLog* log) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= x.count) return;  // whole warps
  const auto each = static_cast<std::uint32_t>(x.per_thread);
  const std::uint32_t thread = i / each;
  const std::uint32_t input = ((thread + x.first) & x.mask) * each + i % each;
  const std::uint64_t got = load(x.results, x.bits, i), wanted = load(x.expected, x.bits, input);
  const bool is_wrong = got != wanted;
  const std::uint32_t place = x.places[thread / 32];
  const std::uint32_t processor = place / 256 % most_processors, part = place % processor_blocks;
  const bool is_first = i % (32 * each) == 0, any = __any_sync(0xFFFFFFFFU, is_wrong);
  if (is_first) atomicAdd(&log->executions[processor][part], 1ULL);
  if (!any) return;
  if (threadIdx.x % 32 == 0) atomicAdd(&log->failures[processor][part], 1ULL);
  if (!is_wrong) return;
  atomicAdd(&log->mismatches, 1ULL);
  const bool high = static_cast<std::uint32_t>(got) == static_cast<std::uint32_t>(wanted);
  const int shift = high ? 32 : 0;
  note_entry(
      log, {input, 0, high ? 1U : 0U, processor, part, static_cast<std::uint32_t>(wanted >> shift),
            static_cast<std::uint32_t>(got >> shift)});
}

__global__ void compute_integers(const std::uint64_t* operands, std::uint64_t* results,
                                 std::uint32_t count, std::uint32_t first, std::uint32_t mask,
                                 std::uint32_t* places) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  results[i] = integer_rounds(operands[(i + first) & mask]);
  if (threadIdx.x % 32 != 0) return;
  std::uint32_t processor, warp;
  asm volatile("mov.u32 %0, %%smid;\n\tmov.u32 %1, %%warpid;" : "=r"(processor), "=r"(warp));
  places[i / 32] = processor * 256 + warp;
}

std::string test_of(const FunctionCase& x) {
  return x.name == integer_operations ? "integer" : "function";
}

}  // namespace

/// A function's operands, results and kernel; without a kernel, the integer operations.
struct FunctionScreen::OnDevice {
  int bits = 32, per_thread = 1;
  std::vector<DeviceBuffer> operands;
  DeviceBuffer expected;
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
};

FunctionScreen::FunctionScreen(std::span<const FunctionCase> cases)
    : cases_(cases),
      results_(std::size_t{executions} * 8, where),
      places_(executions / 32 * sizeof(std::uint32_t), where),
      logs_((cases.size() + 1) * sizeof(ScreenLog), where) {
  functions_.reserve(cases.size());
  for (const FunctionCase& x : cases) {
    OnDevice& function = functions_.emplace_back(
        OnDevice{x.bits, x.name.ends_with("x2") ? 2 : 1, {}, DeviceBuffer(x.expected, where)});
    for (const std::vector<std::byte>& codes : x.operands)
      function.operands.emplace_back(codes, where);
    if (x.name == integer_operations) continue;
    const std::string text = instruction_kernel(
        {x.name, x.bits, static_cast<int>(x.operands.size()), function.per_thread == 2});
    check_cuda(cudaLibraryLoadData(&function.library, text.c_str(), nullptr, nullptr, 0, nullptr,
                                   nullptr, 0),
               x.name);
    check_cuda(cudaLibraryGetKernel(&function.kernel, function.library, "compute"), x.name);
  }
}

FunctionScreen::~FunctionScreen() {
  for (const OnDevice& function : functions_)
    if (function.library != nullptr) cudaLibraryUnload(function.library);
}

/// `inputs` of the function's inputs from `begin` on, again and again, beginning with number
/// `first` of them.
void FunctionScreen::run(const OnDevice& function, ScreenLog* log, std::uint32_t begin,
                         std::uint32_t first, std::uint32_t inputs) {
  const auto each = static_cast<std::uint32_t>(function.per_thread);
  std::uint32_t threads = executions / each, mask = inputs / each - 1;
  const std::size_t skipped = std::size_t{begin} * static_cast<unsigned>(function.bits) / 8;
  const auto address = [&](const DeviceBuffer& buffer) {
    return static_cast<const void*>(buffer.as<const std::byte>() + skipped);
  };
  const void* operands[3] = {};
  for (std::size_t i = 0; i < function.operands.size(); ++i)
    operands[i] = address(function.operands[i]);
  void *results = results_.as(), *places = places_.as();
  if (function.kernel == nullptr) {
    compute_integers<<<threads / block, block>>>(static_cast<const std::uint64_t*>(operands[0]),
                                                 results_.as<std::uint64_t>(), threads, first, mask,
                                                 places_.as<std::uint32_t>());
  } else {
    void* arguments[] = {&results, &operands[0], &operands[1], &operands[2],
                         &threads, &first,       &mask,        &places};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(function.kernel),
                                dim3(threads / block), dim3(block), arguments, 0, nullptr),
               where);
  }
  check_cuda(cudaGetLastError(), where);
  const Comparison comparison{results,
                              address(function.expected),
                              places_.as<const std::uint32_t>(),
                              executions,
                              first,
                              mask,
                              function.bits,
                              function.per_thread};
  compare_results<<<executions / block, block>>>(comparison, log);
  check_cuda(cudaGetLastError(), where);
}

std::size_t FunctionScreen::run_pass() {
  logs_.clear();
  ++pass_;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    // Warps of an odd number further, in every pass.
    run(functions_[i], logs_.as<ScreenLog>() + i, 0, pass_ * 32 * 37, screened_inputs);
    outputs_ += executions;
  }
  mismatches_ += note_wrong_logs(logs_, functions_.size(), where, wrong_);
  return wrong_.size();
}

ScreenFault FunctionScreen::fault_of(std::size_t index, const ScreenMismatch& mismatch) {
  const FunctionCase& x = cases_[index];
  const std::uint32_t wrong = mismatch.expected ^ mismatch.got;
  ScreenFault fault;
  fault.test = test_of(x);
  fault.instruction = x.name;
  fault.processor = static_cast<int>(mismatch.processor);
  fault.block = static_cast<int>(mismatch.block);
  fault.operands = operands_text(x, mismatch.image);
  const formats::Format word = x.bits == 16 ? formats::uint16 : formats::uint32;
  fault.expected = formats::hex_text(word, mismatch.expected);
  fault.got = formats::hex_text(word, mismatch.got);
  for (int bit = 0; bit < 32; ++bit)
    if ((wrong >> bit & 1U) != 0) fault.bits.push_back(bit + (mismatch.word != 0 ? 32 : 0));
  // The inputs of the warp that was wrong, and no others, everywhere.
  const std::uint32_t inputs = 32 * static_cast<std::uint32_t>(functions_[index].per_thread);
  ScreenLog* const log = logs_.as<ScreenLog>() + cases_.size();
  check_cuda(cudaMemset(log, 0, sizeof *log), where);
  run(functions_[index], log, mismatch.image / inputs * inputs, 0, inputs);
  const ScreenLog again = read_log(logs_, cases_.size(), where);
  fault.repeated = again.executions[mismatch.processor][mismatch.block];
  fault.wrong_again =
      std::min<std::uint64_t>(fault.repeated, again.failures[mismatch.processor][mismatch.block]);
  fault.everywhere = is_wrong_everywhere(again);
  fault.recurrence = fault.repeated != 0 && fault.wrong_again == fault.repeated
                         ? Recurrence::permanent
                         : Recurrence::intermittent;
  return fault;
}

std::vector<ScreenFinding> FunctionScreen::findings(const FaultRoom& room) {
  /// Unproven is an instruction of which so many wrong results are wrong everywhere.
  constexpr std::size_t tried = 8;
  std::vector<ScreenFinding> found;
  for (const std::size_t index : wrong_) {
    const FunctionCase& x = cases_[index];
    const ScreenLog log = read_log(logs_, index, where);
    ScreenFinding finding;
    finding.count = {test_of(x), x.name, log.mismatches, wrong_places(log)};
    const std::size_t wanted = x.is_proven ? room(x.name) : std::max(tried, room(x.name));
    std::set<std::pair<std::uint32_t, std::uint32_t>> places;
    for (unsigned i = 0; i < log.listed() && finding.faults.size() < wanted; ++i)
      if (places.insert({log.entries[i].processor, log.entries[i].block}).second)
        finding.faults.push_back(fault_of(index, log.entries[i]));
    // Faults of one multiprocessor go first where others are the model's.
    const auto own = std::stable_partition(finding.faults.begin(), finding.faults.end(),
                                           [](const ScreenFault& f) { return !f.everywhere; });
    finding.count.unproven = !x.is_proven && own == finding.faults.begin();
    found.push_back(std::move(finding));
  }
  return found;
}

}  // namespace guardbit::gpu
