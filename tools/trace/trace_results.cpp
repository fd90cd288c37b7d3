#include "tools/trace/trace_results.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "formats/format_catalogue.hpp"
#include "formats/support/words.hpp"
#include "tools/console/columns.hpp"
#include "tools/trace/recipe_results.hpp"

namespace guardbit::tools {

using experiments::ScaleWindow;
using experiments::StoringOutcome;
using experiments::TraceStatistics;
using nlohmann::ordered_json;

namespace {

double share(const experiments::ExactSum& part, const experiments::ExactSum& whole) {
  return part.is_zero() ? 0 : part.nearest() / whole.nearest();
}

ordered_json to_json(const ScaleWindow& window) {
  return {{"first", or_null(window.first)},
          {"last", or_null(window.last)},
          {"recommended", or_null(window.recommended)}};
}

/// The formats of `statistics`: for each one what happens at each scale.
ordered_json formats_to_json(const TraceResults& results, const TraceStatistics& statistics) {
  const TraceQuestions& questions = results.questions;
  ordered_json all = ordered_json::object();
  for (std::size_t f = 0; f < questions.formats.size(); ++f) {
    ordered_json underflow = ordered_json::object();
    ordered_json overflow = underflow;
    ordered_json subnormal = underflow;
    ordered_json lost = underflow;
    ordered_json lost_squares = underflow;
    ordered_json exact_lost = underflow;
    ordered_json exact_lost_squares = underflow;
    for (std::size_t s = 0; s < questions.scales.size(); ++s) {
      const StoringOutcome& outcome = statistics.outcomes[questions.storing(f, s)];
      const std::string key = std::to_string(questions.scales[s]);
      underflow[key] = outcome.underflow;
      overflow[key] = outcome.overflow;
      subnormal[key] = outcome.subnormal;
      lost[key] = share(outcome.lost, statistics.sum);
      lost_squares[key] = share(outcome.lost_squares, statistics.squares);
      exact_lost[key] = outcome.lost.text();
      exact_lost_squares[key] = outcome.lost_squares.text();
    }
    all[questions.formats[f]] = {{"underflow", std::move(underflow)},
                                 {"overflow", std::move(overflow)},
                                 {"subnormal", std::move(subnormal)},
                                 {"lost_mass", std::move(lost)},
                                 {"lost_squares", std::move(lost_squares)},
                                 {"window", to_json(window_of(results, f, statistics))},
                                 {"exact_lost", std::move(exact_lost)},
                                 {"exact_lost_squares", std::move(exact_lost_squares)}};
  }
  return all;
}

/// The formats whose scales follow from the numbers: for each one what happens, null where that is
/// not known.
void add_recipes(ordered_json& object, const std::vector<experiments::Recipe>& recipes,
                 const experiments::RecipeStatistics& statistics) {
  ordered_json all = ordered_json::object();
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    const auto& outcome = statistics.outcomes[r];
    ordered_json& one = all[recipes[r].name];
    if (!outcome) continue;
    one = outcome_to_json(statistics.signal, *outcome);
    one["exact_noise"] = outcome->noise.text();
  }
  object["recipes"] = std::move(all);
  object["recipe_input"] = {{"finite", statistics.signal.finite},
                            {"nonzero", statistics.signal.nonzero},
                            {"sum_squares", statistics.signal.squares.nearest()},
                            {"exact_sum_squares", statistics.signal.squares.text()}};
}

/// What JSON and CSV both say of numbers, whatever they are stored in.
const Columns<TraceStatistics>& count_columns() {
  using S = TraceStatistics;
  const auto column = [](const char* key, auto value) {
    return Column<S>{key, "", Side::none, value};
  };
  static const Columns<S> columns = {
      column("elements", [](const S& s) { return s.elements; }),
      column("zeros", [](const S& s) { return s.zeros; }),
      column("subnormals", [](const S& s) { return s.subnormals; }),
      column("infs", [](const S& s) { return s.infinities; }),
      column("nans", [](const S& s) { return s.nans; }),
      column("amax", [](const S& s) { return or_null(s.amax); }),
      column("amin_nonzero", [](const S& s) { return or_null(s.amin_nonzero); })};
  return columns;
}

void add_statistics(ordered_json& object, const TraceResults& results,
                    const TraceStatistics& statistics) {
  count_columns().add_to(object, statistics);
  if (results.sums) {
    object["sum_abs"] = statistics.sum.nearest();
    object["sum_squares"] = statistics.squares.nearest();
    object["exact_sum_abs"] = statistics.sum.text();
    object["exact_sum_squares"] = statistics.squares.text();
  }
  object["percentiles_log2"] = {{"1", or_null(statistics.percentile(0.01))},
                                {"10", or_null(statistics.percentile(0.1))},
                                {"50", or_null(statistics.percentile(0.5))},
                                {"90", or_null(statistics.percentile(0.9))},
                                {"99", or_null(statistics.percentile(0.99))}};
  ordered_json binades = ordered_json::object();
  for (const auto& [binade, count] : statistics.binades) binades[std::to_string(binade)] = count;
  object["binades"] = std::move(binades);
  if (results.questions.formats.empty()) return;
  object["formats"] = formats_to_json(results, statistics);
  const auto format = recommended_format(results, statistics);
  object["recommended_format"] =
      format ? ordered_json(results.questions.formats[*format]) : ordered_json(nullptr);
  if (!results.questions.recipes.empty())
    add_recipes(object, results.questions.recipes, statistics.recipes);
}

ordered_json to_json(const TraceResults& results, const TracedTensor& tensor) {
  ordered_json object = {{"name", tensor.name}};
  add_statistics(object, results, tensor.statistics);
  object["file"] = tensor.file;
  object["format"] = tensor.format;
  object["shape"] = tensor.shape;
  if (!results.questions.recipes.empty()) object["columns"] = tensor.columns;
  object["tensor"] = tensor.meaning.tensor;
  object["step"] = or_null(tensor.meaning.step);
  object["rank"] = or_null(tensor.meaning.rank);
  object["role"] =
      tensor.meaning.role.empty() ? ordered_json(nullptr) : ordered_json(tensor.meaning.role);
  object["loss_scale"] = or_null(tensor.loss_scale);
  object["first_nonfinite"] = or_null(tensor.first_nonfinite);
  object["first_nonfinite_is"] =
      tensor.first_nonfinite ? ordered_json(tensor.first_is_nan ? "nan" : "inf") : nullptr;
  return object;
}

/// How the roles fare from step to step: one list per quantity, in the order of `steps`.
ordered_json trends_to_json(const TraceResults& results) {
  const TraceQuestions& questions = results.questions;
  ordered_json roles = ordered_json::object();
  for (const auto& [role, steps] : by_role_and_step(results)) {
    if (steps.size() < 2) continue;
    ordered_json& trend = roles[role.empty() ? "other" : role];
    for (const auto& [step, s] : steps) {
      trend["steps"].push_back(step);
      trend["amax"].push_back(or_null(s.amax));
      trend["amin_nonzero"].push_back(or_null(s.amin_nonzero));
      trend["median_log2"].push_back(or_null(s.percentile(0.5)));
      trend["zeros"].push_back(s.zeros);
      for (std::size_t f = 0; f < questions.formats.size(); ++f) {
        ordered_json& format = trend["formats"][questions.formats[f]];
        format["underflow"].push_back(s.outcomes[questions.storing(f, 0)].underflow);
        format["recommended"].push_back(or_null(window_of(results, f, s).recommended));
      }
    }
  }
  return roles;
}

}  // namespace

