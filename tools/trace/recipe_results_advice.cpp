#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "formats/support/printable.hpp"
#include "tools/console/terminal.hpp"
#include "tools/trace/recipe_results.hpp"
#include "tools/trace/trace_plots.hpp"
#include "tools/trace/trace_results.hpp"

namespace guardbit::tools {

using experiments::RecipeOutcome;
using experiments::Signal;
using experiments::StoredTensor;

namespace {

// What a recipe may lose and still be recommended for being small, in percent.
constexpr double tolerated_underflow = 0.1, tolerated_saturation = 0.1;
// A tensor is an exception where its SQNR is lower than that of all by so many decibels.
constexpr double exceptional_decibels = 6;

/// What a recipe did to numbers, as one compares it.
struct Merit {
  std::size_t recipe = 0;
  double sqnr = 0, bits = 0, underflow = 0, saturated = 0;

  bool is_good() const {
    return underflow <= tolerated_underflow && saturated <= tolerated_saturation;
  }
  std::string text() const {
    return "SQNR " + number(sqnr, "%.2f") + " dB at " + number(bits, "%.2f") +
           " bits an element, " + number(underflow, "%.2g") + " % underflow, " +
           number(saturated, "%.2g") + " % saturated";
  }
};

/// Of the recipes that keep all numbers finite and have an SQNR.
std::vector<Merit> merits_of(const StoredTensor& stored) {
  std::vector<Merit> merits;
  const Signal& s = stored.signal;
  for (std::size_t r = 0; r < stored.outcomes.size(); ++r) {
    const RecipeOutcome& o = stored.outcomes[r];
    const auto sqnr = experiments::sqnr_db(s, o);
    if (!sqnr) continue;
    merits.push_back({r, *sqnr, 8 * static_cast<double>(o.bytes) / static_cast<double>(s.elements),
                      percent_of(o.underflow, s.nonzero), percent_of(o.saturated, s.finite)});
  }
  return merits;
}

/// The smallest of the good ones, half a bit aside the most exact; without a good one the most
/// exact of all.
const Merit* best_of(const std::vector<Merit>& merits) {
  const Merit* best = nullptr;
  double fewest = 0;
  for (const Merit& m : merits)
    if (m.is_good() && (fewest == 0 || m.bits < fewest)) fewest = m.bits;
  for (const Merit& m : merits) {
    if (fewest != 0 && (!m.is_good() || m.bits > fewest + 0.5)) continue;
    if (best == nullptr || m.sqnr > best->sqnr) best = &m;
  }
  return best;
}

/// Tensors that this recipe serves much worse than all together, and what serves them.
void add_exceptions(const RecipeResults& results, const Merit& chosen, RecipeAdvice& advice) {
  constexpr std::size_t most = 5;
  std::map<std::string, StoredTensor> tensors;
  for (const ComparedTensor& t : results.tensors)
    if (t.is_finite()) tensors[t.meaning.tensor].add(t.compared);
  if (tensors.size() < 2) return;
  std::vector<std::pair<double, std::string>> found;
  for (const auto& [name, stored] : tensors) {
    const std::vector<Merit> merits = merits_of(stored);
    const auto own = std::ranges::find(merits, chosen.recipe, &Merit::recipe);
    if (own == merits.end() || own->sqnr > chosen.sqnr - exceptional_decibels) continue;
    std::string text = "Exception: " + formats::printable(name, 80) + " has only " + own->text();
    const Merit* better = nullptr;
    for (const Merit& m : merits)
      if (m.sqnr >= own->sqnr + exceptional_decibels / 2 &&
          (better == nullptr || m.bits < better->bits - 0.5 ||
           (m.bits <= better->bits && m.sqnr > better->sqnr)))
        better = &m;
    if (better != nullptr)
      text += "; " + results.recipes[better->recipe].name + " has " + better->text();
    found.emplace_back(own->sqnr, text + ".");
  }
  std::ranges::sort(found);
  for (std::size_t i = 0; i < std::min(found.size(), most); ++i)
    advice.sentences.push_back(found[i].second);
  if (found.size() > most)
    advice.sentences.push_back("Exceptions: " + std::to_string(found.size() - most) +
                               " more tensors, see --json.");
}

}  // namespace

RecipeAdvice advice_of(const RecipeResults& results) {
  RecipeAdvice advice;
  const std::vector<Merit> merits = merits_of(results.total());
  const Merit* const best = best_of(merits);
  if (best == nullptr) return advice;
  advice.recipe = results.recipes[best->recipe].name;
  advice.sentences.push_back("Use " + advice.recipe + ": " + best->text() + ". " +
                             (best->is_good()
                                  ? "Of the recipes that lose at most 0.1 % to underflow and 0.1 % "
                                    "to saturation none has fewer bits and a higher SQNR."
                                  : "No recipe here loses at most 0.1 % to underflow and 0.1 % to "
                                    "saturation; this one has the highest SQNR."));
  const auto exact = std::ranges::max_element(merits, {}, &Merit::sqnr);
  if (exact->recipe != best->recipe)
    advice.sentences.push_back("The most exact is " + results.recipes[exact->recipe].name + ": " +
                               exact->text() + ".");
  add_exceptions(results, *best, advice);
  std::vector<std::optional<double>> scales;
  for (const ComparedTensor& t : results.tensors) scales.push_back(t.loss_scale);
  if (std::string text = recorded_scale_text(scales); !text.empty())
    advice.sentences.push_back(std::move(text));
  return advice;
}

}  // namespace guardbit::tools
