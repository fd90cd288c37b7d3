#include "gpu/cuda/screening/device_screen.hpp"

#include <chrono>
#include <memory>
#include <string_view>

#include "formats/support/error.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/screening/function_screen.hpp"
#include "gpu/cuda/screening/matrix_screen.hpp"
#include "gpu/cuda/screening/memory_screen.hpp"
#include "gpu/cuda/screening/nvml.hpp"
#include "gpu/cuda/screening/product_screen.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"
#include "gpu/screening/fault_list.hpp"

namespace guardbit::gpu {

namespace {

/// Device memory that the screening of memory leaves to the others, and to CUDA.
constexpr std::size_t memory_left = std::size_t{1} << 30;
/// Of each round, for every product.
constexpr double product_seconds = 0.1;

using Clock = std::chrono::steady_clock;

double seconds_from(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "GPU-1d0e63e4-…", as nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {digits[byte / 16], digits[byte % 16]};
  }
  return text;
}

class DeviceScreen {
 public:
  DeviceScreen(const HostDevice& device, const ScreenInputs& inputs, DeviceReport& report)
      : inputs_(inputs), report_(report), monitor_(device.pci) {
    start_ = Clock::now();
    report_.errors_before = monitor_.memory_errors();
    if (!inputs.matrix.cases.empty()) {
      matrix_ = std::make_unique<MatrixScreen>(inputs.matrix, device.processors);
      add_test("matrix", inputs.matrix.cases.size());
    }
    if (!inputs.functions.empty()) {
      functions_ = std::make_unique<FunctionScreen>(inputs.functions);
      add_test("function", inputs.functions.size());
    }
    for (const ProductCase& product : inputs.products) make_product(product);
    if (inputs.memory) {
      memory_ = std::make_unique<MemoryScreen>(memory_left);
      test_of("memory", MemoryScreen::patterns).remark =
          std::to_string(memory_->bytes() >> 30) + " GiB of memory";
    }
  }

  void run(double seconds, const std::function<bool(double)>& goes_on) {
    do {
      round();
      ++report_.passes;
    } while (goes_on(seconds_from(start_)) && seconds_from(start_) < seconds);
  }

  /// What is known when all is done.
  void finish() {
    report_.errors_after = monitor_.memory_errors();
    report_.seconds = seconds_from(start_);
    if (matrix_) report_.processors_seen = matrix_->processors_seen();
  }

 private:
  ScreenTest& test_of(const std::string& name, std::size_t kinds) {
    for (ScreenTest& test : report_.tests)
      if (test.test == name) return test;
    return add_test(name, kinds);
  }
  ScreenTest& add_test(const std::string& name, std::size_t kinds) {
    ScreenTest& test = report_.tests.emplace_back();
    test.test = name;
    test.kinds = kinds;
    return test;
  }

  void make_product(const ProductCase& product) {
    ScreenTest& test = add_test("product " + product.name, 1);
    products_.emplace_back();
    try {
      products_.back() = std::make_unique<ProductScreen>(product);
    } catch (const formats::Error& error) {
      test.remark = error.what();
    }
    if (products_.back() && products_.back()->follows_another_plan()) {
      test.remark = "most results differ from the first product on: cuBLAS follows another plan";
      products_.back().reset();
    }
    test.tested = products_.back() != nullptr;
  }

  /// Runs one test and notes what it found.
  template <class Screen, class Work>
  void run(const std::string& name, Screen& screen, Work work) {
    ScreenTest& test = test_of(name, 0);
    const Clock::time_point begin = Clock::now();
    const std::uint64_t before = screen.mismatches();
    work();
    test.seconds += seconds_from(begin);
    const std::uint64_t wrong = screen.mismatches() - before;
    if (wrong == 0) return;
    for (const ScreenFinding& finding : findings_of(screen, wrong)) {
      (finding.count.unproven ? test.unproven : test.mismatches) += finding.count.mismatches;
      note(report_, finding);
    }
  }

