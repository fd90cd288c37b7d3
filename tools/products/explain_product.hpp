#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "emulator/capture/product_capture.hpp"
#include "formats/tensors/tensor.hpp"
#include "tools/products/explanation.hpp"
#include "tools/products/product_files.hpp"

// How a recorded product is explained: its operands judge it first, then plans are searched.
namespace guardbit::tools {

/// What was asked for, where it is not what the capture says.
struct AskedProduct {
  std::optional<double> alpha, beta;
  /// empty: the capture's
  std::string activation, arch;
  bool tf32 = false;
};

struct ExplainSettings {
  /// exact plans to look for
  std::size_t most_plans = 8;
  /// seconds; 0: none
  double time_limit = 60;
  /// 0: all
  int threads = 0;
  /// Told what is being looked at.
  std::function<void(const std::string& text)> status = {};
  /// Asked between plans, from any thread; ends the search by answering true.
  std::function<bool()> interrupted = {};
};

/// A capture of operands and the result D, read from `place`. formats::Error where D is no product
/// of theirs.
emulator::GemmCapture capture_of(GemmInput input, const formats::Tensor& d,
                                 const std::string& place);

/// Sets what was asked for; formats::Error that begins with an option's name.
void set_asked(const AskedProduct& asked, emulator::GemmCapture& capture);

Explanation explain_product(const emulator::GemmCapture& capture, const ExplainSettings& settings);

}  // namespace guardbit::tools