ScaleWindow window_of(const TraceResults& results, std::size_t format,
                      const TraceStatistics& statistics) {
  std::map<int, const StoringOutcome*> by_scale;
  for (std::size_t s = 0; s < results.questions.scales.size(); ++s)
    by_scale[results.questions.scales[s]] =
        &statistics.outcomes[results.questions.storing(format, s)];
  return experiments::scale_window(by_scale, statistics.nonzero(), results.tolerance);
}

std::optional<std::size_t> recommended_format(const TraceResults& results,
                                              const TraceStatistics& statistics) {
  std::optional<std::size_t> best;
  const auto width = [&](std::size_t f) {
    return bits(results.questions.storings[results.questions.storing(f, 0)].to);
  };
  for (std::size_t f = 0; f < results.questions.formats.size(); ++f) {
    if (window_of(results, f, statistics).first && (!best || width(f) < width(*best))) best = f;
  }
  return best;
}

TraceStatistics total_of(const TraceResults& results) {
  TraceStatistics total;
  total.outcomes.resize(results.questions.storings.size());
  total.recipes.outcomes.resize(results.questions.recipes.size(), experiments::RecipeOutcome());
  for (const TracedTensor& tensor : results.tensors) total.add(tensor.statistics);
  return total;
}

std::map<std::string, TraceStatistics> by_role(const TraceResults& results) {
  std::map<std::string, TraceStatistics> roles;
  for (const TracedTensor& tensor : results.tensors) {
    if (!tensor.meaning.role.empty()) roles[tensor.meaning.role].add(tensor.statistics);
  }
  return roles;
}

