#include "tools/scaler/scaler_picture.hpp"

#include <string>

namespace guardbit::tools {

using experiments::Curve;
using experiments::Look;

experiments::Figure scale_figure(const std::vector<Replay>& replays) {
  experiments::Figure figure{"loss scale", "step", "loss scale", false, true};
  for (const Replay& replay : replays) {
    const std::string name(replay.ledger.scaler().rules().name);
    Curve scale{name, {}, {}, Look::steps}, skipped{name + ", skipped", {}, {}, Look::points},
        logged{name + ", log", {}, {}, Look::points, true};
    for (std::size_t i = 0; i < replay.steps.size(); ++i) {
      const ReplayedStep& s = replay.steps[i];
      const auto step = static_cast<double>(s.step);
      // Corners are enough of a long run.
      const bool is_corner = i == 0 || i + 1 == replay.steps.size() ||
                             s.update.before != replay.steps[i - 1].update.before;
      if (is_corner) scale.add(step, s.update.before);
      if (s.logged && (is_corner || logged.y.empty() || logged.y.back() != s.logged->scale))
        logged.add(step, s.logged->scale);
      if (s.update.overflow) skipped.add(step, s.update.before);
    }
    if (!replay.steps.empty())
      scale.add(static_cast<double>(replay.steps.back().step) + 1,
                replay.steps.back().update.after);
    figure.curves.push_back(scale);
    if (replays.size() == 1 && !skipped.x.empty()) figure.curves.push_back(skipped);
    if (!logged.x.empty()) figure.curves.push_back(logged);
  }
  return figure;
}

}  // namespace guardbit::tools
