#include "tools/scaler/scaler_replay.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/counted.hpp"
#include "tools/trace/trace_options.hpp"
#include "tools/trace/trace_sidecar.hpp"

namespace guardbit::tools {

using experiments::LossScaler;
using experiments::ScaleChange;
using experiments::ScalerEvent;
using experiments::ScalerLedger;
using experiments::ScalerRules;
using nlohmann::ordered_json;

namespace {

/// JSON has no infinity.
ordered_json number_json(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-Infinity" : "Infinity";
  return x;
}

/// 2^k where it is one.
std::string scale_text(double scale) {
  int exponent = 0;
  if (scale > 0 && std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5)
    return "2^" + std::to_string(exponent - 1);
  return number_json(scale).dump();
}

double in_type(const formats::Format& type, double x) {
  const std::uint64_t code = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t narrow = convert(formats::fp64, code, type);
  return std::bit_cast<double>(convert(type, narrow, formats::fp64));
}

std::string text_of(const ScalerEvent& event) {
  std::string text(experiments::meaning_of(event.alarm));
  if (event.alarm != experiments::ScalerAlarm::skips_in_a_row) return text;
  return std::to_string(event.in_a_row) + " " + text;
}

bool is_gradient(const std::string& role) {
  return role != "act" && role != "weight" && role != "update";
}

}  // namespace

std::vector<TracedStep> traced_steps(const std::vector<std::string>& words,
                                     const formats::FormatOverrides& overrides) {
  std::map<std::uint64_t, TracedStep> steps;
  for (const std::string& file : trace_files(words)) {
    const formats::TensorStreams content = formats::open_tensors(file, overrides);
    const Sidecar sidecar(file, content.metadata);
    for (const formats::StreamedTensor& stream : content.tensors) {
      const formats::Tensor& tensor = stream.tensor;
      if (tensor.format.encoding != formats::Encoding::floating) continue;
      experiments::TraceName meaning = meaning_of(file, tensor.name);
      std::optional<double> loss_scale;
      sidecar.complete(tensor.name, meaning, loss_scale);
      if (!is_gradient(meaning.role)) continue;
      if (!meaning.step)
        throw formats::Error(
            formats::printable(file),
            formats::in_quotes(tensor.name) + " has no step: neither names nor a sidecar say one");
      if (loss_scale && !(*loss_scale > 0 && std::isfinite(*loss_scale)))
        throw formats::Error(formats::printable(file), "its loss scale is not above zero");
      TracedStep& step = steps[*meaning.step];
      step.step = *meaning.step;
      step.gradients.push_back(
          {tensor.name, experiments::gradient_extremes(stream), loss_scale.value_or(1)});
    }
  }
  if (steps.empty()) throw formats::Error("scaler replay", "the trace holds no gradients");
  std::vector<TracedStep> result;
  result.reserve(steps.size());
  for (auto& [number, step] : steps) result.push_back(std::move(step));
  return result;
}

std::optional<std::size_t> Replay::first_difference() const {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [](const ReplayedStep& step) { return !step.is_reproduced; });
  if (found == steps.end()) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

Replay replay_log(const LossScaler& scaler, const ScalerLog& log, int skips_to_warn_of) {
  Replay replay = {ScalerLedger(scaler, skips_to_warn_of), {}, true, {}};
  const formats::Format& type = scaler.rules().type;
  if (log.overflow_inferred)
    replay.remarks.emplace_back(
        "the log does not say which steps overflowed: those after which the scale is lower");
  replay.is_assumed = log.has_gaps;
  if (log.has_gaps)
    replay.remarks.emplace_back(
        "rows are several steps apart, and the log does not say which of these overflowed: they are taken to be the last before the row");
  std::optional<std::uint64_t> before;
  std::optional<double> after;
  for (const ScalerLogRow& row : log.rows) {
    if (before && row.step != *before + 1 && replay.remarks.size() < 4)
      replay.remarks.push_back("steps are missing before step " + std::to_string(row.step));
    if (after && row.is_scale_stated && *after != row.scale && replay.remarks.size() < 4)
      replay.remarks.push_back("the log's scale at step " + std::to_string(row.step) +
                               " is not the one after the step before");
    before = row.step;
    after = row.scale_after;
    if (replay.ledger.ended()) {
      replay.remarks.push_back("the scaler had ended the run before step " +
                               std::to_string(row.step) + ", the log goes on");
      replay.steps.push_back({row.step, {row.scale, row.scale, row.overflow, {}}, row, {}, false});
      break;
    }
    ReplayedStep step = {row.step, replay.ledger.step(row.step, row.overflow), row, {}, true};
    step.is_reproduced = (!row.is_scale_stated || step.update.before == in_type(type, row.scale)) &&
                         (!row.scale_after || step.update.after == in_type(type, *row.scale_after));
    if (!row.is_stated) step.logged.reset();
    replay.steps.push_back(std::move(step));
  }
  return replay;
}

Replay replay_trace(const LossScaler& scaler, const std::vector<TracedStep>& steps,
                    const formats::Format& to, int skips_to_warn_of) {
  Replay replay = {ScalerLedger(scaler, skips_to_warn_of), {}, false, {}};
  for (const TracedStep& traced : steps) {
    if (replay.ledger.ended()) break;
    ReplayedStep step = {traced.step, {}, std::nullopt, {}, true};
    for (const TracedStep::Gradient& gradient : traced.gradients) {
      const double ratio = replay.ledger.scale() / gradient.recorded_scale;
      const auto element = experiments::overflowing_element(gradient.extremes, ratio, to);
      if (!element) continue;
      const double amax =
          std::bit_cast<double>(encode(formats::fp64, gradient.extremes.largest)) * ratio;
      step.causes.push_back({gradient.name, *element, !gradient.extremes.first_nonfinite, amax});
    }
    std::stable_sort(
        step.causes.begin(), step.causes.end(), [](const OverflowCause& a, const OverflowCause& b) {
          return std::pair(!a.was_finite, a.scaled_amax) > std::pair(!b.was_finite, b.scaled_amax);
        });
    step.update = replay.ledger.step(traced.step, !step.causes.empty());
    replay.steps.push_back(std::move(step));
  }
  return replay;
}

std::vector<bool> parse_pattern(const std::string& text) {
  constexpr std::size_t longest = 10'000'000;
  std::vector<bool> overflows;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const std::size_t star = item.find('*');
    const std::string word = item.substr(0, star);
    std::size_t count = 1;
    bool is_count = true;
    if (star != std::string::npos) {
      const char* last = item.data() + item.size();
      const auto [read, error] = std::from_chars(item.data() + star + 1, last, count);
      is_count = error == std::errc{} && read == last && count <= longest;
    }
    if ((word != "clean" && word != "overflow") || !is_count || overflows.size() + count > longest)
      throw formats::Error("PATTERN", formats::in_quotes(item) + " says nothing",
                           "clean*N and overflow*N, N up to 10000000, with commas between");
    overflows.insert(overflows.end(), count, word == "overflow");
    begin = end + 1;
  }
  return overflows;
}