std::map<std::string, std::map<std::uint64_t, TraceStatistics>> by_role_and_step(
    const TraceResults& results) {
  std::map<std::string, std::map<std::uint64_t, TraceStatistics>> roles;
  for (const TracedTensor& tensor : results.tensors) {
    if (tensor.meaning.step)
      roles[tensor.meaning.role][*tensor.meaning.step].add(tensor.statistics);
  }
  return roles;
}

std::optional<double> TracedUpdate::ratio() const {
  if (weight_squares.is_zero()) return std::nullopt;
  return std::sqrt(update_squares.nearest() / weight_squares.nearest());
}

const TracedTensor* first_nonfinite(const TraceResults& results) {
  const TracedTensor* first = nullptr;
  for (const TracedTensor& tensor : results.tensors) {
    if (!tensor.first_nonfinite) continue;
    // A tensor without a step comes before those with one only where the files say so.
    if (first == nullptr ||
        (tensor.meaning.step && first->meaning.step && *tensor.meaning.step < *first->meaning.step))
      first = &tensor;
  }
  return first;
}

std::optional<std::pair<const TracedTensor*, double>> lowest_sqnr(const TraceResults& results,
                                                                  std::size_t recipe) {
  std::optional<std::pair<const TracedTensor*, double>> lowest;
  for (const TracedTensor& tensor : results.tensors) {
    const experiments::RecipeStatistics& s = tensor.statistics.recipes;
    if (!s.outcomes[recipe] || tensor.first_nonfinite) continue;
    const auto sqnr = experiments::sqnr_db(s.signal, *s.outcomes[recipe]);
    if (sqnr && (!lowest || *sqnr < lowest->second)) lowest = {&tensor, *sqnr};
  }
  return lowest;
}

FiniteRecipes finite_recipes(const TraceResults& results) {
  FiniteRecipes finite;
  finite.statistics.outcomes.resize(results.questions.recipes.size(), experiments::RecipeOutcome());
  for (const TracedTensor& tensor : results.tensors) {
    if (tensor.first_nonfinite) {
      finite.left_out.push_back(&tensor);
    } else {
      finite.statistics.add(tensor.statistics.recipes);
    }
  }
  return finite;
}

double bits_per_element(const experiments::Signal& signal,
                        const experiments::RecipeOutcome& outcome) {
  return 8 * static_cast<double>(outcome.bytes) / static_cast<double>(signal.elements);
}

ordered_json to_json(const TraceResults& results) {
  ordered_json document = {{"trace", 1},
                           {"policy", results.policy},
                           {"scale_exact", results.exact_product},
                           {"tolerance", results.tolerance},
                           {"formats", results.questions.formats},
                           {"scales", results.questions.scales}};
  document["recipes"] = ordered_json::array();
  for (const experiments::Recipe& recipe : results.questions.recipes)
    document["recipes"].push_back(recipe.name);
  document["layout"] = formats::word_of(results.questions.layout);
  document["tensors"] = ordered_json::array();
  for (const TracedTensor& tensor : results.tensors)
    document["tensors"].push_back(to_json(results, tensor));
  document["roles"] = ordered_json::object();
  for (const auto& [role, statistics] : by_role(results))
    add_statistics(document["roles"][role], results, statistics);
  add_statistics(document["total"], results, total_of(results));
  document["recommendation"] = to_json(results, advice_of(results));
  document["trends"] = trends_to_json(results);
  document["updates"] = update_columns(results).json_list(results.updates);
  const TracedTensor* first = first_nonfinite(results);
  document["first_nonfinite"] = nullptr;
  if (first != nullptr) {
    document["first_nonfinite"] = {{"file", first->file},
                                   {"name", first->name},
                                   {"step", or_null(first->meaning.step)},
                                   {"index", *first->first_nonfinite},
                                   {"is", first->first_is_nan ? "nan" : "inf"}};
  }
  document["skipped"] = ordered_json::array();
  for (const auto& [what, why] : results.skipped)
    document["skipped"].push_back({{"name", what}, {"reason", why}});
  return document;
}

