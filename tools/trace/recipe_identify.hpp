#pragma once

namespace CLI {
class App;
}

namespace guardbit::tools {

/// Adds `identify`: which MX mode wrote a file.
void add_recipe_identify(CLI::App& recipe);

}  // namespace guardbit::tools
