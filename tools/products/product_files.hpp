#pragma once

#include <string>

#include "tools/products/gemm_input.hpp"

namespace CLI {
class App;
}

// The operands of a product in files.
namespace guardbit::tools {

/// Where the operands of a product are: FILE or FILE:TENSOR; scales may be numbers.
struct GemmPlaces {
  std::string a, b, c, bias, scale_a, scale_b;
  /// format of codes that files have as integers
  std::string from = {};
  bool sparse = false;
};

/// --c, --bias, --scale-a, --scale-b, --sparse, --from.
void add_operand_options(CLI::App& command, GemmPlaces& places);

/// Reads and checks them. formats::Error names option and file.
GemmInput read_gemm_operands(const GemmPlaces& places);

}  // namespace guardbit::tools
