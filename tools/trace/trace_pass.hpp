#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/trace/trace_options.hpp"
#include "tools/trace/trace_results.hpp"

// The pass of `trace` over files.
namespace guardbit::tools {

/// As the options of `trace` say it.
struct TraceSettings {
  std::string formats = default_trace_formats;
  std::string scales = "0:32:4";
  std::string policy = "pytorch";
  std::string layout = "flat";
  std::string from;
  double tolerance = 1e-3;
  /// 0: all
  int threads = 0;
  bool exact_product = false;
  /// only zeros, binades, infinities and NaNs
  bool histogram = false;
  /// files that cannot be read are left out
  bool keep_going = false;
};

/// What is lost of the tensors of files, folders and patterns. `pause` is called now and then; what
/// it throws ends the pass. formats::Error for what cannot be read.
TraceResults trace(const std::vector<std::string>& words, const TraceSettings& settings,
                   const std::function<void()>& pause);

/// The same of one file, which may have no tensors.
TraceResults trace_file(const std::string& file, const TraceSettings& settings,
                        const std::function<void()>& pause);

/// formats::Error where everything was left out.
void require_tensors(const TraceResults& results, bool keep_going);

}  // namespace guardbit::tools
