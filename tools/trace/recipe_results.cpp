#include "tools/trace/recipe_results.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "formats/conversion/array_conversion.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"
#include "tools/trace/trace_options.hpp"
#include "tools/trace/trace_sidecar.hpp"

namespace guardbit::tools {

using experiments::Recipe;
using experiments::RecipeOutcome;
using experiments::RecipeState;
using experiments::Signal;
using experiments::StoredTensor;
using experiments::TraceName;
using nlohmann::ordered_json;

namespace {

/// A tensor of a file, and what is known of it.
struct TensorPlace {
  std::size_t index = 0;
  experiments::TraceName meaning;
  std::optional<double> loss_scale = {};
};

std::vector<TensorPlace> places_of(const std::string& file, const formats::TensorStreams& content,
                                   const std::string& role) {
  const Sidecar sidecar(file, content.metadata);
  std::vector<TensorPlace> places;
  for (std::size_t i = 0; i < content.tensors.size(); ++i) {
    const formats::Tensor& tensor = content.tensors[i].tensor;
    if (tensor.format.encoding != formats::Encoding::floating) continue;
    TensorPlace place = {i, meaning_of(file, tensor.name)};
    sidecar.complete(tensor.name, place.meaning, place.loss_scale);
    if (role.empty() || place.meaning.role == role) places.push_back(std::move(place));
  }
  std::stable_sort(places.begin(), places.end(), [](const TensorPlace& a, const TensorPlace& b) {
    return a.meaning.step.value_or(0) < b.meaning.step.value_or(0);
  });
  return places;
}

/// Files in the order of the first step that each holds.
std::vector<std::string> files_by_step(const std::vector<std::string>& words,
                                       const std::string& role,
                                       const formats::FormatOverrides& overrides) {
  std::vector<std::string> files = trace_files(words);
  if (files.size() < 2) return files;
  std::vector<std::pair<std::uint64_t, std::string>> ordered;
  for (const std::string& file : files) {
    const auto places = places_of(file, formats::open_tensors(file, overrides), role);
    ordered.emplace_back(places.empty() ? 0 : places.front().meaning.step.value_or(0), file);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = ordered[i].second;
  return files;
}

/// What recipes remember of a tensor between steps.
struct Memory {
  /// by recipe
  std::vector<RecipeState> states;
  std::optional<std::uint64_t> step;
};

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0 || part == 0) return "0";
  const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return number(value, value < 0.005 ? "%.1e" : "%.2f");
}

std::string decibels(const std::optional<double>& value) {
  return value ? number(*value, "%.2f") : "-";
}

ordered_json to_json(const std::vector<Recipe>& recipes, const StoredTensor& compared) {
  ordered_json object = ordered_json::object();
  for (std::size_t r = 0; r < recipes.size(); ++r)
    object[recipes[r].name] = outcome_to_json(compared.signal, compared.outcomes[r]);
  return object;
}

void add_numbers(ordered_json& object, const Signal& signal) {
  object["elements"] = signal.elements;
  object["finite"] = signal.finite;
  object["nonzero"] = signal.nonzero;
  object["sum_squares"] = signal.squares.nearest();
}

/// What the recipes made of each step or rank.
ordered_json groups_to_json(const RecipeResults& results, const char* key,
                            std::optional<std::uint64_t> TraceName::*field) {
  ordered_json groups = ordered_json::array();
  for (const auto& [value, compared] : results.by(field)) {
    ordered_json object = {{key, value}};
    add_numbers(object, compared.signal);
    object["recipes"] = to_json(results.recipes, compared);
    groups.push_back(std::move(object));
  }
  return groups;
}

}  // namespace

ordered_json outcome_to_json(const Signal& signal, const RecipeOutcome& outcome) {
  return {{"underflow", outcome.underflow},
          {"saturated", outcome.saturated},
          {"nonfinite", outcome.nonfinite},
          {"sqnr_db", or_null(experiments::sqnr_db(signal, outcome))},
          {"noise", outcome.noise.nearest()},
          {"groups", outcome.groups},
          {"bytes", outcome.bytes}};
}

StoredTensor RecipeResults::total() const {
  StoredTensor all;
  all.outcomes.resize(recipes.size());
  for (const ComparedTensor& tensor : tensors)
    if (tensor.is_finite()) all.add(tensor.compared);
  return all;
}

std::vector<const ComparedTensor*> RecipeResults::left_out() const {
  std::vector<const ComparedTensor*> bad;
  for (const ComparedTensor& tensor : tensors)
    if (!tensor.is_finite()) bad.push_back(&tensor);
  return bad;
}

std::map<std::uint64_t, StoredTensor> RecipeResults::by(
    std::optional<std::uint64_t> TraceName::*field) const {
  std::map<std::uint64_t, StoredTensor> groups;
  for (const ComparedTensor& tensor : tensors) {
    const auto& value = tensor.meaning.*field;
    if (value && tensor.is_finite()) groups[*value].add(tensor.compared);
  }
  return groups;
}

