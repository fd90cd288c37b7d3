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

Verdict Outcome::verdict(bool relations_only) const {
  const auto any = [&](Verdict verdict) {
    return std::ranges::any_of(findings, [&](const Finding& f) { return f.verdict() == verdict; });
  };
  if (any(Verdict::differs)) return Verdict::differs;
  return any(Verdict::reproduced) && !relations_only ? Verdict::reproduced : Verdict::undecidable;
}

}  // namespace guardbit::experiments
