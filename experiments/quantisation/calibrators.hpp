#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::experiments {

/// Habits of existing calibrators that change what they choose, each with its name on the command
/// line. The sources are NVIDIA's ModelOpt (calib/histogram.py, tensor_quant.py), which took them
/// from pytorch-quantization.
struct CalibrationQuirks {
  /// `left_edge`: the percentile's amax is the left edge of the bin in which the cumulated share is
  /// reached, so that more than asked for is clipped. Otherwise the right edge.
  bool left_edge = false;
  /// `zero_bin`: entropy takes the second bin's count for the first bin's, too.
  bool zero_bin = false;
  /// `zero_bin_kept`: and leaves it there for later calibrations of the same histogram (older
  /// versions, whose "copy" of a NumPy array was a view). Includes zero_bin.
  bool zero_bin_kept = false;
  /// `last_minimum`: of equally small divergences the last. Otherwise the first.
  bool last_minimum = false;
  /// `fp32_counts`: a bin is counted up by ones in FP32, and stops at 2^24 (torch.histc).
  bool fp32_counts = false;
  /// `least_edge`: the first bin begins at the smallest magnitude (numpy.histogram), not at 0.
  bool least_edge = false;

  friend bool operator==(const CalibrationQuirks&, const CalibrationQuirks&) = default;
};

/// `modelopt` (its usual way through torch.histc), `modelopt_numpy` (through numpy.histogram, with
/// the view), `none`, or names of quirks between commas. Throws formats::Error, beginning with
/// `where`.
CalibrationQuirks parse_quirks(std::string_view text, std::string_view where);
/// What parse_quirks reads, names of quirks between commas.
std::string to_text(const CalibrationQuirks& quirks);
inline constexpr std::string_view quirk_names =
    "left_edge,zero_bin,zero_bin_kept,last_minimum,fp32_counts,least_edge";

/// How many magnitudes lie in each bin; bin i is [edges[i], edges[i + 1]), the last one closed.
struct MagnitudeHistogram {
  std::vector<std::int64_t> counts;
  /// FP32 numbers, one more than bins
  std::vector<double> edges;
};

/// Counts batches of numbers. The first batch chooses the range of the bins; larger numbers of
/// later batches get more bins of the same width.
class HistogramCollector {
 public:
  explicit HistogramCollector(const CalibrationQuirks& quirks, std::size_t bins = 2048)
      : quirks_(quirks), bins_(bins) {}

  /// Throws formats::Error, beginning with `where`, for infinities and NaNs.
  void collect(std::span<const float> numbers, std::string_view where);
  const MagnitudeHistogram& histogram() const { return histogram_; }
  MagnitudeHistogram& histogram() { return histogram_; }

 private:
  void begin(float least, float largest);
  void extend(float largest);

  CalibrationQuirks quirks_;
  std::size_t bins_;
  MagnitudeHistogram histogram_;
};

enum class Calibrator : std::uint8_t {
  /// the largest magnitude
  max,
  /// a share of the numbers is not clipped
  percentile,
  /// least divergence of the clipped histogram from its merged bins
  entropy,
  /// least squared error of the bins' centres
  mse,
  /// least squared error of the numbers, at 39 multiples of the largest magnitude
  search,
};
constexpr auto words(Calibrator) {
  return std::array{"max", "percentile", "entropy", "mse", "search"};
}

struct CalibrationOptions {
  int bits = 8;
  bool is_unsigned = false;
  double percentile = 99.99;
  /// of entropy and mse
  std::size_t first_bin = 128, stride = 1;
  CalibrationQuirks quirks;

  /// Largest integer: 127 of 8 bits with a sign, 255 of 8 without.
  int bound() const { return (1 << (is_unsigned ? bits : bits - 1)) - 1; }
};

/// amax of the histogram's percentile.
double percentile_amax(const MagnitudeHistogram& histogram, const CalibrationOptions& options);

/// The choice of one edge, and how good each one was.
struct EntropyChoice {
  double amax = 0;
  /// of edges first_bin, first_bin + stride, ...
  std::vector<double> divergences;
};
/// For each i: the first i bins, the rest added to the last of them, against the same bins merged
/// into bound() + 1 groups, each group's count spread over its bins that are not empty
/// (Kullback and Leibler's divergence; infinite where the rest falls into an empty bin). amax is
/// edges[i] of the least. Nothing when the histogram has fewer than first_bin bins. With
/// quirks.zero_bin_kept the histogram is changed.
std::optional<EntropyChoice> entropy_choice(MagnitudeHistogram& histogram,
                                            const CalibrationOptions& options);

/// amax among the centres of the bins from first_bin on; errors are FP32 numbers, their sum FP64.
std::optional<double> mse_amax(const MagnitudeHistogram& histogram,
                               const CalibrationOptions& options);

/// Squared errors of the numbers at each multiple of a first amax, summed over batches.
class AmaxSearch {
 public:
  /// from a quarter to four times
  static constexpr int steps = 39;

  AmaxSearch(float first_amax, const CalibrationOptions& options);
  void collect(std::span<const float> numbers);
  /// The first of the least.
  float amax() const;
  const std::vector<double>& errors() const { return errors_; }
  float candidate(int step) const;

 private:
  float first_amax_;
  CalibrationOptions options_;
  std::vector<double> errors_;
};

/// amax of numbers that are all there at once, by any of the calibrators. Throws formats::Error,
/// beginning with `where`, for numbers that are not finite.
float calibrated_amax(Calibrator calibrator, std::span<const float> numbers,
                      const CalibrationOptions& options, std::string_view where);

/// x quantised with that amax and back, as ModelOpt does in FP32: x * (bound / amax) to the nearest
/// even integer, clamped to [-bound, bound] (or [0, bound]), over the same factor. amax up to 2^-24
/// gives 0.
float fake_quantised(float x, float amax, const CalibrationOptions& options);

}  // namespace guardbit::experiments
