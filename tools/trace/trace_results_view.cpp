#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>

#include "formats/support/printable.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

using experiments::ScaleWindow;
using experiments::TraceName;
using experiments::TraceStatistics;

namespace {

constexpr int plot_columns = 24;
constexpr std::array<const char*, 9> heights = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0 || part == 0) return "0";
  const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return number(value, value < 0.01 ? "%.1e%%" : "%.2f%%");
}

/// The binades that any tensor has.
struct BinadeRange {
  int first = 0, last = 0;
  explicit BinadeRange(const TraceStatistics& total) {
    if (total.binades.empty()) return;
    first = total.binades.begin()->first;
    last = total.binades.rbegin()->first;
  }
  int per_column() const { return std::max(1, (last - first + plot_columns) / plot_columns); }
};

/// Shares of the numbers by binade, from the smallest to the largest of the whole trace.
std::string plot(const TraceStatistics& statistics, const BinadeRange& range) {
  std::array<std::uint64_t, plot_columns> columns{};
  for (const auto& [binade, count] : statistics.binades)
    columns[static_cast<std::size_t>((binade - range.first) / range.per_column())] += count;
  const std::uint64_t most = *std::max_element(columns.begin(), columns.end());
  std::string text;
  for (const std::uint64_t count : columns) {
    // Whatever is there is seen.
    const std::size_t height =
        count == 0 ? 0
                   : std::max<std::size_t>(
                         1, static_cast<std::size_t>(std::lround(8.0 * static_cast<double>(count) /
                                                                 static_cast<double>(most))));
    text += heights[height];
  }
  return text;
}

/// Values from left to right, each as high as it lies between the least and the largest.
std::string curve(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  std::string text;
  const std::size_t step = (values.size() + plot_columns - 1) / plot_columns;
  for (std::size_t i = 0; i < values.size(); i += step) {
    const double share = most > least ? (values[i] - least) / (most - least) : 0;
    text +=
        std::isnan(values[i]) ? " " : heights[1 + static_cast<std::size_t>(std::lround(7 * share))];
  }
  return text;
}

std::string log2_text(const std::optional<double>& magnitude) {
  return magnitude && *magnitude != 0 ? number(std::log2(*magnitude), "%.1f") : "-";
}

std::string scale_text(int scale) { return "2^" + std::to_string(scale); }

std::string window_text(const ScaleWindow& window) {
  if (!window.first) return "none";
  if (*window.first == *window.last) return scale_text(*window.first);
  return scale_text(*window.first) + " to " + scale_text(*window.last);
}

std::string loss_text(const TraceResults& results, std::size_t format,
                      const TraceStatistics& statistics, const ScaleWindow& window) {
  const auto& scales = results.questions.scales;
  const auto at = [&](std::size_t s) {
    return percent(statistics.outcomes[results.questions.storing(format, s)].underflow,
                   statistics.nonzero());
  };
  if (!window.recommended) return "overflows at " + scale_text(scales.front());
  const auto s = static_cast<std::size_t>(
      std::find(scales.begin(), scales.end(), *window.recommended) - scales.begin());
  return s == 0 ? at(0) : at(0) + " → " + at(s) + " @" + scale_text(scales[s]);
}

/// The scales that are safe, by role and for all.
void print_windows(std::ostream& out, const TraceResults& results,
                   const std::map<std::string, TraceStatistics>& roles,
                   const TraceStatistics& total) {
  const TraceQuestions& questions = results.questions;
  out << "\nsafe scales: nothing overflows, at most "
      << percent(static_cast<std::uint64_t>(std::llround(results.tolerance * 1e9)), 1000000000)
      << " underflows\n";
  Table windows("l" + std::string(questions.formats.size(), 'l') + "l");
  std::vector<std::string> head = {""};
  head.insert(head.end(), questions.formats.begin(), questions.formats.end());
  head.emplace_back("narrowest");
  windows.add(head);
  const auto add_window = [&](const std::string& name, const TraceStatistics& s) {
    std::vector<std::string> row = {paint(name, Colour::bold)};
    for (std::size_t f = 0; f < questions.formats.size(); ++f)
      row.push_back(window_text(window_of(results, f, s)));
    const auto format = recommended_format(results, s);
    row.push_back(format ? questions.formats[*format] : "none");
    windows.add(row);
  };
  for (const auto& [role, statistics] : roles) add_window(role, statistics);
  add_window("all", total);
  windows.print(out);
}

