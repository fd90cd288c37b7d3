#include "tools/products/plans/plan_runs.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <utility>

#include "emulator/gemm/plan.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/columns.hpp"

namespace guardbit::tools {

namespace {

using emulator::atlas::Known;
using emulator::atlas::StridedCall;

constexpr std::uint64_t most_sizes = 1'000'000;

bool read_size(std::string_view text, std::int64_t& size) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size();
}

void add(std::vector<PlanRun>& runs, std::int64_t size, const emulator::atlas::Answer& answer) {
  PlanRun run{size, size, {}, answer.known, answer.agree};
  if (answer.known != Known::unknown) run.plan = emulator::to_text(answer.plan);
  if (runs.empty() || runs.back().plan != run.plan) {
    runs.push_back(std::move(run));
    return;
  }
  PlanRun& last = runs.back();
  last.last = size;
  last.known = std::max(last.known, run.known);
  last.agree = std::min(last.agree, run.agree);
}

std::string sizes_text(const PlanRun& run) {
  const std::string first = std::to_string(run.first);
  return run.first == run.last ? first : first + ":" + std::to_string(run.last);
}

const Columns<PlanRun>& run_columns() {
  using R = PlanRun;
  static const Columns<R> columns = {
      {"first", "", Side::none, [](const R& r) { return r.first; }},
      {"last", "", Side::none, [](const R& r) { return r.last; }},
      {"", "sizes", Side::left, sizes_text},
      {"known", "known", Side::left, [](const R& r) { return formats::word_of(r.known); }},
      {"agree", "agree", Side::right, [](const R& r) { return r.agree / 1000.0; }},
      {"plan", "plan", Side::left,
       [](const R& r) {
         return r.plan.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(r.plan);
       },
       [](const R& r) { return r.plan.empty() ? "none" : r.plan; }}};
  return columns;
}

}  // namespace

std::int64_t& size_of(StridedCall& call, char varied) {
  return varied == 'm' ? call.m : varied == 'n' ? call.n : call.k;
}

SizeRange parse_size_range(std::string_view text, std::string_view where) {
  SizeRange range;
  std::vector<std::int64_t> numbers;
  bool is_range = true;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t colon = std::min(text.find(':', begin), text.size());
    is_range = read_size(text.substr(begin, colon - begin), numbers.emplace_back()) && is_range;
    begin = colon + 1;
  }
  is_range = is_range && numbers.size() <= 3;
  if (is_range) {
    range.first = numbers[0];
    range.last = numbers.size() > 1 ? numbers[1] : range.first;
    range.step = numbers.size() > 2 ? numbers[2] : 1;
  }
  if (!is_range || range.last < range.first || range.step < 1)
    throw formats::Error(std::string(where), formats::in_quotes(text) + " is no size",
                         "a number, FIRST:LAST with FIRST <= LAST, or FIRST:LAST:STEP");
  // Without signs: the difference of any two numbers fits.
  const auto sizes =
      static_cast<std::uint64_t>(range.last) - static_cast<std::uint64_t>(range.first);
  if (sizes / static_cast<std::uint64_t>(range.step) >= most_sizes)
    throw formats::Error(std::string(where), formats::in_quotes(text) + " has too many sizes",
                         "a million at most");
  // So that the last one is a size, and the one after it is a number.
  range.last = range.first +
               static_cast<std::int64_t>(sizes - sizes % static_cast<std::uint64_t>(range.step));
  return range;
}

void require_by_layout(const AskedCall& asked) {
  if (!asked.call.a_stride.empty() || !asked.call.b_stride.empty())
    throw formats::Error("plan", "a range of sizes goes with --layout, not with strides");
  if (!asked.book.empty())
    throw formats::Error("plan", "a range of sizes goes without --book, which has single calls");
}

bool PlanRuns::are_known() const {
  return std::ranges::none_of(runs, [](const PlanRun& run) { return run.known == Known::unknown; });
}

std::size_t PlanRuns::plans() const {
  std::set<std::string> different;
  for (const PlanRun& run : runs) different.insert(run.plan);
  different.erase("");
  return different.size();
}

PlanRuns plans_of_sizes(const AskedCall& asked, char varied, const SizeRange& range) {
  require_by_layout(asked);
  AskedCall one = asked;
  PlanRuns result{asked.call, varied, range.step, {}};
  size_of(result.call, varied) = range.first;
  for (std::size_t i = 0; i < range.count(); ++i) {
    const std::int64_t size = range.first + static_cast<std::int64_t>(i) * range.step;
    size_of(one.call, varied) = size;
    add(result.runs, size, plan_of_call(one).answer);
  }
  return result;
}

nlohmann::ordered_json to_json(const PlanRuns& runs) {
  nlohmann::ordered_json asked = sizes_json(runs.call);
  const std::string varied(1, runs.varied);
  asked.erase(varied);
  nlohmann::ordered_json j = {{"call", std::move(asked)},
                              {"varied", varied},
                              {"first", runs.runs.front().first},
                              {"last", runs.runs.back().last},
                              {"step", runs.step}};
  j["plans"] = runs.plans();
  j["runs"] = run_columns().json_list(runs.runs);
  j["holds_for"] = scope_json();
  return j;
}

void print(std::ostream& out, const PlanRuns& runs) {
  out << sizes_text(runs.call, std::string(1, runs.varied)) << ", " << runs.varied << " = "
      << runs.runs.front().first << " to " << runs.runs.back().last;
  if (runs.step != 1) out << " in steps of " << runs.step;
  out << "\n\n";
  run_columns().table(runs.runs).print(out);
  out << '\n' << runs.plans() << (runs.plans() == 1 ? " plan" : " plans");
  if (runs.varied != 'k')
    out << "; a " << (runs.varied == 'm' ? "row" : "column")
        << " of D has the same bits where the plan is the same";
  out << ".\n" << scope_line();
}

}  // namespace guardbit::tools
