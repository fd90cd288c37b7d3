#include "tools/plot/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/console/terminal.hpp"
#include "tools/plot/drawing.hpp"

namespace guardbit::tools {

namespace {

/// The least of 1, 2, 5 times a power of ten that `range` takes at most `most` of.
double round_step(double range, int most) {
  double step = std::pow(10, std::floor(std::log10(range / most)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (range / step <= most) break;
    step *= factor;
  }
  return step;
}

int digits_of(double step) {
  return std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-6)));
}

std::string trimmed(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// A multiple of `step` on an axis whose largest magnitude is `most`.
std::string label_of(double number, double step, double most) {
  if (std::abs(number) < step / 1000) return "0";
  if (most < 1e6 && step > 0.99e-4) return fixed(number, digits_of(step));
  const int exponent = static_cast<int>(std::floor(std::log10(most) + 1e-9));
  const double unit = std::pow(10, exponent);
  const std::string digits = fixed(number / unit, digits_of(step / unit));
  return (digits == "1"    ? ""
          : digits == "-1" ? "-"
                           : digits + "×") +
         "10^" + std::to_string(exponent);
}

constexpr double plain_low = 0.99e-3, plain_high = 1.01e4;

std::string power_label(double number, bool is_plain) {
  if (is_plain) return trimmed(fixed(number, 6));
  const int exponent = static_cast<int>(std::floor(std::log10(number) + 1e-9));
  const std::string digits = trimmed(fixed(number / std::pow(10, exponent), 3));
  return (digits == "1" ? "" : digits + "×") + "10^" + std::to_string(exponent);
}

}  // namespace

std::string number_label(double number) {
  if (number == 0) return "0";
  const double size = std::abs(number);
  if (size < 1e-3 || size >= 1e6) {
    const int exponent = static_cast<int>(std::floor(std::log10(size)));
    return trimmed(fixed(number / std::pow(10, exponent), 2)) + "×10^" + std::to_string(exponent);
  }
  constexpr int significant = 4;
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  return trimmed(fixed(number, std::max(0, significant - before)));
}

Axis::Axis(const std::vector<double>& numbers, bool is_logarithmic, std::optional<Range> asked)
    : is_logarithmic_(is_logarithmic) {
  constexpr double room = 0.04, near = 0.15, extension = 0.07;
  const auto [least, most] = std::ranges::minmax_element(numbers);
  if (numbers.empty()) {
    shown_ = is_logarithmic ? Range{1, 10} : Range{0, 1};
  } else {
    shown_ = {*least, *most};
  }
  std::size_t powers = 0;
  int exponent = 0;
  for (const double x : numbers) {
    is_whole_ = is_whole_ && x == std::rint(x);
    if (std::frexp(std::abs(x), &exponent) == 0.5) ++powers;
  }
  has_powers_of_two_ = is_logarithmic && powers >= 2 &&
                       (powers == numbers.size() || (is_whole_ && 2 * powers >= numbers.size()));
  if (asked) {
    shown_ = *asked;
  } else if (is_logarithmic) {
    if (shown_.low == shown_.high) shown_ = {shown_.low / 2, shown_.high * 2};
    const double low = std::log10(shown_.low), high = std::log10(shown_.high), span = high - low;
    const double down = std::floor(low + 1e-9), up = std::ceil(high - 1e-9);
    // A power that is near ends the axis.
    const bool snap = !has_powers_of_two_;
    shown_.low = std::pow(10, snap && low - down <= extension * span ? down : low - room * span);
    shown_.high = std::pow(10, snap && up - high <= extension * span ? up : high + room * span);
  } else {
    if (shown_.low == shown_.high) {
      const double margin = shown_.low == 0 ? 1 : std::abs(shown_.low) / 10;
      shown_ = {shown_.low - margin, shown_.high + margin};
    }
    const bool from_zero = shown_.low >= 0 && shown_.low <= near * shown_.high;
    const bool to_zero = shown_.high <= 0 && shown_.high >= near * shown_.low;
    const double span = shown_.high - shown_.low;
    shown_.low = from_zero ? 0 : shown_.low - room * span;
    shown_.high = to_zero ? 0 : shown_.high + room * span;
  }
}

double Axis::place(double number) const { return is_logarithmic_ ? std::log10(number) : number; }

