#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/division/results_file.hpp"
#include "tools/console/read_json.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

using experiments::StoringOutcome;
using experiments::TraceStatistics;
using nlohmann::json;

namespace {

void read_sum(experiments::ExactSum& sum, const json& text) {
  if (!sum.add_text(text.get<std::string>()))
    throw formats::Error("exact sum", formats::in_quotes(text.get<std::string>()) + " is none");
}

int binade_of(const std::string& text) {
  int binade = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), binade);
  if (error != std::errc() || end != text.data() + text.size())
    throw formats::Error("binade", formats::in_quotes(text) + " is none");
  return binade;
}

template <class T>
std::optional<T> optional_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

experiments::RecipeStatistics recipes_of(const json& object,
                                         const std::vector<experiments::Recipe>& recipes) {
  experiments::RecipeStatistics all;
  const json& input = object.at("recipe_input");
  all.signal.elements = object.at("elements");
  all.signal.finite = input.at("finite");
  all.signal.nonzero = input.at("nonzero");
  read_sum(all.signal.squares, input.at("exact_sum_squares"));
  for (const experiments::Recipe& recipe : recipes) {
    const json& one = object.at("recipes").at(recipe.name);
    std::optional<experiments::RecipeOutcome>& outcome = all.outcomes.emplace_back();
    if (one.is_null()) continue;
    outcome.emplace();
    outcome->underflow = one.at("underflow");
    outcome->saturated = one.at("saturated");
    outcome->nonfinite = one.at("nonfinite");
    outcome->groups = one.at("groups");
    outcome->bytes = one.at("bytes");
    read_sum(outcome->noise, one.at("exact_noise"));
  }
  return all;
}

TraceStatistics statistics_of(const json& object, const TraceQuestions& questions) {
  TraceStatistics s;
  s.elements = object.at("elements");
  s.zeros = object.at("zeros");
  s.subnormals = object.at("subnormals");
  s.infinities = object.at("infs");
  s.nans = object.at("nans");
  s.amax = optional_of<double>(object.at("amax"));
  s.amin_nonzero = optional_of<double>(object.at("amin_nonzero"));
  if (!questions.formats.empty()) {
    read_sum(s.sum, object.at("exact_sum_abs"));
    read_sum(s.squares, object.at("exact_sum_squares"));
  }
  for (const auto& [binade, count] : object.at("binades").items())
    s.binades[binade_of(binade)] = count;
  for (const std::string& name : questions.formats) {
    const json& format = object.at("formats").at(name);
    for (const int scale : questions.scales) {
      const std::string key = std::to_string(scale);
      StoringOutcome outcome;
      outcome.underflow = format.at("underflow").at(key);
      outcome.overflow = format.at("overflow").at(key);
      outcome.subnormal = format.at("subnormal").at(key);
      read_sum(outcome.lost, format.at("exact_lost").at(key));
      read_sum(outcome.lost_squares, format.at("exact_lost_squares").at(key));
      s.outcomes.push_back(std::move(outcome));
    }
  }
  if (!questions.recipes.empty()) s.recipes = recipes_of(object, questions.recipes);
  return s;
}

TracedTensor tensor_of(const json& object, const TraceQuestions& questions) {
  TracedTensor tensor;
  tensor.name = object.at("name");
  tensor.file = object.at("file");
  tensor.format = object.at("format");
  tensor.shape = object.at("shape").get<std::vector<std::int64_t>>();
  tensor.meaning.tensor = object.at("tensor");
  tensor.meaning.step = optional_of<std::uint64_t>(object.at("step"));
  tensor.meaning.rank = optional_of<std::uint64_t>(object.at("rank"));
  tensor.meaning.role = optional_of<std::string>(object.at("role")).value_or("");
  tensor.loss_scale = optional_of<double>(object.at("loss_scale"));
  tensor.first_nonfinite = optional_of<std::uint64_t>(object.at("first_nonfinite"));
  tensor.first_is_nan = object.at("first_nonfinite_is") == "nan";
  tensor.statistics = statistics_of(object, questions);
  if (!questions.recipes.empty()) tensor.columns = object.at("columns");
  return tensor;
}

