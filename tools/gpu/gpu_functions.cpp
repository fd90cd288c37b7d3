#include "tools/gpu/gpu_functions.hpp"

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/text.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/device/on_devices.hpp"
#include "gpu/cuda/function/program_validation.hpp"
#include "gpu/cuda/function/ptx_validation.hpp"
#include "tools/catalogue/function_facts.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/elapsed.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"
#include "tools/gpu/devices_option.hpp"
#include "tools/gpu/provenance.hpp"

namespace guardbit::tools {

namespace {

using gpu::FunctionReport;
using Json = nlohmann::ordered_json;

Json json_of(const FunctionReport& report) {
  Json examples = Json::array();
  for (const gpu::FunctionMismatch& m : report.examples)
    examples.push_back({{"x", hex_digits(m.operands[0], 16)},
                        {"y", hex_digits(m.operands[1], 16)},
                        {"z", hex_digits(m.operands[2], 16)},
                        {"device", hex_digits(m.device, 16)},
                        {"model", hex_digits(m.model, 16)}});
  return {{"function", report.function},
          {"inputs", report.compared},
          {"mismatches", report.mismatches},
          {"digest", hex_digits(report.digest, 16)},
          {"first_digest", hex_digits(report.first_digest, 16)},
          {"examples", examples}};
}

}  // namespace

int validate_functions(const FunctionCampaign& campaign) {
  const gpu::Device device = gpu::require_device();
  const std::vector<std::string> names =
      campaign.names.empty() ? gpu::modelled_instructions() : campaign.names;
  std::optional<formats::AtomicOutput> file;
  if (!campaign.output.empty()) file.emplace(campaign.output);  // fails before the work
  const auto start = std::chrono::steady_clock::now();
  const Interruption interruption;
  Json rows = Json::array();
  std::uint64_t inputs = 0, mismatches = 0;
  {
    ProgressLine progress("validating", names.size());
    std::vector<FunctionReport> reports(names.size());
    const auto goes_on = [&] { return !interruption.asked_for(); };
    const auto note = [&](std::size_t i) {
      const FunctionReport& report = reports[i];
      inputs += report.compared;
      mismatches += report.mismatches;
      rows.push_back(json_of(report));
      if (!campaign.json && (names.size() <= 8 || report.mismatches != 0))
        std::cout << report.function << ": " << report.compared << " inputs, "
                  << counted(report.mismatches, "mismatch", "es") << '\n';
      progress.update(i + 1);
    };
    gpu::divide_among(campaign.devices, {.count = names.size(),
                                         .work =
                                             [&](std::size_t i) {
                                               reports[i] = gpu::validate_instruction(
                                                   names[i], campaign.inputs,
                                                   [&](std::uint64_t) { return goes_on(); });
                                             },
                                         .finished = note,
                                         .goes_on = goes_on});
  }
  Json pairs = Json::array();
  if (campaign.names.empty() && !interruption.asked_for()) {
    for (const gpu::ProgramReport& report : gpu::validate_programs(campaign.inputs)) {
      inputs += report.compared;
      mismatches += report.mismatches;
      pairs.push_back({{"function", report.function},
                       {"inputs", report.compared},
                       {"mismatches", report.mismatches}});
      if (!campaign.json && report.mismatches != 0)
        std::cout << report.function << ": " << report.compared << " pairs, "
                  << counted(report.mismatches, "mismatch", "es") << '\n';
    }
  }
  Json summary = provenance(device);
  summary["date"] = today();
  summary["functions"] = rows;
  summary["programs"] = pairs;
  summary["total"] = {{"functions", rows.size()},
                      {"inputs", inputs},
                      {"mismatches", mismatches},
                      {"seconds", seconds_since(start)}};
  if (file) {
    file->write(summary.dump(1) + "\n");
    file->commit();
  }
  if (campaign.json) {
    std::cout << summary.dump(1) << '\n';
  } else {
    std::cout << rows.size() << " of " << counted(names.size(), "function") << ", " << inputs
              << " inputs, " << counted(mismatches, "mismatch", "es") << " on "
              << devices_text(campaign.devices, device) << '\n';
  }
  interruption.check();
  return mismatches == 0 ? 0 : exit_mismatch;
}

void record_function(const std::string& name, const std::string& path, std::uint32_t count) {
  const emulator::Function& function =
      emulator::require_function("sm_90", name, "gpu record --function");
  const gpu::Device device = gpu::require_device();
  const gpu::FunctionRecording recording = gpu::record_instruction(name, count);
  std::vector<formats::Tensor> tensors;
  const auto add = [&](const char* tensor, const formats::Format& format,
                       const std::vector<std::uint64_t>& codes) {
    tensors.push_back(formats::tensor_of_codes(tensor, format, formats::Packing::container,
                                               {static_cast<std::int64_t>(codes.size())}, codes));
  };
  for (std::size_t i = 0; i < recording.operands.size(); ++i)
    add(emulator::operand_names.at(i), function.formats.operands.at(i), recording.operands[i]);
  add(emulator::result_names[0], function.formats.results[0], recording.results);
  std::map<std::string, std::string> metadata = {
      {"capture", "1"},    {"kind", "function"},    {"function", name},      {"arch", "sm_90"},
      {"toolkit", "13.0"}, {"device", device.name}, {"cuda", device.toolkit}};
  if (!device.driver.empty()) metadata["driver"] = device.driver;
  formats::write_tensors(path, metadata, tensors);
  std::cout << "recorded " << count << " inputs of " << name << '\n';
}

}  // namespace guardbit::tools
