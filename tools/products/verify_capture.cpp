#include "tools/products/verify_capture.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/capture/function_capture.hpp"
#include "emulator/capture/product_capture.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/library_words.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tools/console/read_json.hpp"

namespace guardbit::tools {

namespace {

/// Outputs between two looks at the interruption.
constexpr std::int64_t outputs_per_part = std::int64_t{1} << 18;

/// Results in memory, laid out like d.
struct Results {
  std::vector<std::byte> bytes;
  emulator::ConstCodes codes;
};

/// Executes all of a capture in parts; false when interrupted.
bool execute(const emulator::Engine& engine, const emulator::Capture& capture, int threads,
             const std::function<bool()>& interrupted, Results& results) {
  emulator::MatrixBatch batch = capture.operands.batch;
  const auto width = static_cast<std::size_t>(formats::container_bits(capture.instruction.d) / 8);
  results.bytes.resize(static_cast<std::size_t>(capture.operands.outputs()) * width);
  batch.d = {results.bytes.data(), static_cast<int>(width)};
  results.codes = {results.bytes.data(), static_cast<int>(width), 0};
  if (results.bytes.empty()) return true;
  const std::int64_t each = std::int64_t{batch.shape.m} * batch.shape.n;
  const std::int64_t executions = std::max<std::int64_t>(1, outputs_per_part / each);
  for (std::int64_t begin = 0; begin < batch.count; begin += executions) {
    if (interrupted()) return false;
    const std::int64_t count = std::min(executions, batch.count - begin);
    emulator::run_batch(engine, capture.instruction,
                        emulator::part_of(capture.instruction, batch, begin, count), threads);
  }
  return true;
}

/// What the program asked for, from the capture's metadata.
emulator::atlas::ProductCall recorded_call(const std::string& path,
                                           const emulator::GemmCapture& capture) {
  const std::string where = formats::printable(path);
  const auto entry = capture.metadata.find("call");
  if (entry == capture.metadata.end())
    throw formats::Error(where, "has no call in its metadata, which --predict needs");
  if (capture.arch != emulator::atlas::scope.arch)
    throw formats::Error(
        where,
        "is of " + formats::printable(capture.arch) + ", and the atlas holds for another machine",
        std::string(emulator::atlas::scope.arch));
  try {
    const nlohmann::json call = nlohmann::json::parse(entry->second, limited_depth(where));
    const auto strides = [&](const char* key) {
      return call.at(key).get<std::vector<std::int64_t>>();
    };
    return emulator::atlas::call_of({.op = call.at("op").get<std::string>(),
                                     .numbers = call.at("dtype").get<std::string>(),
                                     .m = call.at("m").get<std::int64_t>(),
                                     .n = call.at("n").get<std::int64_t>(),
                                     .k = call.at("k").get<std::int64_t>(),
                                     .batch = call.value("batch", std::int64_t{1}),
                                     .a_stride = strides("a_stride"),
                                     .b_stride = strides("b_stride")},
                                    where);
  } catch (const nlohmann::json::exception& error) {
    throw formats::Error(where,
                         "call in its metadata cannot be read: " +
                             formats::printable(formats::without_library_words(error.what())));
  }
}

/// Executes a recorded library call by the plan and compares; false when interrupted.
bool verify_plan(const std::string& path, const VerifySettings& options,
                 const std::function<bool()>& interrupted, VerifyReport& report) {
  const emulator::GemmCapture capture = emulator::read_gemm_capture(path);
  emulator::atlas::Answer answer;
  if (options.predict) {
    answer = emulator::atlas::plan_of(recorded_call(path, capture));
    if (answer.known == emulator::atlas::Known::unknown) {
      report.predictions.push_back({path, false, "", "unknown", 0});
      report.remarks.push_back(path + ": no plan is known: " + answer.why);
      return true;
    }
  }
  emulator::GemmPlan plan =
      options.predict ? answer.plan : emulator::parse_plan(options.plan, "--plan");
  capture.set_factors(plan.epilogue);
  if (plan.epilogue.output != capture.d.format)
    throw formats::Error(formats::printable(path), "d is " + formats::name_of(capture.d.format) +
                                                       " and the plan's result " +
                                                       formats::name_of(plan.epilogue.output));
  const emulator::CodeMatrix d =
      emulator::execute(plan, capture.lowered(plan.convolution), options.threads,
                        [&](std::int64_t) { return !interrupted(); });
  if (interrupted()) return false;
  const std::vector<std::int64_t> failed = emulator::mismatches(capture, d);
  report.files.push_back(
      {path, emulator::to_text(plan), capture.arch, "plan", capture.outputs(), std::ssize(failed)});
  if (options.predict)
    report.predictions.push_back({path, failed.empty(), emulator::to_text(plan),
                                  std::string(formats::word_of(answer.known)), std::ssize(failed)});
  for (std::size_t i = 0; i < std::min(options.most_reports, failed.size()); ++i) {
    const std::int64_t at = failed[i];
    report.remarks.push_back(path + ": row " + std::to_string(at / d.columns % d.rows) +
                             ", column " + std::to_string(at % d.columns) + ": recorded " +
                             formats::hex_text(d.format, capture.d[at]) + ", the plan gives " +
                             formats::hex_text(d.format, d[at]));
  }
  return true;
}

/// Computes a function's recorded results anew and compares.
void verify_function(const std::string& path, const formats::TensorFile& file,
                     const VerifySettings& options, VerifyReport& report) {
  if (options.engine != "auto")
    throw formats::Error("--engine", "functions have no engines to choose from");
  const emulator::FunctionCapture capture =
      emulator::make_function_capture(file, formats::printable(path));
  const emulator::Function& function = *capture.function;
  const auto results = emulator::function_results(function, capture.operands, options.threads);
  std::int64_t mismatches = 0;
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      const formats::Format& format = function.formats.results.at(k);
      const std::uint64_t recorded = capture.recorded[k][i];
      if (emulator::same_function_result(format, recorded, results[k][i])) continue;
      ++mismatches;
      if (report.elements.size() + report.function_elements.size() >= options.most_reports)
        continue;
      FunctionElement element = {path,     &function,    static_cast<std::int64_t>(i), k, {},
                                 recorded, results[k][i]};
      for (std::size_t operand = 0; operand < capture.operands.size(); ++operand)
        element.operands.at(operand) = capture.operands[operand][i];
      report.function_elements.push_back(element);
    }
  }
  report.files.push_back(
      {path, std::string(function.name), capture.arch, "function", capture.outputs(), mismatches});
}

}  // namespace