/// The word as the command line takes it.
std::string scales_text(const std::vector<int>& scales) {
  std::string text;
  for (const int scale : scales) text += (text.empty() ? "" : ",") + std::to_string(scale);
  return text;
}

/// The formats and the recipes, likewise.
std::string formats_text(const json& document) {
  std::string text;
  for (const char* const key : {"formats", "recipes"}) {
    for (const json& name : document.value(key, json::array()))
      text.append(text.empty() ? "" : ",").append(name.get<std::string>());
  }
  return text;
}

TracedUpdate update_of(const json& object, const TraceQuestions& questions) {
  TracedUpdate update;
  update.tensor = object.at("tensor");
  update.step = optional_of<std::uint64_t>(object.at("step"));
  update.effect.changes = object.at("changes");
  for (const std::string& name : questions.formats)
    update.effect.stale.push_back(object.at("stale").at(name));
  read_sum(update.weight_squares, object.at("exact_weight_squares"));
  read_sum(update.update_squares, object.at("exact_update_squares"));
  return update;
}

TraceResults results_of(const json& document) {
  TraceResults results;
  results.policy = document.at("policy");
  results.exact_product = document.at("scale_exact");
  results.tolerance = document.at("tolerance");
  results.sums = !document.at("formats").empty();
  if (results.sums) {
    results.questions = trace_questions(formats_text(document), scales_text(document.at("scales")),
                                        results.policy, results.exact_product);
    results.questions.layout = layout_of(document.value("layout", "flat"));
  }
  for (const json& tensor : document.at("tensors"))
    results.tensors.push_back(tensor_of(tensor, results.questions));
  for (const json& update : document.at("updates"))
    results.updates.push_back(update_of(update, results.questions));
  for (const json& skipped : document.at("skipped"))
    results.skipped.emplace_back(skipped.at("name"), skipped.at("reason"));
  return results;
}

TraceResults read_results(const std::string& file) {
  const json document = read_json(file);
  try {
    return results_of(document);
  } catch (const json::exception&) {
    throw formats::Error(formats::printable(file), "not what 'guardbit trace --json' prints");
  } catch (const std::exception& error) {
    throw formats::Error(formats::printable(file),
                         "not what 'guardbit trace --json' prints: " +
                             formats::printable(formats::without_library_words(error.what())));
  }
}

/// Of two parts of a tensor. Where the parts differ, nothing is said of the whole; the place of the
/// first element that is no number is one in its part, so only the file's order of parts, which is
/// not known, could give it.
void add(TracedTensor& whole, const TracedTensor& part) {
  whole.statistics.add(part.statistics);
  whole.shape.clear();
  whole.first_nonfinite.reset();
  whole.first_is_nan = false;
  if (whole.file != part.file) whole.file.clear();
  if (whole.format != part.format) whole.format.clear();
  if (whole.meaning.rank != part.meaning.rank) whole.meaning.rank.reset();
  if (whole.loss_scale != part.loss_scale) whole.loss_scale.reset();
  // Stands for both: runs whose length divides it lie in one part.
  whole.columns = std::gcd(whole.columns, part.columns);
}

experiments::TensorPart part_of(const TracedTensor& tensor) {
  const TraceStatistics& s = tensor.statistics;
  float amax = static_cast<float>(s.amax.value_or(0));
  if (s.infinities != 0) amax = std::numeric_limits<float>::infinity();
  if (s.nans != 0) amax = std::numeric_limits<float>::quiet_NaN();
  return {s.elements, tensor.columns, amax};
}

