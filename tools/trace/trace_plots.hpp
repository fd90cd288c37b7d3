#pragma once

#include <string>

#include "tools/plot/chart.hpp"
#include "tools/trace/recipe_results.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

double percent_of(std::uint64_t part, std::uint64_t whole);

// As parts of a page.

/// The shares of the numbers by binade; below them what each format holds at the first scale:
/// darker where its numbers are normal.
std::string histogram_plot(const TraceResults& results, const std::string& name,
                           const experiments::TraceStatistics& statistics);

/// Underflow and overflow of each format by the scale.
std::string loss_plot(const TraceResults& results, const experiments::TraceStatistics& statistics);

/// SQNR by recipe: a dot for each tensor (of many, some), another for all of them.
std::string sqnr_plot(const TraceResults& results, const experiments::RecipeStatistics& total);

/// A curve of the largest magnitude by step, for each role that has two steps; empty when
/// none has.
std::string trend_plot(const TraceResults& results);

/// SQNR of each tensor by recipe, and of all.
experiments::Figure sqnr_figure(const RecipeResults& results);

/// Numbers by binade, and below them what is lost at each scale, which the options shape.
Drawing trace_picture(const TraceResults& results, const ChartOptions& options);

}  // namespace guardbit::tools
