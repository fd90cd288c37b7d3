#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/scaling/recipes.hpp"
#include "experiments/traces/magnitude_cells.hpp"

namespace guardbit::tools {

/// What `trace` stores numbers as: every format at every scale, format by format; and formats whose
/// scales follow from the numbers.
struct TraceQuestions {
  /// as the user spells them
  std::vector<std::string> formats;
  /// log2, ascending
  std::vector<int> scales;
  std::vector<experiments::Storing> storings;
  std::vector<experiments::Recipe> recipes;
  experiments::Layout layout = experiments::Layout::flat;

  std::size_t storing(std::size_t format, std::size_t scale) const {
    return format * scales.size() + scale;
  }
};

/// Whose numbers too large for a format become what.
enum class OverflowPolicy : std::uint8_t { pytorch, nvidia, saturate, ieee };
constexpr auto words(OverflowPolicy) { return std::array{"pytorch", "nvidia", "saturate", "ieee"}; }

/// The exponents that a word for --scales names, ascending: FIRST:LAST[:STEP] or a comma-separated
/// list. Throws Error.
std::vector<int> parse_scales(const std::string& text);

/// What `trace` stores numbers as unless told otherwise.
inline constexpr const char* default_trace_formats = "fp16,bf16,e4m3,e5m2";

/// What a word for --layout means. Throws Error.
experiments::Layout layout_of(const std::string& word);

/// `formats` is a comma-separated list of names, of formats and of recipes (the default formats
/// where it has recipes alone); `scales` is FIRST:LAST[:STEP] or a comma-separated
/// list of exponents of two; `policy` a word of OverflowPolicy. Throws Error.
TraceQuestions trace_questions(const std::string& formats, const std::string& scales,
                               const std::string& policy, bool exact_product);

/// The files that the words name: themselves, the files of tensors below a folder in the order of
/// their names, or those that a pattern matches. Throws Error where there are none.
std::vector<std::string> trace_files(const std::vector<std::string>& words);

}  // namespace guardbit::tools
