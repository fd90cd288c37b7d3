#pragma once

#include <nanobind/nanobind.h>

// The parts of the module guardbit._core. Arrays come in as Array; what a function reports comes
// out as JSON, with the keys that the command prints.
namespace guardbit::python {

/// Files of tensors.
void bind_files(nanobind::module_& module);
/// Formats, conversions of arrays, quantisation in blocks.
void bind_formats(nanobind::module_& module);
/// Special functions and CUDA's mathematics on arrays.
void bind_functions(nanobind::module_& module);
/// The catalogue of instructions and of plans, single instructions.
void bind_instructions(nanobind::module_& module);
/// Matrix products and convolutions by plans.
void bind_products(nanobind::module_& module);
/// What is said of products: explain and compare.
void bind_reports(nanobind::module_& module);
/// Operators of a program that runs.
void bind_operators(nanobind::module_& module);
/// Units asked, recordings executed again: probe and verify.
void bind_probe(nanobind::module_& module);
/// Formats, recipes and loss scalers on recorded tensors: trace, recipe compare, scaler replay.
void bind_traces(nanobind::module_& module);

}  // namespace guardbit::python
