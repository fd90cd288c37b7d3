#include "emulator/probe/findings.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/probe/fit.hpp"

namespace guardbit::emulator {

namespace {

std::string ranges_text(const std::vector<long>& values, const ProbedField& field) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t last = i;
    const bool numbers = field.text(values[i]) == std::to_string(values[i]);
    while (numbers && last + 1 < values.size() && values[last + 1] == values[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + field.text(values[i]);
    if (last > i) text += ".." + field.text(values[last]);
    i = last;
  }
  return text;
}

/// What every other value of a field would have answered.
template <class WithValue>
Finding finding_of(const ProbedField& field, const std::string& name, long now,
                   const std::vector<long>& values, const Pool& answers, WithValue with) {
  Finding f{name, field.text(now), {}, {}, {}, 0, 0};
  std::vector<long> alike;
  std::optional<long> nearest;
  for (const long value : values) {
    if (value == now) continue;
    const MatrixInstruction other = with(value);
    const auto refuted = refutation(other, answers);
    if (!refuted) {
      alike.push_back(value);
      continue;
    }
    if (nearest && std::abs(*nearest - now) <= std::abs(value - now)) continue;
    nearest = value;
    f.nearest_rejected = field.text(value);
    f.proof = *refuted;
    f.otherwise = model(other, answers[*refuted].question);
  }
  f.others = ranges_text(alike, field);
  if (!alike.empty()) {
    f.reason = "none of " + std::to_string(answers.size()) + " answers differs between them";
  }
  return f;
}

const ProbedField terms_field = {
    "terms",
    Topic::grid,
    [](const AccumulatorSpec& s) { return static_cast<long>(s.terms); },
    [](AccumulatorSpec& s, long v) { s.terms = static_cast<int>(v); },
    {},
    0,
    max_k,
    nullptr};

/// The number of products that an accumulation takes.
long product_count(const MatrixInstruction& row, const Step& step) {
  long count = 0;
  for (int i = 0; i < row.shape.k; ++i) count += step.selection.contains(i) ? 1 : 0;
  return count;
}

}  // namespace

std::vector<Finding> findings_of(const MatrixInstruction& row, const Pool& answers) {
  std::vector<Finding> list;
  const Step* const dot = first_of(row, Group::accumulations);
  if (dot != nullptr && dot->spec.summation != Summation::fma_chain) {
    std::vector<long> lengths;
    const long most = product_count(row, *dot);
    const long now = dot->spec.terms == 0 ? most : dot->spec.terms;
    for (long i = 1; i <= most; ++i) {
      const bool power_of_two = (i & (i - 1)) == 0;
      if (power_of_two || i == most || std::abs(i - now) <= 1) lengths.push_back(i);
    }
    list.push_back(finding_of(terms_field, "terms", now, lengths, answers, [&](long value) {
      return with_value(row, Group::accumulations, terms_field, value);
    }));
  }
  for (const Group group : groups) {
    const Step* const step = first_of(row, group);
    if (step == nullptr) continue;
    for (const ProbedField& field : probed_fields()) {
      const std::vector<long> values = field.values(row, *step);
      if (values.size() < 2) continue;
      const std::string prefix = group == Group::scalars ? "addition." : "";
      list.push_back(finding_of(field, prefix + std::string(field.name), field.get(step->spec),
                                values, answers,
                                [&](long value) { return with_value(row, group, field, value); }));
    }
  }
  return list;
}

std::string structure_text(const MatrixInstruction& row) {
  const Step* const dot = first_of(row, Group::accumulations);
  return std::string(dot == nullptr ? "" : summation_name(dot->spec.summation)) + ", " +
         std::to_string(row.steps.count) + (row.steps.count == 1 ? " step" : " steps") +
         (dot != nullptr && dot->widened ? ", operands widened first" : "");
}

std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Pool& answers) {
  struct Class {
    const MatrixInstruction* row;
    bool fits;
    CatalogueMatch match;
  };
  std::vector<Class> classes;
  for (const MatrixInstruction& row : catalogue()) {
    const bool same_types = row.a == box.a && row.b == box.b && row.c == box.c && row.d == box.d &&
                            row.scale == box.scale;
    if (!same_types) continue;
    auto found = std::find_if(classes.begin(), classes.end(), [&](const Class& x) {
      return std::equal(row.steps.begin(), row.steps.end(), x.row->steps.begin(),
                        x.row->steps.end());
    });
    if (found == classes.end()) {
      const bool fits = !refutation(row, answers);
      found = classes.insert(classes.end(), {&row, fits, {}});
    }
    found->match.rows.push_back(&row);
  }
  std::vector<CatalogueMatch> matches;
  for (Class& x : classes) {
    if (x.fits) matches.push_back(std::move(x.match));
  }
  return matches;
}

}  // namespace guardbit::emulator