Replay replay_pattern(const LossScaler& scaler, const std::vector<bool>& overflows,
                      int skips_to_warn_of) {
  Replay replay = {ScalerLedger(scaler, skips_to_warn_of), {}, false, {}};
  for (std::size_t i = 0; i < overflows.size() && !replay.ledger.ended(); ++i)
    replay.steps.push_back({i, replay.ledger.step(i, overflows[i]), std::nullopt, {}, true});
  return replay;
}

const Columns<ScalerRules>& columns_of_rules() {
  using R = ScalerRules;
  const auto dash_for_null = [](auto value) {
    return [value](const R& r) {
      const ordered_json x = value(r);
      return x.is_null() ? std::string("-") : x.dump();
    };
  };
  const auto first = [](const R& r) { return number_json(r.initial); };
  const auto floor = [](const R& r) { return or_null(r.floor); };
  const auto ceiling = [](const R& r) -> ordered_json {
    if (r.ceiling_rule != experiments::Ceiling::clamp) return nullptr;
    return r.ceiling;
  };
  static const Columns<R> columns = {
      {"preset", "preset", Side::left, [](const R& r) { return r.name; }},
      {"scale_type", "type", Side::left, [](const R& r) { return formats::name_of(r.type); }},
      {"init_scale", "first", Side::left, first, dash_for_null(first)},
      {"growth_factor", "", Side::none, [](const R& r) { return r.growth; }},
      {"backoff_factor", "", Side::none,
       [](const R& r) { return r.divides ? 1 / r.growth : r.backoff; }},
      {"growth_interval", "interval", Side::right, [](const R& r) { return r.interval; }},
      {"min_scale", "floor", Side::right, floor, dash_for_null(floor), 1},
      {"max_scale", "ceiling", Side::right, ceiling, dash_for_null(ceiling), 1},
      {"hysteresis", "hysteresis", Side::right, [](const R& r) { return r.hysteresis; }}};
  return columns;
}

