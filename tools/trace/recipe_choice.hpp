#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scaling/recipes.hpp"

namespace guardbit::tools {

/// The known recipes that a comma-separated list of names or patterns chooses, in their own order.
/// Throws Error.
std::vector<experiments::Recipe> chosen_recipes(const std::string& list,
                                                const experiments::RecipeVariants& variants);

/// Those whose scales follow from the tensor itself, which `trace` takes beside formats: neither
/// loss scales nor delayed scaling.
std::vector<experiments::Recipe> self_scaled_recipes();

/// Of these: one of that name; all that a pattern matches; all of a block format ("mxfp8_e4m3":
/// its four modes). Nothing for a word that is none of this.
std::optional<std::vector<experiments::Recipe>> recipes_of_word(const std::string& word);

}  // namespace guardbit::tools