  /// Faults that the report has no room for are counted, not repeated.
  template <class Screen>
  std::vector<ScreenFinding> findings_of(Screen& screen, std::uint64_t wrong) {
    const FaultRoom room = [this](const std::string& name) { return room_for(report_, name); };
    if constexpr (requires { screen.findings(room); }) {
      return screen.findings(room);
    } else {
      ScreenFinding finding;
      finding.faults = screen.faults(most_faults_of_instruction);
      if (!finding.faults.empty()) {
        finding.count.test = finding.faults[0].test;
        finding.count.instruction = finding.faults[0].instruction;
      }
      finding.count.mismatches = wrong;
      return {finding};
    }
  }

  void round() {
    if (matrix_) {
      run("matrix", *matrix_, [&] { matrix_->run_pass(); });
      test_of("matrix", 0).outputs = matrix_->outputs();
      watch();
    }
    if (functions_) {
      run("function", *functions_, [&] { functions_->run_pass(); });
      test_of("function", 0).outputs = functions_->outputs();
    }
    for (std::size_t i = 0; i < products_.size(); ++i) {
      if (!products_[i]) continue;
      const ProductCase& product = inputs_.products[i];
      ProductScreen& screen = *products_[i];
      run("product " + product.name, screen, [&] { screen.run(product_seconds); });
      ScreenTest& test = test_of("product " + product.name, 0);
      test.outputs = screen.outputs();
      const double operations = 2e-12 * product.m * product.n * product.k;
      test.tflops = operations * static_cast<double>(screen.count()) / screen.seconds();
      test.tflops_alone = operations / screen.seconds_alone();
      watch();
    }
    if (memory_) {
      run("memory", *memory_, [&] { memory_->run(); });
      test_of("memory", 0).outputs = memory_->words();
      watch();
    }
  }

  /// Not more often than ten times a second.
  void watch() {
    const double now = seconds_from(start_);
    if (!report_.telemetry.empty() && now - report_.telemetry.back().seconds < 0.1) return;
    if (const auto telemetry = monitor_.read(now)) report_.telemetry.push_back(*telemetry);
  }

  const ScreenInputs& inputs_;
  DeviceReport& report_;
  DeviceMonitor monitor_;
  Clock::time_point start_;
  std::unique_ptr<MatrixScreen> matrix_;
  std::unique_ptr<FunctionScreen> functions_;
  std::vector<std::unique_ptr<ProductScreen>> products_;
  std::unique_ptr<MemoryScreen> memory_;
};

}  // namespace

std::vector<HostDevice> devices_of_host() {
  find_device();  // says what is wrong where there is none
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "CUDA");
  std::vector<HostDevice> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, index), "CUDA");
    char pci[32] = {};
    check_cuda(cudaDeviceGetPCIBusId(pci, sizeof pci, index), "CUDA");
    Device device;
    device.capability = properties.major * 10 + properties.minor;
    devices.push_back({index, properties.name, uuid_text(properties.uuid), pci,
                       properties.multiProcessorCount, runs_compiled_code(device)});
  }
  return devices;
}

DeviceReport screen_device(const HostDevice& device, const ScreenInputs& inputs, double seconds,
                           const std::function<bool(double)>& goes_on) {
  DeviceReport report;
  report.index = device.index;
  report.name = device.name;
  report.uuid = device.uuid;
  report.pci = device.pci;
  report.processors = device.processors;
  try {
    if (!device.is_compiled_for)
      throw formats::Error("CUDA", "this program was compiled for " +
                                       std::string(compiled_architecture()) + " alone");
    check_cuda(cudaSetDevice(device.index), "CUDA");
    DeviceScreen screen(device, inputs, report);
    screen.run(seconds, goes_on);
    screen.finish();
  } catch (const formats::Error& error) {
    report.failure = error.what();
  }
  return report;
}

}  // namespace guardbit::gpu
