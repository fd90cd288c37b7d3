#include "experiments/harness/experiment.hpp"

#include <algorithm>
#include <cmath>

namespace guardbit::experiments {

Verdict Finding::verdict() const {
  if (!reference || !reference->undecidable.empty()) return Verdict::undecidable;
  bool holds = false;
  switch (reference->relation) {
    case Reference::Relation::equals:
      holds = std::abs(measured - reference->value) <= reference->tolerance;
      break;
    case Reference::Relation::at_most:
      holds = measured <= reference->value + reference->tolerance;
      break;
    case Reference::Relation::at_least:
      holds = measured >= reference->value - reference->tolerance;
      break;
  }
  return holds ? Verdict::reproduced : Verdict::differs;
}

Verdict Outcome::verdict() const {
  bool is_reproduced = false;
  for (const Finding& f : findings) {
    const Verdict verdict = f.verdict();
    if (verdict == Verdict::differs) return verdict;
    is_reproduced = is_reproduced || (verdict == Verdict::reproduced &&
                                      f.reference->certainty != Certainty::derived);
  }
  return is_reproduced ? Verdict::reproduced : Verdict::undecidable;
}

std::string Outcome::why() const {
  std::string reasons;
  const auto add = [&](const std::string& reason) {
    if (reasons.find(reason) == std::string::npos)
      reasons += (reasons.empty() ? "" : "; ") + reason;
  };
  if (missing.size() == 1) add("not there: " + missing[0]);
  if (missing.size() > 1)
    add("not there: " + missing[0] + " and " + std::to_string(missing.size() - 1) + " more");
  if (verdict() != Verdict::undecidable) return reasons;
  bool decided = false;
  for (const Finding& f : findings) {
    decided = decided || f.verdict() != Verdict::undecidable;
    if (f.reference && !f.reference->undecidable.empty()) add(f.reference->undecidable);
  }
  if (decided) add("it checks what theory demands, which holds, and no figure");
  if (reasons.empty()) add("no reference has these settings");
  return reasons;
}

}  // namespace guardbit::experiments
