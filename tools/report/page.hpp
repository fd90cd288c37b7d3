#pragma once

#include <string>
#include <string_view>

#include "tools/console/markup.hpp"

namespace guardbit::tools {

/// The beginning of a page that stands by itself, for the screen (light and dark) and for paper, up
/// to its body. `style`: rules of this page alone.
std::string page_head(const std::string& title, std::string_view style = {});
inline constexpr std::string_view page_end = "</body></html>\n";

}  // namespace guardbit::tools
