#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

double percent_of(std::uint64_t part, std::uint64_t whole);

/// A drawing (inline SVG) of the shares of the numbers by binade; below it what each format holds
/// at the first scale: darker where its numbers are normal.
std::string histogram_plot(const TraceResults& results, const std::string& name,
                           const experiments::TraceStatistics& statistics);

/// Underflow and overflow of each format by the scale.
std::string loss_plot(const TraceResults& results, const experiments::TraceStatistics& statistics);

/// SQNR by recipe: a dot for each tensor (of many, some), a bar across for all of them.
std::string sqnr_plot(const TraceResults& results, const experiments::RecipeStatistics& total);

/// A curve of log2 of the largest magnitude by step, for each role that has two steps; empty when
/// none has.
std::string trend_plot(const TraceResults& results);

}  // namespace guardbit::tools
