#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

// What a screening says about a device.
namespace guardbit::gpu {

/// How often a wrong result came again where it was seen.
enum class Recurrence : std::uint8_t { permanent, intermittent };

/// A wrong result.
struct ScreenFault {
  /// matrix, function, integer, product or memory
  std::string test;
  /// or the product, or the pattern of memory
  std::string instruction;
  /// multiprocessor and its processing block, where known
  std::optional<int> processor, block;
  /// of one result; of memory its address
  std::string operands;
  /// hexadecimal
  std::string expected, got;
  /// numbers of the bits that differ, ascending
  std::vector<int> bits;
  /// The same operands again at the same place: how often, and how often wrong.
  std::uint64_t repeated = 0, wrong_again = 0;
  Recurrence recurrence = Recurrence::intermittent;
  /// The same operands were wrong each time on every multiprocessor: the expected result may be.
  bool everywhere = false;
};

/// All wrong results of one instruction.
struct FaultCount {
  std::string test, instruction;
  std::uint64_t mismatches = 0;
  /// multiprocessors and their processing blocks, where known
  std::set<std::pair<int, int>> places;
  /// The instruction's model was never compared with hardware, and every multiprocessor differs
  /// alike: no fault of the device.
  bool unproven = false;

  std::set<int> processors() const {
    std::set<int> all;
    for (const auto& [processor, block] : places) all.insert(processor);
    return all;
  }
};

/// How many wrong results of an instruction are wanted in full.
using FaultRoom = std::function<std::size_t(const std::string& instruction)>;

/// What a pass found of one instruction: some of its wrong results, and how many there were.
struct ScreenFinding {
  FaultCount count;
  std::vector<ScreenFault> faults;
};

/// One kind of test on one device.
struct ScreenTest {
  std::string test;
  /// instructions, products, patterns
  std::uint64_t kinds = 0;
  /// results that were compared, those that were wrong, and those of unproven instructions
  std::uint64_t outputs = 0, mismatches = 0, unproven = 0;
  double seconds = 0;
  /// of products: what cuBLAS did while all results were compared, and alone
  double tflops = 0, tflops_alone = 0;
  /// why it could not test, or what is to be known of it
  std::string remark;
  bool tested = true;
};

/// What NVML says at a moment.
struct Telemetry {
  /// from the beginning on
  double seconds = 0;
  double watts = 0;
  unsigned sm_mhz = 0, memory_mhz = 0, celsius = 0;
};

/// Memory errors since the driver was loaded, as NVML counts them.
struct MemoryErrors {
  unsigned long long corrected = 0, uncorrected = 0;
};

struct DeviceReport {
  int index = 0;
  /// of NVIDIA: "GPU-…", and "00000000:1A:00.0"
  std::string name, uuid, pci, driver;
  double seconds = 0;
  std::uint64_t passes = 0;
  /// multiprocessors, and those that executed every matrix instruction
  int processors = 0, processors_seen = 0;
  std::vector<ScreenTest> tests;
  /// some of each instruction (fault_list.hpp); those of unproven ones apart
  std::vector<ScreenFault> faults, unproven;
  /// all of them
  std::vector<FaultCount> counts;
  std::vector<Telemetry> telemetry;
  std::optional<MemoryErrors> errors_before, errors_after;
  /// why it could not be tested; empty otherwise
  std::string failure;
};

/// One word for a device.
enum class Health : std::uint8_t { healthy, faulty, untested };

inline Health verdict_of(const DeviceReport& report) {
  if (!report.faults.empty()) return Health::faulty;
  if (report.errors_before && report.errors_after &&
      report.errors_after->uncorrected > report.errors_before->uncorrected)
    return Health::faulty;
  for (const ScreenTest& test : report.tests)
    if (test.mismatches != 0) return Health::faulty;
  if (!report.failure.empty()) return Health::untested;
  for (const ScreenTest& test : report.tests)
    if (test.tested) return Health::healthy;
  return Health::untested;
}

}  // namespace guardbit::gpu