ordered_json to_json(const Replay& replay) {
  const ScalerLedger& ledger = replay.ledger;
  ordered_json document = {{"scaler", columns_of_rules().json(ledger.scaler().rules())}};
  document["steps"] = ordered_json::array();
  for (const ReplayedStep& step : replay.steps) {
    ordered_json row = {{"step", step.step},
                        {"scale_before", number_json(step.update.before)},
                        {"overflow", step.update.overflow},
                        {"scale_after", number_json(step.update.after)},
                        {"change", formats::word_of(step.update.change)}};
    if (step.logged) {
      row["logged_scale"] = number_json(step.logged->scale);
      row["logged_scale_after"] =
          step.logged->scale_after ? number_json(*step.logged->scale_after) : ordered_json(nullptr);
    }
    for (const OverflowCause& cause : step.causes)
      row["forced_by"].push_back({{"tensor", cause.tensor},
                                  {"index", cause.index},
                                  {"was_finite", cause.was_finite},
                                  {"scaled_amax", number_json(cause.scaled_amax)}});
    document["steps"].push_back(std::move(row));
  }
  document["skips"] = ledger.skips();
  document["growths"] = ledger.growths();
  document["lowest_scale"] = number_json(ledger.lowest());
  document["highest_scale"] = number_json(ledger.highest());
  document["final_scale"] = number_json(ledger.scale());
  document["alarms"] = ordered_json::array();
  for (const ScalerEvent& event : ledger.alarms())
    document["alarms"].push_back({{"step", event.step},
                                  {"alarm", formats::word_of(event.alarm)},
                                  {"scale", number_json(event.scale)},
                                  {"text", text_of(event)}});
  if (replay.has_log) {
    const auto first = replay.first_difference();
    document["reproduced"] =
        first && replay.is_assumed ? ordered_json(nullptr) : ordered_json(!first.has_value());
    document["first_difference"] = nullptr;
    if (first) document["first_difference"] = document["steps"][*first];
  }
  document["remarks"] = replay.remarks;
  return document;
}

namespace {

std::string change_text(const experiments::ScalerUpdate& update) {
  switch (update.change) {
    case ScaleChange::none: return update.overflow ? "overflow" : "";
    case ScaleChange::grown: return "grows";
    case ScaleChange::not_finite: return "would be infinite: stays";
    case ScaleChange::at_ceiling: return "at its ceiling: stays";
    case ScaleChange::backed_off: return "overflow";
    case ScaleChange::at_floor: return "overflow at the floor";
    case ScaleChange::held: return "overflow, forgiven";
    case ScaleChange::raised: return "overflow at the floor: raises";
  }
  return "";
}

std::string causes_text(const std::vector<OverflowCause>& causes) {
  if (causes.empty()) return "";
  std::string text =
      formats::printable(causes.front().tensor) + "[" + std::to_string(causes.front().index) + "]";
  if (!causes.front().was_finite) text += ", not finite in the trace";
  if (causes.size() > 1) text += " and " + std::to_string(causes.size() - 1) + " more tensors";
  return text;
}

void print_events(std::ostream& out, const Replay& replay) {
  constexpr std::size_t most = 60;
  using Step = ReplayedStep;
  const Columns<Step> columns = {
      {"", "step", Side::right, [](const Step& s) { return s.step; }},
      {"", "scale", Side::right, {}, [](const Step& s) { return scale_text(s.update.before); }},
      {"", "after", Side::right, {}, [](const Step& s) { return scale_text(s.update.after); }},
      {"",
       "what",
       Side::left,
       {},
       [](const Step& s) {
         return paint(change_text(s.update), s.update.overflow ? Colour::yellow : Colour::plain);
       }},
      {"",
       "forced by",
       Side::left,
       {},
       [](const Step& s) { return causes_text(s.causes); },
       0,
       false,
       true}};
  std::vector<std::reference_wrapper<const Step>> shown;
  std::size_t left_out = 0;
  for (const Step& step : replay.steps) {
    if (!step.update.overflow && step.update.change == ScaleChange::none) continue;
    if (shown.size() == most) {
      ++left_out;
    } else {
      shown.emplace_back(step);
    }
  }
  if (!shown.empty()) columns.print(out, shown);
  if (left_out != 0) out << "… and " << left_out << " more; --json has all\n";
}

}  // namespace

