#include "tools/trace/recipe_comparison.hpp"

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/console/counted.hpp"
#include "tools/trace/recipe_choice.hpp"
#include "tools/trace/trace_options.hpp"

namespace guardbit::tools {

namespace {

std::vector<experiments::Recipe> recipes_of(const RecipeSettings& settings) {
  experiments::RecipeVariants variants;
  variants.exponents = parse_scales(settings.scales);
  for (const int exponent : {variants.exponents.front(), variants.exponents.back()}) {
    if (exponent < -126 || exponent > 127)
      throw formats::Error("--scales", "2^" + std::to_string(exponent) + " is no number of FP32",
                           "-126 to 127");
  }
  variants.histories = settings.histories;
  variants.margin = settings.margin;
  return chosen_recipes(settings.recipes, variants);
}

std::string role_of(const RecipeSettings& settings) {
  if (settings.role.empty()) return "";
  const auto role = experiments::role_of(settings.role);
  if (!role)
    throw formats::Error("--role", formats::in_quotes(settings.role) + " is none",
                         "wgrad, grad_out, grad_in, act, weight, update");
  return std::string(*role);
}

void require_finite_tensor(const RecipeResults& results) {
  const auto left_out = results.left_out();
  if (left_out.size() != results.tensors.size()) return;
  const ComparedTensor& bad = *left_out.front();
  throw formats::Error(
      "recipe compare",
      "no tensor has finite numbers alone, as recipes need; " +
          std::to_string(bad.compared.signal.elements - bad.compared.signal.finite) + " of " +
          counted(bad.compared.signal.elements, "element") + " of " +
          bad.meaning.place_text(bad.name) + " are not");
}

}  // namespace

RecipeResults compared_recipes(const std::vector<std::string>& words,
                               const RecipeSettings& settings, const std::function<void()>& pause) {
  if (words.empty()) throw formats::Error("recipe compare", "no trace");
  RecipeResults results;
  results.recipes = recipes_of(settings);
  results.layout = layout_of(settings.layout);
  const std::string role = role_of(settings);
  formats::FormatOverrides overrides;
  if (!settings.from.empty()) overrides.any = require_element_format(settings.from, "--from");
  compare_recipes(results, words, role, overrides, settings.threads, pause);
  if (results.tensors.empty())
    throw formats::Error("recipe compare", "no floating-point tensors" +
                                               (role.empty() ? "" : " of the role " + role));
  require_finite_tensor(results);
  return results;
}

}  // namespace guardbit::tools
