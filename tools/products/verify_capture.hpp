#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/products/verify_report.hpp"

// Recordings executed again and compared.
namespace guardbit::tools {

struct VerifySettings {
  /// of captures of kind gemm and conv2d; empty: captures of kind instruction, dot or function
  std::string plan;
  /// of captures of kind gemm: by the plan that the atlas gives for the recorded call
  bool predict = false;
  std::string engine = "auto";
  /// mismatches to explain, over all files
  std::size_t most_reports = 3;
  /// 0: all
  int threads = 0;
};

/// Executes a file and adds what it found to the report; false when interrupted. formats::Error for
/// a file that cannot be verified.
bool verify_file(const std::string& path, const VerifySettings& settings,
                 const std::function<bool()>& interrupted, VerifyReport& report);

}  // namespace guardbit::tools
