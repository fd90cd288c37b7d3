#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/explain/explain.hpp"
#include "emulator/functions/function_catalogue.hpp"

// The report of `verify`.
namespace guardbit::tools {

/// One output element, recorded and computed, with the model's own account of it.
struct ElementReport {
  std::string file;
  emulator::Element element;
  std::uint64_t expected = 0;
  std::uint64_t got = 0;
  bool equal = false;
  /// in codes of the result format; nothing for a NaN
  std::optional<std::uint64_t> distance;
  emulator::Explanation explanation;
  /// that prints this report again
  std::string command;
};

/// One result of a function, recorded and computed.
struct FunctionElement {
  std::string file;
  const emulator::Function* function = nullptr;
  /// its number in the tensors, and which result
  std::int64_t element = 0;
  std::size_t result = 0;
  emulator::OperandCodes operands{};
  std::uint64_t expected = 0, got = 0;
};

struct FileReport {
  std::string file;
  std::string instruction;
  std::string arch;
  std::string engine;
  std::int64_t outputs = 0;
  std::int64_t mismatches = 0;
};

/// What the atlas said of a recorded call, and whether all of D has its bits.
struct Prediction {
  std::string file;
  bool predicted = false;
  std::string plan, known;
  std::int64_t mismatches = 0;
};

struct FailedFile {
  std::string file;
  std::string error;
};

/// What one `verify` did.
struct VerifyReport {
  std::vector<FileReport> files;
  std::vector<ElementReport> elements;
  /// mismatches of functions
  std::vector<FunctionElement> function_elements;
  std::vector<Prediction> predictions;
  /// mismatches of plans, a line each
  std::vector<std::string> remarks;
  std::vector<FailedFile> failed;
  /// after an interruption
  std::vector<std::string> skipped;
  double seconds = 0;

  std::int64_t outputs() const;
  std::int64_t mismatches() const;
};

/// `engine` is what the user asked for, as it belongs into the command.
ElementReport report_element(const emulator::Capture& capture, const emulator::Element& element,
                             std::uint64_t got, const std::string& engine);

/// A line for a file, below the heads of its columns where it is the first.
void print_file(std::ostream& out, const FileReport& file, bool is_first);

/// The element, its operands, and how the model arrives at it.
void print_element(std::ostream& out, const ElementReport& report);

/// The elements that were looked at, and the sum.
void print_summary(std::ostream& out, const VerifyReport& report);

nlohmann::ordered_json to_json(const VerifyReport& report);

/// A word as a POSIX shell reads it back.
std::string shell_word(const std::string& text);

}  // namespace guardbit::tools