void print_replay(std::ostream& out, const Replay& replay) {
  const ScalerLedger& ledger = replay.ledger;
  const ScalerRules& rules = ledger.scaler().rules();
  out << paint(rules.name, Colour::bold) << ": from " << scale_text(rules.initial) << " in "
      << formats::name_of(rules.type) << ", growth interval " << rules.interval << '\n';
  print_events(out, replay);
  out << counted(ledger.steps(), "step") << ", " << ledger.skips() << " skipped, "
      << counted(ledger.growths(), "growth") << "; scale from " << scale_text(ledger.lowest())
      << " to " << scale_text(ledger.highest()) << ", " << scale_text(ledger.scale())
      << " at the end\n";
  for (const ScalerEvent& event : ledger.alarms())
    out << paint("alarm", Colour::red) << ": after step " << event.step << ", scale "
        << scale_text(event.scale) << ": " << text_of(event) << '\n';
  for (const std::string& remark : replay.remarks) out << "remark: " << remark << '\n';
  if (!replay.has_log) return;
  const auto first = replay.first_difference();
  if (!first) {
    out << paint("every scale of the log is reproduced", Colour::green) << '\n';
    return;
  }
  const ReplayedStep& step = replay.steps[*first];
  out << (replay.is_assumed ? paint("not decided", Colour::yellow)
                            : paint("not reproduced", Colour::red))
      << ": first at step " << step.step << ", where the log"
      << " has " << scale_text(step.logged->scale);
  if (step.logged->scale_after) out << " → " << scale_text(*step.logged->scale_after);
  out << " and the scaler " << scale_text(step.update.before) << " → "
      << scale_text(step.update.after) << '\n';
}

void print_comparison(std::ostream& out, const std::vector<Replay>& replays) {
  const auto scale = [](const char* head, double (ScalerLedger::*value)() const) {
    return Column<Replay>{"", head, Side::right, {}, [value](const Replay& r) {
                            return scale_text((r.ledger.*value)());
                          }};
  };
  const auto names_of_alarms = [](const Replay& replay) {
    std::string alarms;
    for (const ScalerEvent& event : replay.ledger.alarms()) {
      const std::string name(formats::word_of(event.alarm));
      if (alarms.find(name) == std::string::npos) alarms += (alarms.empty() ? "" : ", ") + name;
    }
    return alarms;
  };
  const Columns<Replay> columns = {
      {"", "scaler", Side::left, [](const Replay& r) { return r.ledger.scaler().rules().name; }},
      {"",
       "first scale",
       Side::right,
       {},
       [](const Replay& r) { return scale_text(r.steps.front().update.before); }},
      {"", "skipped", Side::right, [](const Replay& r) { return r.ledger.skips(); }},
      {"", "growths", Side::right, [](const Replay& r) { return r.ledger.growths(); }},
      scale("lowest", &ScalerLedger::lowest),
      scale("highest", &ScalerLedger::highest),
      scale("last", &ScalerLedger::scale),
      {"", "alarms", Side::left, {}, names_of_alarms}};
  columns.print(out, replays);
}

}  // namespace guardbit::tools
