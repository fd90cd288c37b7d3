#include "tools/products/plans/plan_map.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <utility>

#include "emulator/gemm/plan.hpp"
#include "formats/support/error.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"
#include "tools/plot/heat_map.hpp"

namespace guardbit::tools {

namespace {

using emulator::atlas::Known;

constexpr std::size_t most_cells = 250'000;

/// Accumulators that get any of K: those of the lanes in each part of the split.
std::int64_t partial_sums(const emulator::GemmPlan& plan, std::int64_t k) {
  std::size_t sums = 0;
  for (const std::int64_t part : lengths_of_parts(plan.split, k))
    sums += lengths_of_parts(plan.slices, part).size();
  return static_cast<std::int64_t>(sums);
}

void sort_by_calls(PlanMap& map) {
  std::vector<std::size_t> order(map.plans.size()), place(map.plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return map.plans[a].calls > map.plans[b].calls; });
  std::vector<MappedPlan> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(map.plans[order[i]]));
  }
  map.plans = std::move(sorted);
  for (std::size_t& cell : map.cells) cell = place[cell];
}

std::size_t known_plans(const PlanMap& map) {
  return static_cast<std::size_t>(
      std::ranges::count_if(map.plans, [](const MappedPlan& x) { return !x.plan.empty(); }));
}

double share(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::ordered_json range_json(const SizeRange& range) {
  return {{"first", range.first}, {"last", range.last}, {"step", range.step}};
}

std::string title_of(const PlanMap& map) {
  return sizes_text(map.call, std::string{map.down.name, map.across.name}) + ", " + map.layout;
}

const Columns<MappedPlan>& plan_columns() {
  using P = MappedPlan;
  static const Columns<P> columns = {
      {"calls", "calls", Side::right, [](const P& x) { return x.calls; }},
      {"most_partial_sums", "partial sums", Side::right,
       [](const P& x) {
         return x.plan.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(x.most_parts);
       },
       [](const P& x) { return x.plan.empty() ? "" : std::to_string(x.most_parts); }},
      {"plan", "plan", Side::left,
       [](const P& x) {
         return x.plan.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(x.plan);
       },
       [](const P& x) { return x.plan.empty() ? "none" : x.plan; }}};
  return columns;
}

}  // namespace

bool PlanMap::are_known() const {
  return std::ranges::none_of(plans, [](const MappedPlan& x) { return x.plan.empty(); });
}

PlanMap plan_map(const AskedCall& asked, const VariedSize& down, const VariedSize& across) {
  require_by_layout(asked);
  if (down.range.count() > most_cells / across.range.count())
    throw formats::Error("plan", "the two ranges have too many pairs of sizes",
                         std::to_string(most_cells) + " at most; FIRST:LAST:STEP takes fewer");
  PlanMap map{asked.call, asked.layout, down, across, {}, {}, {}, 0};
  size_of(map.call, down.name) = down.range.first;
  size_of(map.call, across.name) = across.range.first;
  std::map<std::string, std::size_t> places;
  AskedCall one = asked;
  const auto size = [](const SizeRange& range, std::size_t i) {
    return range.first + static_cast<std::int64_t>(i) * range.step;
  };
  for (std::size_t y = 0; y < down.range.count(); ++y) {
    size_of(one.call, down.name) = size(down.range, y);
    for (std::size_t x = 0; x < across.range.count(); ++x) {
      size_of(one.call, across.name) = size(across.range, x);
      const emulator::atlas::Answer answer = plan_of_call(one).answer;
      const bool is_known = answer.known != Known::unknown;
      const auto [place, is_new] =
          places.emplace(is_known ? emulator::to_text(answer.plan) : "", map.plans.size());
      if (is_new) map.plans.push_back({place->first, 0, 0});
      MappedPlan& plan = map.plans[place->second];
      const std::int64_t parts = is_known ? partial_sums(answer.plan, one.call.k) : 0;
      ++plan.calls;
      plan.most_parts = std::max(plan.most_parts, parts);
      map.cells.push_back(place->second);
      map.parts.push_back(parts);
      if (answer.known == Known::rule) ++map.rules;
    }
  }
  sort_by_calls(map);
  return map;
}

nlohmann::ordered_json to_json(const PlanMap& map) {
  nlohmann::ordered_json call = sizes_json(map.call);
  const std::string down(1, map.down.name), across(1, map.across.name);
  call.erase(down);
  call.erase(across);
  call["layout"] = map.layout;
  nlohmann::ordered_json j = {{"call", std::move(call)}, {"down", down}, {"across", across}};
  j[down] = range_json(map.down.range);
  j[across] = range_json(map.across.range);
  j["rules"] = map.rules;
  j["plans"] = plan_columns().json_list(map.plans);
  // Row by row: the place in `plans`, and the partial sums (0 where no plan is known).
  j["cells"] = map.cells;
  j["partial_sums"] = map.parts;
  j["holds_for"] = scope_json();
  return j;
}

void print(std::ostream& out, const PlanMap& map) {
  const auto range = [](const VariedSize& size) {
    std::string text = std::string(1, size.name) + " = " + std::to_string(size.range.first) +
                       " to " + std::to_string(size.range.last);
    if (size.range.step != 1) text += " in steps of " + std::to_string(size.range.step);
    return text;
  };
  constexpr std::size_t most_shown = 20;
  const std::size_t shown = std::min(most_shown, map.plans.size()), calls = map.cells.size();
  out << title_of(map) << ": " << range(map.down) << ", " << range(map.across) << "\n\n";
  const std::vector<MappedPlan> frequent(map.plans.begin(),
                                         map.plans.begin() + static_cast<std::ptrdiff_t>(shown));
  plan_columns().table(frequent).print(out);
  if (shown < map.plans.size())
    out << "and " << map.plans.size() - shown << " rarer plans: --json has them\n";
  const auto chains = static_cast<std::size_t>(std::ranges::count(map.parts, 1));
  out << '\n'
      << calls << " calls, " << known_plans(map) << " plans; one chain in "
      << fixed(100 * share(chains, calls), 1) << " %, told by a rule in "
      << fixed(100 * share(map.rules, calls), 1) << " %\n"
      << scope_line();
}

Drawing plan_map_picture(const PlanMap& map, double width, double height) {
  MapOfTiles tiles;
  tiles.title = title_of(map) + ": partial sums of an element";
  tiles.y_label = map.down.name;
  tiles.x_label = map.across.name;
  tiles.unit = "partial sums";
  tiles.nan_words = "no plan is known";
  tiles.counts = true;
  tiles.fills = true;
  tiles.rows = map.down.range.count();
  tiles.columns = map.across.range.count();
  const auto place = [](const SizeRange& range, double& step, double& first, double& last) {
    step = static_cast<double>(range.step);
    first = static_cast<double>(range.first);
    last = first + step * static_cast<double>(range.count());
  };
  place(map.down.range, tiles.tile_rows, tiles.first_row, tiles.last_row);
  place(map.across.range, tiles.tile_columns, tiles.first_column, tiles.last_column);
  for (const std::int64_t parts : map.parts)
    tiles.numbers.push_back(parts == 0 ? std::numeric_limits<double>::quiet_NaN()
                                       : static_cast<double>(parts));
  constexpr double usual_width = 640, usual_height = 480;
  Drawing drawing(width > 0 ? width : usual_width, height > 0 ? height : usual_height, tiles.title);
  draw_map(drawing, {0, 0, drawing.width(), drawing.height()}, tiles);
  return drawing;
}

}  // namespace guardbit::tools