namespace {

/// A line of the CSV file: a tensor stored in a format at a scale, or by a recipe.
struct StoredRow {
  const TracedTensor* tensor;
  std::string_view to;
  std::optional<int> scale;
  /// one of the two
  const StoringOutcome* storing = nullptr;
  const experiments::RecipeOutcome* recipe = nullptr;
};

std::vector<StoredRow> stored_rows(const TraceResults& results) {
  const TraceQuestions& questions = results.questions;
  std::vector<StoredRow> rows;
  for (const TracedTensor& tensor : results.tensors) {
    const TraceStatistics& s = tensor.statistics;
    for (std::size_t f = 0; f < questions.formats.size(); ++f)
      for (std::size_t k = 0; k < questions.scales.size(); ++k)
        rows.push_back({&tensor, questions.formats[f], questions.scales[k],
                        &s.outcomes[questions.storing(f, k)]});
    for (std::size_t r = 0; r < questions.recipes.size(); ++r)
      if (const auto& outcome = s.recipes.outcomes[r])
        rows.push_back({&tensor, questions.recipes[r].name, {}, nullptr, &*outcome});
  }
  return rows;
}

}  // namespace

void print_csv(std::ostream& out, const TraceResults& results) {
  using Row = StoredRow;
  const auto column = [](const char* key, auto value) {
    return Column<Row>{key, "", Side::none, value};
  };
  const auto of_tensor = [&](const char* key, auto value) {
    return column(key, [value](const Row& r) -> ordered_json { return value(*r.tensor); });
  };
  const auto of_storing = [&](const char* key, auto value) {
    return column(key, [value](const Row& r) -> ordered_json {
      return r.storing == nullptr ? ordered_json() : ordered_json(value(*r.storing));
    });
  };
  const auto of_recipe = [&](const char* key, auto value) {
    return column(key, [value](const Row& r) -> ordered_json {
      return r.recipe == nullptr ? ordered_json() : ordered_json(value(*r.recipe));
    });
  };
  const Columns<Row> of_tensors = {
      of_tensor("file", [](const auto& t) { return t.file; }),
      of_tensor("name", [](const auto& t) { return t.name; }),
      of_tensor("step", [](const auto& t) { return or_null(t.meaning.step); }),
      of_tensor("rank", [](const auto& t) { return or_null(t.meaning.rank); }),
      of_tensor("role", [](const auto& t) { return t.meaning.role; })};
  const Columns<Row> of_stores = {
      column("format", [](const Row& r) { return r.to; }),
      column("scale_log2", [](const Row& r) { return or_null(r.scale); }),
      column("underflow",
             [](const Row& r) {
               return r.storing != nullptr ? r.storing->underflow : r.recipe->underflow;
             }),
      of_storing("overflow", [](const auto& o) { return o.overflow; }),
      of_storing("subnormal", [](const auto& o) { return o.subnormal; }),
      column("lost_mass",
             [](const Row& r) {
               return r.storing == nullptr
                          ? ordered_json()
                          : ordered_json(share(r.storing->lost, r.tensor->statistics.sum));
             }),
      of_recipe("saturated", [](const auto& o) { return o.saturated; }),
      of_recipe("nonfinite", [](const auto& o) { return o.nonfinite; }),
      column("sqnr_db",
             [](const Row& r) {
               return r.recipe == nullptr ? ordered_json()
                                          : or_null(experiments::sqnr_db(
                                                r.tensor->statistics.recipes.signal, *r.recipe));
             }),
      of_recipe("bytes", [](const auto& o) { return o.bytes; })};
  const auto counts = count_columns().of<Row>(
      [](const Row& r) -> const TraceStatistics& { return r.tensor->statistics; });
  (of_tensors + counts + of_stores).print_csv(out, stored_rows(results));
}

}  // namespace guardbit::tools