/// How the largest magnitude and the underflow of each role go from step to step.
void print_trends(std::ostream& out, const TraceResults& results) {
  Table table("lrrll");
  table.add(
      {"over steps", "first", "last", "log2 max",
       results.questions.formats[0] + " underflow at " + scale_text(results.questions.scales[0])});
  bool any = false;
  for (const auto& [role, steps] : by_role_and_step(results)) {
    if (steps.size() < 2) continue;
    any = true;
    std::vector<double> largest, lost;
    for (const auto& [step, s] : steps) {
      largest.push_back(s.amax && *s.amax > 0 ? std::log2(*s.amax) : std::nan(""));
      lost.push_back(s.nonzero() == 0 ? 0
                                      : static_cast<double>(s.outcomes[0].underflow) /
                                            static_cast<double>(s.nonzero()));
    }
    const auto& first = *steps.begin();
    const auto& last = *steps.rbegin();
    const auto lost_at = [&](const auto& step) {
      return percent(step.second.outcomes[0].underflow, step.second.nonzero());
    };
    table.add(
        {paint(role.empty() ? "other" : role, Colour::bold), std::to_string(first.first),
         std::to_string(last.first),
         log2_text(first.second.amax) + " → " + log2_text(last.second.amax) + "  " + curve(largest),
         lost_at(first) + " → " + lost_at(last) + "  " + curve(lost)});
  }
  if (!any) return;
  out << '\n';
  table.print(out);
}

/// What formats with scales of their own lose of the whole trace, and of the tensor that each of
/// them serves worst.
void print_recipes(std::ostream& out, const TraceResults& results) {
  const std::vector<experiments::Recipe>& recipes = results.questions.recipes;
  if (recipes.empty()) return;
  out << "\nformats with scales of their own, blocks along "
      << (results.questions.layout == experiments::Layout::flat ? "the flattened tensor"
                                                                : "the last dimension")
      << '\n';
  const FiniteRecipes finite = finite_recipes(results);
  const experiments::RecipeStatistics& total = finite.statistics;
  Table table("lrrrrl");
  table.add({"", "underflow", "saturated", "SQNR dB", "bits", "lowest SQNR"});
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    const auto& outcome = total.outcomes[r];
    if (!outcome) {
      table.add({paint(recipes[r].name, Colour::bold), "-", "-", "-", "-", "not of all tensors"});
      continue;
    }
    const experiments::Signal& signal = total.signal;
    const auto sqnr = experiments::sqnr_db(signal, *outcome);
    const auto worst = lowest_sqnr(results, r);
    table.add({paint(recipes[r].name, Colour::bold), percent(outcome->underflow, signal.nonzero),
               percent(outcome->saturated, signal.finite), sqnr ? number(*sqnr, "%.2f") : "-",
               signal.elements == 0 ? "-" : number(bits_per_element(signal, *outcome), "%.2f"),
               worst ? number(worst->second, "%.2f  ") +
                           worst->first->meaning.place_text(worst->first->name)
                     : "-"});
  }
  table.print(out);
  for (const TracedTensor* const bad : finite.left_out)
    out << "left out of these: " << bad->meaning.place_text(bad->name) << ", which holds "
        << (bad->first_is_nan ? "NaNs" : "infinities") << '\n';
}

void print_updates(std::ostream& out, const TraceResults& results) {
  if (results.updates.empty()) return;
  out << "\nupdates: root mean square over that of the weights; share that leaves the weight as it was\n";
  update_columns(results).print(out, results.updates);
}

}  // namespace

Columns<TracedUpdate> update_columns(const TraceResults& results) {
  using U = TracedUpdate;
  const std::vector<std::string>& formats = results.questions.formats;
  const auto sum = [](const char* key, experiments::ExactSum U::*squares) {
    return Column<U>{key, "", Side::none, [squares](const U& u) { return (u.*squares).text(); }};
  };
  std::vector<Column<U>> columns = {
      {"tensor", "tensor", Side::left, [](const U& u) { return u.tensor; },
       [](const U& u) { return paint(formats::printable(u.tensor), Colour::bold); }},
      {"step", "step", Side::right, [](const U& u) { return or_null(u.step); },
       [](const U& u) { return u.step ? std::to_string(*u.step) : "-"; }},
      {"ratio", "update/weight", Side::right, [](const U& u) { return or_null(u.ratio()); },
       [](const U& u) { return u.ratio() ? number(*u.ratio(), "%.2e") : "-"; }},
      {"changes", "", Side::none, [](const U& u) { return u.effect.changes; }},
      {"stale", "", Side::none,
       [&formats](const U& u) {
         nlohmann::ordered_json stale = nlohmann::ordered_json::object();
         for (std::size_t f = 0; f < formats.size(); ++f) stale[formats[f]] = u.effect.stale[f];
         return stale;
       }},
      sum("exact_weight_squares", &U::weight_squares),
      sum("exact_update_squares", &U::update_squares)};
  for (std::size_t f = 0; f < formats.size(); ++f)
    columns.push_back({"", "stale " + formats[f], Side::right, {}, [f](const U& u) {
                         return percent(u.effect.stale[f], u.effect.changes);
                       }});
  return Columns<U>(std::move(columns));
}

/// True if tensors of several files have the same name, step and rank.
bool are_told_by_files_alone(const TraceResults& results) {
  using Key = std::tuple<std::string, std::optional<std::uint64_t>, std::optional<std::uint64_t>>;
  std::map<Key, std::string> files;
  return std::ranges::any_of(results.tensors, [&](const TracedTensor& x) {
    const Key key(x.name, x.meaning.step, x.meaning.rank);
    return files.try_emplace(key, x.file).first->second != x.file;
  });
}

