#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace guardbit::experiments {

// How frameworks choose scales, in the FP32 arithmetic in which they do: host floats are IEEE's,
// and contraction is switched off.

/// What becomes of x in a group: y = x * encode (or x / encode), rounded to FP32, then rounded into
/// the element format; the element stands for itself times `decode`.
struct GroupScale {
  float encode = 1;
  double decode = 1;
  bool divides = false;
};

/// The largest magnitude as a reduction on a GPU gives it that lets NaN through.
float amax_of(const float* values, std::size_t count);

/// Transformer Engine, compute_scale_from_amax: amax at least `epsilon`, of 0, infinity and NaN
/// scale 1, else largest/amax, an infinite one `for_infinity`; cut to a power of two on request.
/// The element stands for itself over the scale: times its reciprocal.
GroupScale te_current_scale(float amax, float largest, bool power_of_two, float epsilon = 0,
                            float for_infinity = 0x1.fffffep127F);

/// torchao: amax at least 1e-12, divided in FP64, narrowed to FP32, on request cut to a power of
/// two.
GroupScale torchao_scale(float amax, float largest, bool power_of_two);

/// DeepGEMM: sf = max(amax, floor)/largest, on request raised to a power of two; x times 1/sf. Of a
/// group of zeros without a floor, scale 1; an infinite 1/sf is FP32's largest number.
GroupScale deepgemm_scale(float amax, float largest, float floor, bool power_of_two);

/// How the exponent of an MX block's scale follows from its largest magnitude.
enum class MxMode : std::uint8_t {
  /// floor(log2 amax) less the element's largest exponent (OCP MX 1.0, 6.3)
  floor,
  /// ceil(log2 amax) less that
  ceil,
  /// floor, after half an element ulp was added to amax
  even,
  /// ceil(log2(amax / largest)) of the quotient in FP32 (cuBLAS, cuDNN, CUTLASS)
  rceil,
};
constexpr auto words(MxMode) { return std::array{"floor", "ceil", "even", "rceil"}; }

/// The E8M0 code; 0 for a block of zeros, 255 for NaN; of infinity 254 under rceil, as satfinite
/// conversions give it.
std::uint8_t mx_scale_code(MxMode mode, const formats::Format& element, float amax);
GroupScale mx_scale(MxMode mode, const formats::Format& element, float amax);

/// NVFP4's two levels.
enum class Nvfp4Rule : std::uint8_t {
  /// the scale of a tiny block becomes zero, and the block is lost
  transformer_engine,
  /// block scales are at least E4M3's smallest normal number; a tensor
  /// of zeros is NaN
  torchao,
};

class Nvfp4Scales {
 public:
  Nvfp4Scales(Nvfp4Rule rule, float tensor_amax);

  GroupScale block(float amax) const;
  /// What block scales are multiplied by, or divided by (torchao).
  float tensor_scale() const { return tensor_scale_; }

 private:
  Nvfp4Rule rule_;
  float tensor_scale_;
};

/// Transformer Engine's delayed scaling of one tensor.
struct DelayedRules {
  enum class Algorithm : std::uint8_t { max, most_recent };
  enum class Kernel : std::uint8_t {
    /// a tensor without amax keeps its history (TE PR 825)
    bulk,
    /// the history always rolls
    single,
  };
  float largest = 448;
  std::size_t history = 1024;
  Algorithm algorithm = Algorithm::max;
  Kernel kernel = Kernel::bulk;
  float margin = 0;
  /// (largest/amax)/2^margin, as the fallback in Python computes it
  bool python = false;
};

class DelayedScale {
 public:
  /// Throws Error for a history shorter than 1.
  explicit DelayedScale(const DelayedRules& rules);

  float scale() const { return scale_; }
  GroupScale group() const;
  /// While the tensor is quantised: NaN does not count.
  void observe(float amax);
  /// The end of a step. `reduced` is the largest amax of all ranks, where ranks share it.
  void update(float reduced = 0);
  const std::vector<float>& history() const { return history_; }
  /// Puts back what history() and scale() gave; the history's length stays.
  void restore(std::vector<float> history, float scale);

 private:
  DelayedRules rules_;
  /// the present step's first, then the oldest to the newest
  std::vector<float> history_;
  float scale_ = 1;
};

}  // namespace guardbit::experiments
