#include "tools/trace/trace_options.hpp"

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "formats/block_format.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/trace/recipe_choice.hpp"

namespace guardbit::tools {

namespace {

// Past it no FP64 number is left whose product is of interest.
constexpr int largest_scale = 2200;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.emplace_back();
  return parts;
}

int exponent_of(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || std::abs(value) > largest_scale) {
    throw formats::Error("--scales",
                         formats::in_quotes(text) + " is not the exponent of a power of two",
                         "-2200 to 2200; as in 0:32:4 or 0,8,16");
  }
  return value;
}

formats::Overflow overflow_of(const std::string& policy, const formats::Format& to) {
  const auto word = formats::require_word<OverflowPolicy>("policy", policy, "--policy");
  if (word == OverflowPolicy::ieee) return formats::overflow_ieee;
  if (word == OverflowPolicy::saturate) return formats::overflow_saturate;
  if (to == formats::fp32 || to == formats::fp64) return formats::overflow_ieee;
  const std::string name(formats::word_of(word));
  const formats::Converter* row =
      formats::find_converter(word == OverflowPolicy::nvidia ? "cvt.rn.satfinite" : name, to);
  if (row == nullptr)
    throw formats::Error("--policy", name + " has no conversion to " + formats::name_of(to),
                         "saturate, ieee");
  return row->overflow;
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (formats::has_tensor_extension(at->path().string()) && at->is_regular_file(error))
      files.push_back(at->path().string());
  }
  if (error) throw formats::Error(formats::printable(folder), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

/// Whether the word names recipes; they are added unless they are there.
bool add_recipes(std::vector<experiments::Recipe>& recipes, const std::string& word) {
  if (formats::find_format(word)) return false;
  const auto named = recipes_of_word(word);
  if (!named) return false;
  for (const experiments::Recipe& recipe : *named) {
    const auto is_it = [&](const experiments::Recipe& r) { return r.name == recipe.name; };
    if (std::none_of(recipes.begin(), recipes.end(), is_it)) recipes.push_back(recipe);
  }
  return true;
}

formats::Format trace_format(const std::string& name) {
  if (formats::find_format(name) || formats::find_block_format(name))
    return require_element_format(name, "--formats");
  std::vector<std::string_view> names;
  names.reserve(formats::format_catalogue.size());
  for (const formats::FormatEntry& entry : formats::format_catalogue) names.push_back(entry.name);
  const std::vector<experiments::Recipe> recipes = self_scaled_recipes();
  std::string list = formats::format_names() + ", e<E>m<F>";
  for (const experiments::Recipe& recipe : recipes) {
    names.push_back(recipe.name);
    list.append(", ").append(recipe.name);
  }
  throw formats::Error("--formats", formats::unknown_name("format", name, names), list);
}

}  // namespace

experiments::Layout layout_of(const std::string& word) {
  if (const auto found = formats::find_word<experiments::Layout>(word)) return *found;
  throw formats::Error("--layout", formats::in_quotes(word) + " is none",
                       formats::list_of_words<experiments::Layout>());
}

std::vector<int> parse_scales(const std::string& text) {
  std::vector<int> scales;
  for (const std::string& item : split(text, ',')) {
    const std::vector<std::string> parts = split(item, ':');
    if (parts.size() > 3)
      throw formats::Error("--scales", formats::in_quotes(item) + " has more than three parts",
                           "FIRST:LAST:STEP");
    const int first = exponent_of(parts[0]);
    const int last = parts.size() > 1 ? exponent_of(parts[1]) : first;
    const int step = parts.size() > 2 ? exponent_of(parts[2]) : 1;
    if (last < first || step < 1)
      throw formats::Error("--scales", formats::in_quotes(item) + " is empty",
                           "FIRST:LAST:STEP with FIRST <= LAST and STEP >= 1");
    for (int scale = first; scale <= last; scale += step) scales.push_back(scale);
  }
  std::sort(scales.begin(), scales.end());
  scales.erase(std::unique(scales.begin(), scales.end()), scales.end());
  return scales;
}

TraceQuestions trace_questions(const std::string& formats, const std::string& scales,
                               const std::string& policy, bool exact_product) {
  TraceQuestions questions;
  questions.scales = parse_scales(scales);
  for (const std::string& name : split(formats, ',')) {
    if (add_recipes(questions.recipes, name)) continue;
    const formats::Format to = trace_format(name);
    if (to.encoding != formats::Encoding::floating || !to.has_sign)
      throw formats::Error(
          "--formats", formats::in_quotes(name) + " is not a floating-point format with a sign");
    if (std::find(questions.formats.begin(), questions.formats.end(), name) !=
        questions.formats.end())
      continue;
    const formats::Overflow overflow = overflow_of(policy, to);
    questions.formats.push_back(name);
    for (const int scale : questions.scales)
      questions.storings.push_back({to, scale, overflow, exact_product});
  }
  if (questions.formats.empty()) {
    std::vector<experiments::Recipe> recipes = std::move(questions.recipes);
    questions = trace_questions(default_trace_formats, scales, policy, exact_product);
    questions.recipes = std::move(recipes);
  }
  return questions;
}

std::vector<std::string> trace_files(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code error;
    std::vector<std::string> some = {word};
    if (std::filesystem::is_directory(word, error)) {
      some = files_below(word);
      if (some.empty())
        throw formats::Error(formats::printable(word), "no file of tensors below",
                             formats::tensor_extensions());
    } else if (!std::filesystem::exists(word, error) &&
               word.find_first_of("*?[") != std::string::npos) {
      some = matches_of(word);
      if (some.empty())
        throw formats::Error(formats::printable(word), "the pattern matches no file");
    }
    files.insert(files.end(), some.begin(), some.end());
  }
  return files;
}

}  // namespace guardbit::tools
