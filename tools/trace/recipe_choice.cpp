#include "tools/trace/recipe_choice.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::tools {

using experiments::Recipe;
using experiments::RecipeVariants;
using experiments::Scaling;

std::vector<Recipe> chosen_recipes(const std::string& list, const RecipeVariants& variants) {
  const std::vector<Recipe> known = experiments::known_recipes(variants);
  std::vector<bool> wanted(known.size());
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string pattern = formats::lower_case(list.substr(begin, end - begin));
    bool found = false;
    for (std::size_t r = 0; r < known.size(); ++r) {
      if (fnmatch(pattern.c_str(), known[r].name.c_str(), 0) != 0) continue;
      wanted[r] = true;
      found = true;
    }
    if (!found) {
      std::vector<std::string_view> names;
      std::string all;
      for (const Recipe& recipe : known) {
        names.push_back(recipe.name);
        all.append(all.empty() ? "" : ", ").append(recipe.name);
      }
      throw formats::Error("--recipes", formats::unknown_name("recipe", pattern, names), all);
    }
    begin = end + 1;
  }
  std::vector<Recipe> recipes;
  for (std::size_t r = 0; r < known.size(); ++r) {
    if (wanted[r]) recipes.push_back(known[r]);
  }
  return recipes;
}

std::vector<Recipe> self_scaled_recipes() {
  std::vector<Recipe> recipes = experiments::known_recipes({});
  std::erase_if(recipes, [](const Recipe& recipe) {
    return recipe.scaling == Scaling::fixed || recipe.scaling == Scaling::te_delayed;
  });
  return recipes;
}

std::optional<std::vector<Recipe>> recipes_of_word(const std::string& word) {
  const std::string name = formats::lower_case(word);
  std::vector<Recipe> found;
  const auto keep = [&](const auto& is_wanted) {
    for (const Recipe& recipe : self_scaled_recipes()) {
      if (is_wanted(recipe)) found.push_back(recipe);
    }
  };
  keep([&](const Recipe& recipe) { return recipe.name == name; });
  if (found.empty() && name.find_first_of("*?[") != std::string::npos)
    keep([&](const Recipe& r) { return fnmatch(name.c_str(), r.name.c_str(), 0) == 0; });
  if (found.empty())
    keep([&](const Recipe& r) {
      return r.scaling == Scaling::mx && r.name.starts_with(name + "_");
    });
  if (found.empty()) return std::nullopt;
  return found;
}

}  // namespace guardbit::tools
