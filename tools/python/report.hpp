#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>

#include "tools/plot/chart.hpp"
#include "tools/plot/drawing.hpp"

// What functions that report give back.
namespace guardbit::python {

/// What the command prints with --json and without, and its picture, drawn when it is asked for;
/// none where there is nothing to draw.
struct Report {
  std::string json, text;
  std::function<tools::Drawing(const tools::ChartOptions&)> draw = {};
};

void bind_report(nanobind::module_& module);

}  // namespace guardbit::python
