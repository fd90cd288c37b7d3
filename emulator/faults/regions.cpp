#include "emulator/faults/regions.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace guardbit::emulator {

Region extent_of(const Disagreement& wrong, std::int64_t columns) {
  std::set<std::int64_t> rows, all_columns;
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    rows.insert(static_cast<std::int64_t>(at) / columns);
    all_columns.insert(static_cast<std::int64_t>(at) % columns);
  }
  return {{rows.begin(), rows.end()}, {all_columns.begin(), all_columns.end()}};
}

std::vector<Region> areas_of(const Disagreement& wrong, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t cell = 8;
  const std::int64_t down = (m + cell - 1) / cell, across = (n + cell - 1) / cell;
  std::vector<int> area(static_cast<std::size_t>(down * across), -1);  // -1: right, 0: not seen yet
  const auto place = [&](std::int64_t at) {
    return static_cast<std::size_t>(at / n / cell * across + at % n / cell);
  };
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at]) area[place(static_cast<std::int64_t>(at))] = 0;
  int count = 0;
  for (std::size_t start = 0; start < area.size(); ++start) {
    if (area[start] != 0) continue;
    std::vector<std::size_t> queue = {start};
    area[start] = ++count;
    while (!queue.empty()) {
      const auto at = static_cast<std::int64_t>(queue.back());
      queue.pop_back();
      for (const auto& [di, dj] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
        const std::int64_t i = at / across + di, j = at % across + dj;
        if (i < 0 || j < 0 || i >= down || j >= across) continue;
        int& next = area[static_cast<std::size_t>(i * across + j)];
        if (next != 0) continue;
        next = count;
        queue.push_back(static_cast<std::size_t>(i * across + j));
      }
    }
  }
  std::vector<Disagreement> parts(static_cast<std::size_t>(count));
  for (Disagreement& part : parts) part.at.resize(wrong.at.size());
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    const int number = area[place(static_cast<std::int64_t>(at))];
    Disagreement& part = parts[static_cast<std::size_t>(number) - 1];
    part.at[at] = true;
    ++part.count;
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& x, const auto& y) { return x.count > y.count; });
  std::vector<Region> regions;
  regions.reserve(parts.size());
  for (const Disagreement& part : parts) regions.push_back(extent_of(part, n));
  return regions;
}

std::string text_of(const ProductNumbers& x, const Region& region) {
  return lines_of("row", x.rows.places(region.rows)) + ", " +
         lines_of("column", x.columns.places(region.columns));
}

}  // namespace guardbit::emulator