void compare_recipes(RecipeResults& results, const std::vector<std::string>& words,
                     const std::string& role, const formats::FormatOverrides& overrides,
                     int threads, const std::function<void()>& pause) {
  std::map<std::string, Memory> memories;
  for (const std::string& file : files_by_step(words, role, overrides)) {
    const formats::TensorStreams content = formats::open_tensors(file, overrides);
    for (const TensorPlace& place : places_of(file, content, role)) {
      pause();
      const formats::StreamedTensor& stream = content.tensors[place.index];
      const formats::Tensor& tensor = stream.tensor;
      const std::string rank =
          place.meaning.rank ? "#" + std::to_string(*place.meaning.rank) : std::string();
      Memory& memory = memories[place.meaning.tensor + "." + place.meaning.role + rank];
      if (place.meaning.step && memory.step && *place.meaning.step <= *memory.step)
        results.remarks.push_back(formats::printable(tensor.name) + " of step " +
                                  std::to_string(*place.meaning.step) + " comes after step " +
                                  std::to_string(*memory.step) +
                                  ": delayed scaling saw them in this order");
      memory.step = place.meaning.step;
      results.tensors.push_back(
          {file, tensor.name, place.meaning,
           experiments::store_tensor(results.recipes, stream, results.layout, memory.states,
                                     threads, [&](std::size_t) { pause(); }),
           place.loss_scale});
    }
  }
}

ordered_json to_json(const RecipeResults& results) {
  ordered_json document = {{"layout", formats::word_of(results.layout)}};
  document["tensors"] = ordered_json::array();
  for (const ComparedTensor& tensor : results.tensors) {
    ordered_json object = {{"name", tensor.name}, {"file", tensor.file}};
    object["step"] = or_null(tensor.meaning.step);
    object["rank"] = or_null(tensor.meaning.rank);
    object["role"] =
        tensor.meaning.role.empty() ? ordered_json(nullptr) : ordered_json(tensor.meaning.role);
    add_numbers(object, tensor.compared.signal);
    object["recipes"] = to_json(results.recipes, tensor.compared);
    document["tensors"].push_back(std::move(object));
  }
  document["steps"] = groups_to_json(results, "step", &TraceName::step);
  document["ranks"] = groups_to_json(results, "rank", &TraceName::rank);
  const StoredTensor total = results.total();
  add_numbers(document["total"], total.signal);
  document["total"]["recipes"] = to_json(results.recipes, total);
  document["left_out"] = ordered_json::array();
  for (const ComparedTensor* const bad : results.left_out())
    document["left_out"].push_back(
        {{"name", bad->name}, {"step", or_null(bad->meaning.step)}, {"file", bad->file}});
  const RecipeAdvice advice = advice_of(results);
  document["recommendation"] = {
      {"recipe", advice.recipe.empty() ? ordered_json(nullptr) : ordered_json(advice.recipe)},
      {"text", advice.sentences}};
  document["remarks"] = results.remarks;
  return document;
}

namespace {

/// A row per tensor: what this recipe makes of it, and which recipe has the highest SQNR; those
/// that it serves worst first.
void print_tensors(std::ostream& out, const RecipeResults& results, std::size_t recipe) {
  constexpr std::size_t most = 40;
  struct Row {
    const ComparedTensor* tensor;
    std::optional<double> sqnr, best;
    std::string best_recipe = {};
  };
  std::vector<Row> rows;
  for (const ComparedTensor& tensor : results.tensors) {
    if (!tensor.is_finite()) continue;
    Row row = {&tensor, {}, {}};
    for (std::size_t r = 0; r < results.recipes.size(); ++r) {
      const auto sqnr = experiments::sqnr_db(tensor.compared.signal, tensor.compared.outcomes[r]);
      if (r == recipe) row.sqnr = sqnr;
      if (!sqnr || (row.best && *sqnr <= *row.best)) continue;
      row.best = sqnr;
      row.best_recipe = results.recipes[r].name;
    }
    rows.push_back(std::move(row));
  }
  if (rows.size() < 2) return;
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.sqnr.value_or(1e9) < b.sqnr.value_or(1e9);
  });
  const std::size_t left = rows.size() - std::min(rows.size(), most);
  rows.resize(rows.size() - left);
  const auto of_meaning = [](auto field) {
    return [field](const Row& r) {
      const auto& x = r.tensor->meaning.*field;
      return x ? std::to_string(*x) : std::string();
    };
  };
  const auto outcome = [recipe](const Row& r) -> const RecipeOutcome& {
    return r.tensor->compared.outcomes[recipe];
  };
  const Columns<Row> columns = {
      {"",
       "tensor with " + results.recipes[recipe].name,
       Side::left,
       {},
       [](const Row& r) { return formats::printable(r.tensor->name); }},
      {"", "step", Side::right, {}, of_meaning(&TraceName::step), 0, false, true},
      {"", "rank", Side::right, {}, of_meaning(&TraceName::rank), 0, false, true},
      {"", "SQNR dB", Side::right, {}, [](const Row& r) { return decibels(r.sqnr); }},
      {"",
       "saturated %",
       Side::right,
       {},
       [&](const Row& r) {
         return percent(outcome(r).saturated, r.tensor->compared.signal.finite);
       }},
      {"",
       "underflow %",
       Side::right,
       {},
       [&](const Row& r) {
         return percent(outcome(r).underflow, r.tensor->compared.signal.nonzero);
       }},
      {"", "highest SQNR", Side::left, {}, [](const Row& r) {
         return r.best ? decibels(r.best) + " " + r.best_recipe : std::string("-");
       }}};
  out << '\n';
  columns.print(out, rows);
  if (left != 0) out << "… and " << left << " more, which it serves better; --json has all\n";
}

