#pragma once

#include <functional>
#include <string>

#include "experiments/quantisation/structured_sparsity.hpp"
#include "tools/console/columns.hpp"

// Columns of tables about 2:4 pruning.
namespace guardbit::tools {

/// What 2:4 pruning kept, of records that hold a summary of it. `percent`: how a share is written.
template <class Record>
Columns<Record> pruning_columns_of(
    const std::function<const experiments::PruningSummary&(const Record&)>& summary,
    const std::function<std::string(double)>& percent) {
  using Summary = experiments::PruningSummary;
  using Json = nlohmann::ordered_json;
  const auto count = [&](const char* key, const char* head, std::uint64_t Summary::*field) {
    return Column<Record>{key, head, Side::right,
                          [=](const Record& r) -> Json { return summary(r).*field; }};
  };
  const auto share = [&](const char* key, const char* head, double Summary::*part,
                         double Summary::*all) {
    return Column<Record>{
        key,
        head,
        Side::right,
        [=](const Record& r) -> Json { return 100 * summary(r).*part / summary(r).*all; },
        [=](const Record& r) { return percent(summary(r).*part / summary(r).*all); },
        1};
  };
  return {count("groups", "groups", &Summary::groups),
          share("kept_magnitude_percent", "|w| kept", &Summary::kept, &Summary::all),
          share("kept_squares_percent", "w^2 kept", &Summary::kept_squares, &Summary::all_squares),
          count("ties", "ties", &Summary::ties),
          count("fp32_ties", "ties in FP32", &Summary::rounded_ties)};
}

}  // namespace guardbit::tools