/// Leaves out what the parts cannot say of the whole.
void judge_recipes(TraceResults& merged, TracedTensor& whole,
                   const std::vector<experiments::TensorPart>& parts) {
  for (std::size_t r = 0; r < merged.questions.recipes.size(); ++r) {
    const experiments::Recipe& recipe = merged.questions.recipes[r];
    const auto why = experiments::why_not_additive(recipe, merged.questions.layout, parts);
    auto& outcome = whole.statistics.recipes.outcomes[r];
    if (!why) {
      if (outcome) settle(*outcome, recipe, whole.statistics.elements);
      continue;
    }
    outcome.reset();
    merged.skipped.emplace_back(whole.name + ": " + recipe.name, "not merged: " + *why);
  }
}

void add(TracedUpdate& whole, const TracedUpdate& part) {
  whole.weight_squares.add(part.weight_squares);
  whole.update_squares.add(part.update_squares);
  whole.effect.add(part.effect);
}

}  // namespace

TraceResults joined_results(const std::vector<nlohmann::ordered_json>& files) {
  TraceResults all;
  bool is_first = true;
  for (const nlohmann::ordered_json& file : files) {
    TraceResults one = of_kept_results("trace", [&] { return results_of(json(file)); });
    if (is_first) {
      all = std::move(one);
    } else {
      const auto append = [](auto& to, auto& from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()),
                  std::make_move_iterator(from.end()));
      };
      append(all.tensors, one.tensors);
      append(all.updates, one.updates);
      append(all.skipped, one.skipped);
    }
    is_first = false;
  }
  return all;
}

TraceResults merged_results(const std::vector<std::string>& files) {
  if (files.empty()) throw formats::Error("trace merge", "no files");
  TraceResults merged;
  using Key = std::pair<std::optional<std::uint64_t>, std::string>;
  std::map<Key, TracedTensor> by_name;
  std::map<Key, std::vector<experiments::TensorPart>> parts_of;
  std::map<Key, TracedUpdate> updates;
  bool first = true;
  for (const std::string& file : files) {
    TraceResults part = read_results(file);
    if (std::count(files.begin(), files.end(), file) > 1)
      throw formats::Error(formats::printable(file),
                           "is named twice: its numbers would count twice");
    if (first) {
      merged = part;
      merged.tensors.clear();
      merged.updates.clear();
      merged.skipped.clear();
    } else if (part.questions.formats != merged.questions.formats ||
               part.questions.storings != merged.questions.storings ||
               part.questions.layout != merged.questions.layout ||
               !std::ranges::equal(part.questions.recipes, merged.questions.recipes, {},
                                   &experiments::Recipe::name, &experiments::Recipe::name) ||
               part.policy != merged.policy || part.tolerance != merged.tolerance) {
      throw formats::Error(formats::printable(file),
                           "its formats, scales, layout, policy or tolerance are not those of " +
                               formats::printable(files.front()));
    }
    first = false;
    for (TracedTensor& tensor : part.tensors) {
      if (tensor.statistics.elements != 0)
        parts_of[{tensor.meaning.step, tensor.name}].push_back(part_of(tensor));
      const auto [at, is_new] = by_name.try_emplace({tensor.meaning.step, tensor.name}, tensor);
      if (!is_new) add(at->second, tensor);
    }
    for (TracedUpdate& update : part.updates) {
      const auto [at, is_new] = updates.try_emplace({update.step, update.tensor}, update);
      if (!is_new) add(at->second, update);
    }
    merged.skipped.insert(merged.skipped.end(), part.skipped.begin(), part.skipped.end());
  }
  for (auto& [key, tensor] : by_name) {
    judge_recipes(merged, tensor, parts_of[key]);
    merged.tensors.push_back(std::move(tensor));
  }
  for (auto& [key, update] : updates) merged.updates.push_back(std::move(update));
  std::sort(merged.skipped.begin(), merged.skipped.end());
  return merged;
}

}  // namespace guardbit::tools
