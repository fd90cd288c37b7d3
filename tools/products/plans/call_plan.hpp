#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/gemm/atlas/atlas.hpp"
#include "tools/products/gemm_input.hpp"

// Which plan a library takes for a product, from the call alone: what the command `plan` and
// Python's `plan` answer.
namespace guardbit::tools {

struct AskedCall {
  /// without strides: `layout` gives them
  emulator::atlas::StridedCall call;
  /// A and B row-major (N) or column-major (T)
  std::string layout = "NN";
  /// a plan book whose calls are answered exactly; empty: none
  std::string book;
  /// LIBRARY:ARCH
  std::string like =
      std::string(emulator::atlas::scope.library) + ":" + std::string(emulator::atlas::scope.arch);
};

struct CallPlan {
  /// with its strides
  emulator::atlas::StridedCall call;
  emulator::atlas::Answer answer;
  /// not the atlas'
  bool of_book = false;
};

/// formats::Error for a call, a library or a machine that the atlas does not hold.
CallPlan plan_of_call(const AskedCall& asked);

/// The call by which PyTorch multiplies such operands, row-major and without gaps; none where the
/// atlas holds no such calls (8-bit formats, C, scales, sparse A).
std::optional<AskedCall> call_of(const GemmInput& input);

/// "bmm 3 x 25 x 40 x 25, fp32" with the letters of those sizes that vary in their places.
std::string sizes_text(const emulator::atlas::StridedCall& call, std::string_view varied = {});
/// The line that says for what the atlas holds.
std::string scope_line();
/// A call without its strides.
nlohmann::ordered_json sizes_json(const emulator::atlas::StridedCall& call);
/// For what the atlas holds.
nlohmann::ordered_json scope_json();
nlohmann::ordered_json to_json(const CallPlan& plan);
void print(std::ostream& out, const CallPlan& plan);

}  // namespace guardbit::tools
