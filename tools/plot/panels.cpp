#include "tools/plot/panels.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <utility>

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;

/// A panel's title and the name that a curve has in it.
using Division = std::pair<std::string, std::string>;
using Divide = std::function<Division(const std::string& name)>;

Division divided_at(const std::string& name, std::size_t at, std::size_t length) {
  if (at == std::string::npos) return {"", name};
  return {name.substr(0, at), name.substr(at + length)};
}

Division by_first_part(const std::string& name) { return divided_at(name, name.find(", "), 2); }
Division by_last_part(const std::string& name) {
  const Division parts = divided_at(name, name.rfind(", "), 2);
  return parts.first.empty() ? parts : Division{parts.second, parts.first};
}
Division by_first_word(const std::string& name) { return divided_at(name, name.find(' '), 1); }
Division by_letters(const std::string& name) {
  const auto* const end = std::find_if_not(name.data(), name.data() + name.size(),
                                           [](unsigned char c) { return std::isalpha(c) != 0; });
  return {std::string(name.data(), end), name};
}

constexpr std::size_t most_panels = 9;

/// "fp16 … bf16", of what begins the names of the first and the last series.
std::string range_title(const Panel& panel) {
  const auto first_part = [](const Series& s) { return s.name.substr(0, s.name.find(", ")); };
  const std::string first = first_part(panel.series.front()),
                    last = first_part(panel.series.back());
  return first == last ? first : first + " … " + last;
}

/// Nothing where that leaves too many panels, or (some, with `loners`) curves that have nothing to
/// be compared with.
std::optional<std::vector<Panel>> divided(const Figure& figure, const Divide& divide, bool loners) {
  std::vector<Panel> panels;
  for (const Curve& c : figure.curves) {
    const auto [title, name] = divide(c.name);
    auto at = std::ranges::find(panels, title, &Panel::title);
    if (at == panels.end()) at = panels.insert(panels.end(), {title, {}});
    at->series.push_back({&c, name, {}});
  }
  const auto alone = static_cast<std::size_t>(
      std::ranges::count_if(panels, [](const Panel& p) { return p.series.size() < 2; }));
  const bool fits =
      std::ranges::all_of(panels, [](const Panel& p) { return p.series.size() <= most_series; });
  if (panels.size() < 2 || panels.size() > most_panels || !fits ||
      alone > (loners ? panels.size() / 2 : 0))
    return std::nullopt;
  // Where series keep their names, the first and the last of them say most.
  for (Panel& p : panels) {
    if (p.series.front().name != p.series.front().curve->name) continue;
    p.title = p.series.front().name;
    if (p.series.size() > 1) p.title += " … " + p.series.back().name;
  }
  return panels;
}

std::vector<Panel> divided(const Figure& figure) {
  Panel all;
  for (const Curve& c : figure.curves) all.series.push_back({&c, c.name, {}});
  if (all.series.size() <= most_series || !figure.categories.empty()) return {all};
  for (const bool loners : {false, true})
    for (const auto& divide : {by_first_part, by_last_part, by_first_word, by_letters})
      if (auto panels = divided(figure, divide, loners)) return std::move(*panels);
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    if (i % most_series == 0) panels.emplace_back();
    panels.back().series.push_back(all.series[i]);
  }
  for (Panel& panel : panels) panel.title = range_title(panel);
  return panels;
}

/// All names, with commas between: "sm_75, sm_80". Of names in two parts, which would take much
/// room, "e3m2, e2m3, overflow" or "e3m2, overflow, 3 more".
std::string joined_name(const Series& s) {
  const auto first_part = [](const std::string& name) { return name.substr(0, name.find(", ")); };
  const std::string first = first_part(s.name), rest = s.name.substr(first.size());
  const bool is_pair = s.equal.size() == 1 && s.equal[0] == first_part(s.equal[0]) + rest;
  if (!rest.empty() && is_pair) return first + ", " + s.equal[0];
  if (!rest.empty() && !s.equal.empty())
    return s.name + ", " + std::to_string(s.equal.size()) + " more";
  std::string text = s.name;
  for (const std::string& name : s.equal) text += ", " + name;
  return text;
}

/// A curve that has the points of an earlier one of its panel would hide it: the earlier one takes
/// its name.
void join_equal(std::vector<Series>& series) {
  std::vector<Series> joined;
  for (const Series& s : series) {
    const auto same = std::ranges::find_if(joined, [&](const Series& other) {
      return other.curve->x == s.curve->x && other.curve->y == s.curve->y &&
             other.curve->is_reference == s.curve->is_reference && !s.curve->x.empty();
    });
    if (same == joined.end()) {
      joined.push_back(s);
    } else {
      same->equal.push_back(s.name);
    }
  }
  series = std::move(joined);
}

void set_styles(std::vector<Series*> series) {
  std::vector<Curve> named;
  for (const Series* s : series) {
    Curve curve;
    curve.name = s->name;
    curve.is_reference = s->curve->is_reference;
    named.push_back(std::move(curve));
  }
  const std::vector<SeriesStyle> styles = styles_of(named);
  for (std::size_t i = 0; i < series.size(); ++i) series[i]->style = styles[i];
}

}  // namespace

std::vector<Series> legend_of(const std::vector<Panel>& panels) {
  std::vector<Series> all;
  for (const Panel& panel : panels) {
    for (const Series& s : panel.series)
      if (std::ranges::find(all, s.name, &Series::name) == all.end()) all.push_back(s);
  }
  return all;
}

std::vector<Panel> panels_of(const Figure& figure) {
  std::vector<Panel> panels = divided(figure);
  std::vector<Series> all = legend_of(panels);
  // Series that keep their names look the same in all panels, whether others hide them or not.
  bool have_one_look =
      std::ranges::all_of(all, [](const Series& s) { return s.name == s.curve->name; });
  if (all.size() > most_series)
    for (Panel& panel : panels) join_equal(panel.series);
  if (std::vector<Series> joined = legend_of(panels); joined.size() <= most_series) {
    all = std::move(joined);
    have_one_look = true;
  }
  std::vector<Series*> pointers;
  pointers.reserve(all.size());
  for (Series& s : all) pointers.push_back(&s);
  if (have_one_look) set_styles(pointers);
  for (Panel& panel : panels) {
    pointers.clear();
    for (Series& s : panel.series) pointers.push_back(&s);
    if (!have_one_look) set_styles(pointers);
    for (Series& s : panel.series) {
      if (have_one_look) s.style = std::ranges::find(all, s.name, &Series::name)->style;
      s.name = joined_name(s);
    }
  }
  return panels;
}

}  // namespace guardbit::tools
