#include "emulator/probe/findings.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/probe/answers.hpp"
#include "emulator/probe/fit.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// "3, 5..9": runs of neighbouring numbers as ranges.
std::string ranges_text(const std::vector<long>& values, const AccumulatorField& field) {
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

/// Compares every other value of a field with the answers. `with(value)` is the instruction with
/// it.
template <class WithValue>
Finding finding_of(const AccumulatorField& field, const std::string& name, long now,
                   const std::vector<long>& values, const Answers& answers, WithValue with) {
  Finding f{name, field.text(now), {}, {}, {}, 0, 0};
  std::vector<long> alike;
  std::optional<long> nearest;
  for (const long value : values) {
    if (value == now) continue;
    const MatrixInstruction other = with(value);
    const auto excluded = counterexample(other, answers);
    if (!excluded) {
      alike.push_back(value);
      continue;
    }
    if (nearest && std::abs(*nearest - now) <= std::abs(value - now)) continue;
    nearest = value;
    f.nearest_rejected = field.text(value);
    f.proof = *excluded;
    f.otherwise = model(other, answers[*excluded].question);
  }
  f.others = ranges_text(alike, field);
  if (!alike.empty()) {
    f.reason = "none of " + std::to_string(answers.size()) + " answers differs between them";
  }
  return f;
}

/// The number of products that an accumulation takes.
long product_count(const MatrixInstruction& instruction, const Step& step) {
  long count = 0;
  for (int i = 0; i < instruction.shape.k; ++i) count += step.selection.contains(i) ? 1 : 0;
  return count;
}

}  // namespace

std::vector<Finding> findings_of(const MatrixInstruction& instruction, const Answers& answers) {
  std::vector<Finding> list;
  const Step* const dot = first_of(instruction, Group::accumulations);
  if (dot != nullptr && dot->spec.summation != Summation::fma_chain) {
    const AccumulatorField& terms = accumulator_field("terms");
    std::vector<long> lengths;
    const long most = product_count(instruction, *dot);
    const long now = dot->spec.terms == 0 ? most : dot->spec.terms;
    for (long i = 1; i <= most; ++i) {
      const bool power_of_two = (i & (i - 1)) == 0;
      if (power_of_two || i == most || std::abs(i - now) <= 1) lengths.push_back(i);
    }
    list.push_back(finding_of(terms, "terms", now, lengths, answers, [&](long value) {
      return with_value(instruction, Group::accumulations, terms, value);
    }));
  }
  for (const Group group : groups) {
    const Step* const step = first_of(instruction, group);
    if (step == nullptr) continue;
    for (const AccumulatorField& field : probed_fields()) {
      const std::vector<long> values = field.values(instruction, *step);
      if (values.size() < 2) continue;
      const std::string prefix = group == Group::scalars ? "addition." : "";
      list.push_back(finding_of(
          field, prefix + std::string(field.name), field.get(step->spec), values, answers,
          [&](long value) { return with_value(instruction, group, field, value); }));
    }
  }
  return list;
}

std::string structure_text(const MatrixInstruction& instruction) {
  const Step* const dot = first_of(instruction, Group::accumulations);
  std::string text;
  if (dot != nullptr) {
    text += formats::word_of(dot->spec.summation);
    const int terms = dot->spec.terms;
    if (terms != 0) text += terms == 1 ? " one by one" : " in blocks of " + std::to_string(terms);
    if (dot->addend == Source::negative_zero) text += " from -0";
    if (dot->result != instruction.d) text += " in " + formats::name_of(dot->result);
  }
  return text + ", " + std::to_string(instruction.steps.count) +
         (instruction.steps.count == 1 ? " step" : " steps") +
         (dot != nullptr && dot->widened ? ", operands widened first" : "");
}

namespace {

/// Compares with as many executions as K takes, the last one of what is left.
bool reproduces_in_executions(const MatrixInstruction& instruction, const Answered& x) {
  const auto length = static_cast<std::size_t>(stored_k(instruction, instruction.shape.k));
  Question part{{}, {}, x.question.c, x.question.a_scale, x.question.b_scale};
  const auto piece = [length](const std::vector<std::uint64_t>& codes, std::size_t begin) {
    const auto first = codes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = std::min(length, codes.size() - begin);
    return std::vector<std::uint64_t>(first, first + static_cast<std::ptrdiff_t>(count));
  };
  for (std::size_t begin = 0; begin < x.question.a.size(); begin += length) {
    part.a = piece(x.question.a, begin);
    part.b = piece(x.question.b, begin);
    part.c = model(instruction, part);
  }
  return is_answer(instruction.d, part.c, x);
}

}  // namespace

std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Answers& answers) {
  struct Class {
    const MatrixInstruction* instruction;
    int length;
    bool fits;
    CatalogueMatch match;
  };
  std::vector<Class> classes;
  for (const MatrixInstruction& instruction : catalogue()) {
    // A longer one with zeros at its end is as one of the unit's K.
    const int length = std::min(box.k, stored_k(instruction, instruction.shape.k));
    const int executions = (box.k + length - 1) / length;
    const bool same_types = instruction.a == box.a && instruction.b == box.b &&
                            instruction.c == box.c && instruction.d == box.d &&
                            instruction.scale == box.scale;
    // The next execution adds to the result of the one before.
    const bool chains = executions == 1 || (box.c == box.d && box.scale.count == 0);
    if (!same_types || !chains) continue;
    auto found = std::find_if(classes.begin(), classes.end(), [&](const Class& x) {
      return x.length == length &&
             std::equal(instruction.steps.begin(), instruction.steps.end(),
                        x.instruction->steps.begin(), x.instruction->steps.end());
    });
    if (found == classes.end()) {
      const bool fits = std::all_of(answers.begin(), answers.end(), [&](const Answered& x) {
        return reproduces_in_executions(instruction, x);
      });
      found = classes.insert(classes.end(), {&instruction, length, fits, {executions, {}}});
    }
    found->match.instructions.push_back(&instruction);
  }
  std::vector<CatalogueMatch> matches;
  for (Class& x : classes) {
    if (x.fits) matches.push_back(std::move(x.match));
  }
  return matches;
}

}  // namespace guardbit::emulator