bool verify_file(const std::string& path, const VerifySettings& options,
                 const std::function<bool()>& interrupted, VerifyReport& report) {
  if (options.predict || !options.plan.empty())
    return verify_plan(path, options, interrupted, report);
  formats::TensorFile file = formats::read_safetensors(path);
  if (emulator::is_function_capture(file)) {
    verify_function(path, file, options, report);
    return true;
  }
  emulator::Capture capture = emulator::make_capture(std::move(file), formats::printable(path));
  capture.path = path;
  const emulator::Engine& engine = emulator::require_engine(options.engine, capture.instruction);
  Results results;
  if (!execute(engine, capture, options.threads, interrupted, results)) return false;
  const std::size_t wanted =
      options.most_reports -
      std::min(options.most_reports, report.elements.size() + report.function_elements.size());
  const emulator::MatrixBatch& batch = capture.operands.batch;
  const emulator::Comparison comparison = emulator::compare(
      capture.instruction, batch, capture.operands.recorded, results.codes, wanted);
  for (const emulator::Element& element : comparison.first) {
    const std::int64_t place =
        (element.execution * batch.shape.m + element.row) * batch.shape.n + element.column;
    report.elements.push_back(
        report_element(capture, element, results.codes[place], options.engine));
  }
  report.files.push_back({path, std::string(std::string_view(capture.instruction.name)),
                          capture.arch, std::string(engine.name), capture.operands.outputs(),
                          comparison.mismatches});
  return true;
}

}  // namespace guardbit::tools
