#include <algorithm>
#include <sstream>

#include "tests/mutation/survey.hpp"

// docs/OBSERVABILITY.md, from the survey.
namespace guardbit::tests {

namespace {

using emulator::Summation;

constexpr std::string_view introduction =
    "# What can be observed of a matrix unit\n\n"
    "Generated: `GUARDBIT_UPDATE_MUTATION=1 guardbit_tests_mutation`. Do not edit.\n\n"
    "Every arithmetic of the catalogue is changed in one field by one step (numbers up and down, "
    "choices to every other), and the committed vectors must notice: "
    "recordings of the device in `tests/golden` where they can, "
    "otherwise vectors in `tests/mutation/vectors.txt`, whose answers are the independent oracle's. "
    "A change that nothing can notice is listed with the proof, and a random search must fail to notice it. "
    "Names, shapes, evidence and toolkits decide no bit. "
    "Instructions that compute alike are listed once; where a shape is too short for a field, the longest instruction decides.\n\n";

/// A line of the first table: which summations read a field.
std::string readers(const SpecField& field) {
  std::string text;
  for (const Summation s : {Summation::fused, Summation::exact, Summation::fma_chain,
                            Summation::pairwise, Summation::two_stage, Summation::integer}) {
    MatrixInstruction instruction;
    emulator::Step step;
    step.spec.summation = s;
    const bool plain = field.read(instruction, step);
    instruction.scale.count = 1;
    const bool scaled = field.read(instruction, step);
    text += plain ? " yes |" : scaled ? " with scales |" : " |";
  }
  emulator::Step addition;
  addition.operation = emulator::Operation::add;
  addition.spec.summation = Summation::fma_chain;
  return text + (field.read({}, addition) ? " yes |" : " |");
}

/// Changes of one field of a mutant, in the order of the mutants.
struct FieldFindings {
  std::string field, from;
  std::vector<const Finding*> list;

  std::string text(const std::vector<const Finding*>& some) const {
    std::string values;
    for (const Finding* f : some) values += (values.empty() ? "" : ", ") + f->mutant.to;
    if (some.size() == list.size()) return field;
    return field + " (" + from + " to " + values + ")";
  }
};

std::vector<FieldFindings> by_field(const Survey& survey) {
  std::vector<FieldFindings> fields;
  for (const Finding& finding : survey.findings) {
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const FieldFindings& f) {
      return f.field == finding.mutant.field;
    });
    if (at != fields.end()) {
      at->list.push_back(&finding);
    } else {
      fields.push_back({finding.mutant.field, finding.mutant.from, {&finding}});
    }
  }
  return fields;
}

template <class Predicate>
std::string listed(const std::vector<FieldFindings>& fields, Predicate predicate) {
  std::string text;
  for (const FieldFindings& field : fields) {
    std::vector<const Finding*> some;
    std::copy_if(field.list.begin(), field.list.end(), std::back_inserter(some),
                 [&](const Finding* f) { return predicate(*f); });
    if (!some.empty()) text += (text.empty() ? "" : ", ") + field.text(some);
  }
  return text;
}

/// What was found about one arithmetic, without its name.
std::string body_of(const Survey& survey) {
  const std::vector<FieldFindings> fields = by_field(survey);
  std::ostringstream out;
  const auto line = [&out](std::string_view title, const std::string& list) {
    if (!list.empty()) out << "- " << title << ": " << list << ".\n";
  };
  line("Noticed by recordings", listed(fields, [](const Finding& f) { return f.by_recording; }));
  line(survey.has_recordings ? "Noticed only by computed vectors" : "Noticed by computed vectors",
       listed(fields, [](const Finding& f) { return f.by_vector && !f.by_recording; }));
  std::vector<std::string> reasons;
  for (const Finding& f : survey.findings) {
    if (f.noticed() || !f.unobservable) continue;
    if (std::find(reasons.begin(), reasons.end(), f.unobservable.reason) == reasons.end()) {
      reasons.push_back(f.unobservable.reason);
    }
  }
  for (const std::string& reason : reasons) {
    line("Unobservable, " + reason, listed(fields, [&](const Finding& f) {
           return !f.noticed() && f.unobservable.reason == reason;
         }));
  }
  return out.str();
}