double Axis::share(double number) const {
  return (place(number) - place(shown_.low)) / (place(shown_.high) - place(shown_.low));
}

std::vector<Tick> Axis::linear_ticks(int most) const {
  double step = round_step(shown_.high - shown_.low, most);
  if (is_whole_) step = std::max(step, 1.0);
  std::vector<Tick> ticks;
  const double largest = std::max(std::abs(shown_.low), std::abs(shown_.high));
  const double first = std::ceil(shown_.low / step - 1e-9);
  const double last = std::floor(shown_.high / step + 1e-9);
  for (double i = first; i <= last; ++i)
    ticks.push_back({i * step, label_of(i * step, step, largest)});
  return ticks;
}

std::vector<Tick> Axis::power_ticks(int step, bool between) const {
  std::vector<Tick> ticks;
  if (has_powers_of_two_) {
    const int first = static_cast<int>(std::ceil(std::log2(shown_.low) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log2(shown_.high) + 1e-9));
    const bool is_plain = first >= 0 && last <= 17;
    for (int e = first; e <= last; ++e)
      if (e % step == 0)
        ticks.push_back(
            {std::ldexp(1, e), is_plain ? fixed(std::ldexp(1, e), 0) : "2^" + std::to_string(e)});
    return ticks;
  }
  const bool is_plain = shown_.low >= plain_low && shown_.high <= plain_high;
  const int first = static_cast<int>(std::floor(std::log10(shown_.low)));
  const int last = static_cast<int>(std::ceil(std::log10(shown_.high)));
  for (int e = first; e <= last; ++e) {
    if (e % step != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double x = factor * std::pow(10, e);
      const bool is_shown = x >= shown_.low * (1 - 1e-9) && x <= shown_.high * (1 + 1e-9);
      if (is_shown && (between || factor == 1)) ticks.push_back({x, power_label(x, is_plain)});
    }
  }
  return ticks;
}

std::vector<Tick> Axis::ticks(double length, bool is_across, double size) const {
  const auto stand_apart = [&](const std::vector<Tick>& ticks) {
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      const double apart = (share(ticks[i].at) - share(ticks[i - 1].at)) * length;
      const double needed =
          is_across ? (width_of(ticks[i].label, size) + width_of(ticks[i - 1].label, size)) / 2 +
                          0.8 * size
                    : 1.9 * size;
      if (apart < needed) return false;
    }
    return true;
  };
  constexpr int most_ticks = 9;
  if (is_logarithmic_) {
    const double octaves = std::log2(shown_.high / shown_.low);
    if (has_powers_of_two_ && octaves >= 0.9) {
      for (int step = 1;; ++step)
        if (std::vector<Tick> ticks = power_ticks(step, false); stand_apart(ticks)) return ticks;
    }
    const double decades = octaves * std::log10(2.0);
    if (decades >= 1) {
      if (std::vector<Tick> ticks = power_ticks(1, true); decades < 2.5 && stand_apart(ticks))
        return ticks;
      for (int step = 1;; ++step) {
        std::vector<Tick> ticks = power_ticks(step, false);
        if (!stand_apart(ticks)) continue;
        if (ticks.size() >= 2) return ticks;
        break;
      }
    }
  }
  std::vector<Tick> powers;
  if (is_logarithmic_) powers = power_ticks(1, true);
  if (has_powers_of_two_ || !stand_apart(powers)) powers.clear();
  for (int most = most_ticks; most > 1; --most)
    if (std::vector<Tick> ticks = linear_ticks(most); stand_apart(ticks))
      return ticks.size() >= powers.size() ? ticks : powers;
  return linear_ticks(1);
}

std::vector<double> Axis::small_ticks(double length) const {
  constexpr double room = 24;
  const double decades = std::log10(shown_.high / shown_.low);
  if (!is_logarithmic_ || has_powers_of_two_ || decades < 1 || length / decades < room) return {};
  std::vector<double> ticks;
  for (int e = static_cast<int>(std::floor(std::log10(shown_.low))); std::pow(10, e) < shown_.high;
       ++e) {
    for (int i = 1; i < 10; ++i)
      if (shows(i * std::pow(10, e))) ticks.push_back(i * std::pow(10, e));
  }
  return ticks;
}

}  // namespace guardbit::tools
