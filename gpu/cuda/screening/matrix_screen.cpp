#include "gpu/cuda/screening/matrix_screen.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "formats/text.hpp"
#include "gpu/cuda/screening/screen_logs.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/screening/log_places.hpp"
#include "gpu/validation/device_capture.hpp"

namespace guardbit::gpu {

namespace {

constexpr std::string_view where = "gpu screen";

/// Warps and warpgroups on a multiprocessor at a time, and executions of each: together some
/// hundred microseconds for an instruction.
constexpr int warps_per_processor = 32, warpgroups_per_processor = 2;
constexpr int warp_executions = 1024, memory_executions = 96, warpgroup_executions = 64;

/// Kernels that are run until a wrong result's place executes the same operands again.
constexpr int most_attempts = 16;

/// How often a worker executes an image before it goes on to the next.
int repetitions_of(const PackedCase& x) {
  const Unit unit = x.instruction->unit;
  const int executions = unit == Unit::mma    ? warp_executions
                         : unit == Unit::wmma ? memory_executions
                                              : warpgroup_executions;
  return std::max(2, executions / x.images);
}

int workers_of(const TensorCoreInstruction& instruction, int processors) {
  return processors *
         (instruction.unit == Unit::wgmma ? warpgroups_per_processor : warps_per_processor);
}

std::size_t scratch_bytes(const ScreenSet& set, int processors) {
  std::size_t bytes = 0;
  for (const PackedCase& x : set.cases)
    if (x.instruction->unit == Unit::wmma)
      bytes = std::max(bytes, static_cast<std::size_t>(x.d_bytes) *
                                  static_cast<std::size_t>(workers_of(*x.instruction, processors)));
  return bytes;
}

}  // namespace

MatrixScreen::MatrixScreen(const ScreenSet& set, int processors)
    : set_(set),
      processors_(processors),
      bytes_(set.bytes, where),
      logs_((set.cases.size() + 1) * sizeof(ScreenLog), where),
      scratch_(scratch_bytes(set, processors), where) {
  for (const PackedCase& x : set.cases)
    if (x.instruction->unit == Unit::tcgen05)
      throw formats::Error(std::string(where), "screens no tcgen05 instructions yet");
  if (processors > most_processors)
    throw formats::Error(std::string(where), "counts at most 256 multiprocessors");
}

DeviceImages MatrixScreen::images_of(std::size_t index, ScreenLog* log, int image,
                                     int repetitions) const {
  const PackedCase& x = set_.cases[index];
  const TensorCoreInstruction& instruction = *x.instruction;
  const auto skipped = static_cast<std::size_t>(std::max(image, 0));
  const auto address = [&](std::size_t begin, int bytes) {
    return bytes_.as<const std::byte>() + begin + skipped * static_cast<std::size_t>(bytes);
  };
  return {.a = address(x.a, x.a_bytes),
          .b = address(x.b, x.b_bytes),
          .c = address(x.c, x.c_bytes),
          .e = instruction.sparse ? address(x.e, x.e_bytes) : nullptr,
          .a_scale = instruction.scale.count != 0 ? address(x.a_scale, x.a_scale_bytes) : nullptr,
          .b_scale = instruction.scale.count != 0 ? address(x.b_scale, x.b_scale_bytes) : nullptr,
          .d = scratch_.as(),
          .images = image < 0 ? x.images : 1,
          .a_bytes = x.a_bytes,
          .b_bytes = x.b_bytes,
          .c_bytes = x.c_bytes,
          .d_bytes = x.d_bytes,
          .expected = address(x.expected, x.d_bytes),
          .log = log,
          .workers = workers_of(instruction, processors_),
          .repetitions = repetitions != 0 ? repetitions : repetitions_of(x),
          .fault = index == faulty_ ? fault_ : no_fault_};
}

ScreenLog MatrixScreen::read_log(std::size_t index) const {
  return gpu::read_log(logs_, index, where);
}

std::size_t MatrixScreen::run_pass() {
  logs_.clear();
  for (std::size_t i = 0; i < set_.cases.size(); ++i) {
    const PackedCase& x = set_.cases[i];
    const DeviceImages images = images_of(i, logs_.as<ScreenLog>() + i, -1, 0);
    kernel_of (*x.instruction)(images);
    check_cuda(cudaGetLastError(), x.instruction->name);
    outputs_ += static_cast<std::uint64_t>(images.workers) * static_cast<unsigned>(x.images) *
                static_cast<unsigned>(images.repetitions) * static_cast<unsigned>(x.outputs);
  }
  mismatches_ += note_wrong_logs(logs_, set_.cases.size(), where, wrong_);
  return wrong_.size();
}

ScreenLog MatrixScreen::run_case(std::size_t index, int image, int repetitions, int quarter) {
  const PackedCase& x = set_.cases[index];
  ScreenLog* const log = logs_.as<ScreenLog>() + set_.cases.size();
  check_cuda(cudaMemset(log, 0, sizeof *log), where);
  DeviceImages images = images_of(index, log, image, repetitions);
  images.quarter = quarter;
  kernel_of (*x.instruction)(images);
  check_cuda(cudaGetLastError(), x.instruction->name);
  return read_log(set_.cases.size());
}

void MatrixScreen::inject(const Fault* none, const Fault* fault, std::size_t index) {
  no_fault_ = none;
  fault_ = fault;
  faulty_ = index;
}

ScreenFault MatrixScreen::fault_of(const PackedCase& x, std::size_t index, const ScreenCase& made,
                                   const ScreenMismatch& mismatch) {
  const std::uint32_t wrong = mismatch.expected ^ mismatch.got;
  const OutputPlace place =
      wrong_output_at(made, mismatch.image, mismatch.lane, mismatch.word, wrong);
  ScreenFault fault;
  fault.test = "matrix";
  fault.instruction = capture_stem(*x.instruction);
  fault.processor = static_cast<int>(mismatch.processor);
  fault.block = static_cast<int>(mismatch.block);
  fault.operands = operands_text(made, place);
  // The word that differs, of which an output may be a half, or which may be half of one.
  fault.expected = formats::hex_text(formats::uint32, mismatch.expected);
  fault.got = formats::hex_text(formats::uint32, mismatch.got);
  for (int bit = 0; bit < 32; ++bit)
    if ((wrong >> bit & 1U) != 0) fault.bits.push_back(bit);
  // Few executions may be over before the last multiprocessors begin, and leave some without any.
  // A warpgroup's warps have rows of their own, and are not always in the same processing blocks:
  // only the warp that was wrong counts, where it was, and the kernel runs until it is there again.
  const int quarter =
      x.instruction->unit == Unit::wgmma ? static_cast<int>(mismatch.lane / 32) : -1;
  ScreenLog again{};
  for (int attempt = 0; attempt < most_attempts && fault.repeated == 0; ++attempt) {
    const int executions = attempt == 0 ? 64 : 1024;
    again = run_case(index, static_cast<int>(mismatch.image), executions, quarter);
    fault.repeated = again.executions[mismatch.processor][mismatch.block];
  }
  fault.wrong_again = again.failures[mismatch.processor][mismatch.block];
  fault.everywhere = is_wrong_everywhere(again);
  fault.recurrence = fault.repeated != 0 && fault.wrong_again == fault.repeated
                         ? Recurrence::permanent
                         : Recurrence::intermittent;
  return fault;
}

std::vector<ScreenFinding> MatrixScreen::findings(const FaultRoom& room) {
  std::vector<ScreenFinding> found;
  for (const std::size_t index : wrong_) {
    const ScreenLog log = read_log(index);
    const PackedCase& x = set_.cases[index];
    ScreenFinding finding;
    finding.count = {"matrix", capture_stem(*x.instruction), log.mismatches, wrong_places(log)};
    const std::size_t wanted = room(finding.count.instruction);
    std::set<std::pair<std::uint32_t, std::uint32_t>> places;
    std::optional<ScreenCase> made;
    for (unsigned i = 0; i < log.listed() && finding.faults.size() < wanted; ++i) {
      const ScreenMismatch& mismatch = log.entries[i];
      if (!places.insert({mismatch.processor, mismatch.block}).second) continue;
      if (!made) made = make_screen_case(*x.instruction, set_.seed);
      finding.faults.push_back(fault_of(x, index, *made, mismatch));
    }
    found.push_back(std::move(finding));
  }
  return found;
}

int MatrixScreen::processors_seen() const {
  std::array<bool, most_processors> seen{};
  seen.fill(!set_.cases.empty());
  for (std::size_t i = 0; i < set_.cases.size(); ++i) {
    const ScreenLog log = read_log(i);
    for (int p = 0; p < most_processors; ++p) {
      const auto& executions = log.executions[p];
      seen[static_cast<std::size_t>(p)] &=
          std::any_of(std::begin(executions), std::end(executions), [](auto n) { return n != 0; });
    }
  }
  return static_cast<int>(std::count(seen.begin(), seen.end(), true));
}

}  // namespace guardbit::gpu