/// Arithmetics of which the same is found.
struct Section {
  std::string parameters, machines, body;
  std::vector<std::string> types;
};

/// The fields that an instruction's steps read and that are not the defaults.
std::string parameters_of(const MatrixInstruction& instruction) {
  std::string text;
  int index = 0;
  for (const emulator::Step& step : instruction.steps) {
    if (instruction.steps.count > 1)
      text += (index == 0 ? "step " : "; step ") + std::to_string(index) + " ";
    ++index;
    bool first = true;
    for (const SpecField& field : spec_fields()) {
      const long value = field.get(step.spec);
      const bool named = field.name == "summation" || value != field.get({});
      if (!field.read(instruction, step) || !named) continue;
      text += (first ? "" : ", ") +
              (field.name == "summation" ? "" : std::string(field.name) + " ") + field.text(value);
      first = false;
    }
  }
  return text;
}

std::vector<Section> sections_of(const std::vector<Survey>& surveys) {
  std::vector<Section> sections;
  for (const Survey& survey : surveys) {
    const bool sparse = survey.instruction.sparsity.group_elements != 0;
    const emulator::Sparsity& s = survey.instruction.sparsity;
    const std::string parameters = sparse ? "2:4 sparsity: " + std::to_string(s.stored_per_group) +
                                                " of " + std::to_string(s.group_elements) +
                                                " stored, in chunks of " + std::to_string(s.chunk)
                                          : parameters_of(survey.instruction);
    Section section{parameters,
                    machines_of(survey.instructions),
                    body_of(survey),
                    {types_of(survey.instruction)}};
    const auto same = std::find_if(sections.begin(), sections.end(), [&](const Section& x) {
      return x.parameters == section.parameters && x.machines == section.machines &&
             x.body == section.body;
    });
    if (same != sections.end()) {
      same->types.push_back(section.types.front());
    } else {
      sections.push_back(std::move(section));
    }
  }
  return sections;
}

struct Totals {
  std::size_t mutants = 0, by_recording = 0, by_vector = 0, unobservable = 0;

  void add(const Survey& survey) {
    for (const Finding& f : survey.findings) {
      ++mutants;
      by_recording += f.by_recording ? 1U : 0U;
      by_vector += f.by_vector && !f.by_recording ? 1U : 0U;
      unobservable += f.noticed() ? 0U : 1U;
    }
  }
};

}  // namespace

std::string observability_page(const std::vector<Survey>& surveys) {
  Totals all, recorded;
  std::size_t recorded_count = 0;
  for (const Survey& survey : surveys) {
    all.add(survey);
    if (!survey.has_recordings) continue;
    recorded.add(survey);
    ++recorded_count;
  }
  std::ostringstream out;
  out << introduction
      << "| | arithmetics | changes | noticed by recordings | only by computed vectors | unobservable |\n|---|---|---|---|---|---|\n";
  const auto totals = [&out](std::string_view name, std::size_t count, const Totals& t) {
    out << "| " << name << " | " << count << " | " << t.mutants << " | " << t.by_recording << " | "
        << t.by_vector << " | " << t.unobservable << " |\n";
  };
  totals("all", surveys.size(), all);
  totals("with recordings", recorded_count, recorded);
  out << "\n## Which summation reads which field\n\nA field that is not read is not changed.\n\n"
         "| field | fused | exact | fma_chain | pairwise | two_stage | integer | add, convert |\n"
         "|---|---|---|---|---|---|---|---|\n";
  for (const SpecField& field : spec_fields()) {
    out << "| " << field.name << " |" << readers(field) << "\n";
  }
  out << "\n## Every arithmetic\n";
  for (const Section& section : sections_of(surveys)) {
    out << "\n### " << section.types.front() << "\n\n" << section.parameters << "\n\n";
    if (section.types.size() > 1) {
      out << "Also";
      for (std::size_t i = 1; i < section.types.size(); ++i) {
        out << (i == 1 ? " " : "; ") << section.types[i];
      }
      out << ".\n\n";
    }
    out << "- Machines: " << section.machines << ".\n" << section.body;
  }
  return out.str();
}

}  // namespace guardbit::tests
