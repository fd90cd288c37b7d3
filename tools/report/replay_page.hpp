#pragma once

#include <string>
#include <vector>

#include "tools/products/replay_report.hpp"

namespace guardbit::tools {

/// What became of the calls of recordings, as a page of HTML.
std::string replay_page(const std::vector<ReplayedFile>& files);

}  // namespace guardbit::tools
