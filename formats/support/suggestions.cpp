#include "formats/support/suggestions.hpp"

#include <algorithm>
#include <utility>

#include "formats/support/printable.hpp"

namespace guardbit::formats {

namespace {

/// Optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string_view> nearest_names(std::string_view name,
                                            const std::vector<std::string_view>& candidates,
                                            std::size_t count) {
  constexpr std::size_t longest = 200;  // past it nothing is near, and the table would grow
  if (name.empty() || name.size() > longest) return {};
  const std::string wanted = lower_case(name);
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view candidate : candidates) {
    const std::string lower = lower_case(candidate);
    const std::size_t distance = edit_distance(wanted, lower);
    const bool part = wanted.size() >= 2 && lower.find(wanted) != std::string::npos;
    if (part || distance <= (wanted.size() + 2) / 3) ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> nearest;
  for (const auto& [distance, candidate] : ranked) {
    if (nearest.size() == count) break;
    nearest.push_back(candidate);
  }
  return nearest;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string_view>& candidates) {
  std::string text = "unknown " + std::string(kind) + " '" + printable(name) + "'";
  const std::vector<std::string_view> nearest = nearest_names(name, candidates);
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    text += i == 0 ? "; did you mean " : i + 1 == nearest.size() ? " or " : ", ";
    text += nearest[i];
  }
  return nearest.empty() ? text : text + "?";
}

}  // namespace guardbit::formats