void print_trace(std::ostream& out, const TraceResults& results) {
  const TraceQuestions& questions = results.questions;
  const TraceStatistics total = total_of(results);
  const BinadeRange range(total);
  if (!questions.formats.empty()) {
    out << "underflow of numbers other than zero at " << scale_text(questions.scales.front())
        << " → at the best scale without overflow (policy " << results.policy << ")\n";
  }
  const auto any = [&](const auto& has) { return std::ranges::any_of(results.tensors, has); };
  const bool has_steps = any([](const TracedTensor& t) { return t.meaning.step.has_value(); });
  const bool has_ranks = any([](const TracedTensor& t) { return t.meaning.rank.has_value(); });
  const bool has_files = are_told_by_files_alone(results);
  std::vector<std::string> head = {"tensor"};
  if (has_files) head.emplace_back("file");
  if (has_steps) head.emplace_back("step");
  if (has_ranks) head.emplace_back("rank");
  const std::vector<std::string> counts = {
      "elements", "zeros",
      "inf+nan",  "log2 min",
      "log2 max", "2^" + std::to_string(range.first) + " … 2^" + std::to_string(range.last)};
  head.insert(head.end(), counts.begin(), counts.end());
  for (const std::string& format : questions.formats) head.push_back(format);
  const auto cells_of = [&](const TraceStatistics& s) {
    std::vector<std::string> cells = {
        std::to_string(s.elements),
        percent(s.zeros, s.elements),
        s.infinities + s.nans == 0 ? "0"
                                   : paint(std::to_string(s.infinities + s.nans), Colour::red),
        log2_text(s.amin_nonzero),
        log2_text(s.amax),
        plot(s, range)};
    for (std::size_t f = 0; f < questions.formats.size(); ++f)
      cells.push_back(loss_text(results, f, s, window_of(results, f, s)));
    return cells;
  };
  const std::string of_cells = "rrrrrl" + std::string(questions.formats.size(), 'l');
  Table table((has_files ? "ll" : "l") +
              std::string((has_steps ? 1U : 0U) + (has_ranks ? 1U : 0U), 'r') + of_cells);
  table.add(head);
  const auto add = [&](const std::string& name, const TraceStatistics& s, const TraceName& meaning,
                       const std::string& file) {
    std::vector<std::string> row = {paint(formats::printable(name), Colour::bold)};
    if (has_files) row.push_back(formats::printable(file));
    if (has_steps) row.push_back(meaning.step ? std::to_string(*meaning.step) : "");
    if (has_ranks) row.push_back(meaning.rank ? std::to_string(*meaning.rank) : "");
    const std::vector<std::string> cells = cells_of(s);
    row.insert(row.end(), cells.begin(), cells.end());
    table.add(row);
  };
  for (const TracedTensor& tensor : results.tensors)
    add(tensor.name, tensor.statistics, tensor.meaning, tensor.file);
  const auto roles = by_role(results);
  for (const auto& [role, statistics] : roles) add("role " + role, statistics, {}, "");
  add("all", total, {}, "");
  table.print(out);
  for (const TraceGroups& groups : groups_of(results)) {
    constexpr std::size_t most = 40;
    Table sums("lr" + of_cells);
    std::vector<std::string> top = {"by " + groups.by, "tensors"};
    top.insert(top.end(), counts.begin(), counts.end());
    top.insert(top.end(), questions.formats.begin(), questions.formats.end());
    sums.add(top);
    for (const TraceGroup& group : groups.groups) {
      if (sums.rows().size() > most) break;
      std::vector<std::string> row = {paint(group.name, Colour::bold),
                                      std::to_string(group.tensors)};
      const std::vector<std::string> cells = cells_of(group.statistics);
      row.insert(row.end(), cells.begin(), cells.end());
      sums.add(row);
    }
    out << '\n';
    sums.print(out);
    if (groups.groups.size() > most)
      out << "… and " << groups.groups.size() - most << " more; --json has every tensor\n";
  }

  if (total.elements == 0) {
    out << "\nno tensor has a number: there is nothing to say of formats\n";
  } else if (!questions.formats.empty()) {
    print_windows(out, results, roles, total);
    print_recipes(out, results);
    print_trends(out, results);
    print_updates(out, results);
  }

  if (const TracedTensor* first = first_nonfinite(results)) {
    out << '\n'
        << paint(std::string("first ") + (first->first_is_nan ? "NaN" : "infinity"), Colour::red)
        << ": " << first->meaning.place_text(first->name) << ", index " << *first->first_nonfinite
        << '\n';
  }
  for (const auto& [what, why] : results.skipped)
    out << paint("skipped", Colour::yellow) << ' ' << formats::printable(what) << ": " << why
        << '\n';
  const TraceAdvice advice = advice_of(results);
  if (advice.sentences.empty()) return;
  out << '\n' << paint("recommendation", Colour::bold) << '\n';
  for (const std::string& sentence : advice.sentences)
    for (const std::string& line : wrapped(sentence, 98)) out << "  " << line << '\n';
}

}  // namespace guardbit::tools
