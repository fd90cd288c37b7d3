#pragma once

#include <optional>
#include <string>
#include <vector>

namespace guardbit::tools {

struct Range {
  double low = 0, high = 0;
};

struct Tick {
  double at = 0;
  std::string label;
};

/// One axis of a plot: which numbers it shows, where they stand, and which of them are labelled.
class Axis {
 public:
  /// Fits the numbers, which can be drawn, with a little room on both sides; zero is shown where it
  /// is near. `asked`: exactly these instead. A logarithmic axis counts in powers of two where the
  /// numbers are such.
  Axis(const std::vector<double>& numbers, bool is_logarithmic, std::optional<Range> asked = {});

  double low() const { return shown_.low; }
  double high() const { return shown_.high; }
  bool is_logarithmic() const { return is_logarithmic_; }
  /// 0 at the low end, 1 at the high one.
  double share(double number) const;
  bool shows(double number) const { return number >= shown_.low && number <= shown_.high; }

  /// As many as stand apart on `length` pixels in letters of that size; `is_across`: side by side.
  std::vector<Tick> ticks(double length, bool is_across, double size) const;
  /// Between those of a logarithmic axis, without labels.
  std::vector<double> small_ticks(double length) const;

 private:
  double place(double number) const;
  std::vector<Tick> linear_ticks(int most) const;
  /// Numbers 1 (1, 2, 5) in each decade, or of every `step` decades; powers of two alike.
  std::vector<Tick> power_ticks(int step, bool between) const;

  Range shown_;
  bool is_logarithmic_;
  bool has_powers_of_two_ = false;
  bool is_whole_ = true;
};

/// A number as people write it: 1024, 0.05, 2×10^-7.
std::string number_label(double number);

}  // namespace guardbit::tools