/// A row per rank: what this recipe makes of its tensors. Where ranks differ, one of them went
/// astray.
void print_ranks(std::ostream& out, const RecipeResults& results, std::size_t recipe) {
  const auto ranks = results.by(&TraceName::rank);
  if (ranks.size() < 2) return;
  Table table("rrrrr");
  table.add({"rank with " + results.recipes[recipe].name, "elements", "SQNR dB", "saturated %",
             "underflow %"});
  for (const auto& [rank, compared] : ranks) {
    const RecipeOutcome& outcome = compared.outcomes[recipe];
    table.add({std::to_string(rank), std::to_string(compared.signal.elements),
               decibels(experiments::sqnr_db(compared.signal, outcome)),
               percent(outcome.saturated, compared.signal.finite),
               percent(outcome.underflow, compared.signal.nonzero)});
  }
  out << '\n';
  table.print(out);
}

}  // namespace

void print_recipes(std::ostream& out, const RecipeResults& results) {
  constexpr std::size_t most_steps = 6;
  const StoredTensor total = results.total();
  const auto steps = results.by(&TraceName::step);
  struct Row {
    std::string name;
    const RecipeOutcome& outcome;
    std::size_t recipe;
  };
  std::vector<Row> rows;
  for (std::size_t r = 0; r < results.recipes.size(); ++r)
    rows.push_back({results.recipes[r].name, total.outcomes[r], r});
  const Signal& signal = total.signal;
  const auto bits_per_element = [&](const Row& r) {
    const auto bits = 8.0 * static_cast<double>(r.outcome.bytes);
    return signal.elements == 0 ? 0 : bits / static_cast<double>(signal.elements);
  };
  std::vector<Column<Row>> columns = {
      {"", "recipe", Side::left, {}, [](const Row& r) { return paint(r.name, Colour::bold); }},
      {"",
       "SQNR dB",
       Side::right,
       {},
       [&](const Row& r) {
         return r.outcome.nonfinite != 0 ? paint("not finite", Colour::red)
                                         : decibels(experiments::sqnr_db(signal, r.outcome));
       }},
      {"",
       "saturated %",
       Side::right,
       {},
       [&](const Row& r) { return percent(r.outcome.saturated, signal.finite); }},
      {"",
       "bits/element",
       Side::right,
       {},
       [&](const Row& r) { return decibels(bits_per_element(r)); }},
      {"", "underflow %", Side::right, {}, [&](const Row& r) {
         return percent(r.outcome.underflow, signal.nonzero);
       }}};
  if (steps.size() > 1 && steps.size() <= most_steps) {
    for (const auto& [step, compared] : steps)
      columns.push_back(
          {"", "step " + std::to_string(step), Side::right, {}, [&stored = compared](const Row& r) {
             return percent(stored.outcomes[r.recipe].underflow, stored.signal.nonzero);
           }});
  }
  Columns<Row>(std::move(columns)).print(out, rows);
  const auto left_out = results.left_out();
  out << counted(results.tensors.size() - left_out.size(), "tensor") << ", "
      << counted(total.signal.elements, "element") << ", " << total.signal.nonzero
      << " of them not zero; underflow is of these\n";
  for (const ComparedTensor* const bad : left_out)
    out << "left out: " << bad->meaning.place_text(bad->name) << ", of which "
        << bad->compared.signal.elements - bad->compared.signal.finite << " of "
        << bad->compared.signal.elements << " elements are not finite\n";
  for (const std::string& remark : results.remarks) out << "remark: " << remark << '\n';
  const RecipeAdvice advice = advice_of(results);
  const auto chosen = std::ranges::find(results.recipes, advice.recipe, &Recipe::name);
  if (chosen == results.recipes.end()) return;
  const auto recipe = static_cast<std::size_t>(chosen - results.recipes.begin());
  print_ranks(out, results, recipe);
  print_tensors(out, results, recipe);
  out << '\n' << paint("recommendation", Colour::bold) << '\n';
  for (const std::string& sentence : advice.sentences)
    for (const std::string& line : wrapped(sentence, 98)) out << "  " << line << '\n';
}

}  // namespace guardbit::tools
