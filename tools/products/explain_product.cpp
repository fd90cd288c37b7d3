#include "tools/products/explain_product.hpp"

#include <chrono>
#include <cmath>
#include <functional>
#include <iomanip>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/faults/judge_capture.hpp"
#include "emulator/faults/mended.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/diagnosis.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/stop.hpp"
#include "formats/support/words.hpp"
#include "tools/console/elapsed.hpp"

namespace guardbit::tools {

using emulator::GemmCapture;
using formats::Error;

GemmCapture capture_of(GemmInput input, const formats::Tensor& d, const std::string& place) {
  GemmCapture capture;
  capture.path = place;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  capture.problem = std::move(input.problem);
  if ((d.shape.size() != 2 && d.shape.size() != 3) || d.packing != formats::Packing::container)
    throw Error("--d " + formats::printable(place), "has not 2 or 3 dimensions");
  capture.d = emulator::matrix_of(d);
  capture.shape = d.shape;
  const emulator::GemmProblem& x = capture.problem;
  if (capture.d.rows != x.m() || capture.d.columns != x.n() || capture.d.batch != x.a.batch)
    throw Error("--d " + formats::printable(place), "is not of the shape of A * B");
  capture.beta = x.c.empty() ? 0 : 1;
  return capture;
}

void set_asked(const AskedProduct& options, GemmCapture& capture) {
  for (const auto& [option, factor] :
       {std::pair{"--alpha", options.alpha}, {"--beta", options.beta}})
    if (factor && !std::isfinite(*factor)) throw Error(option, "is no finite number");
  const bool asks = options.alpha || options.beta || !options.activation.empty() || options.tf32;
  if (asks && capture.kind == "instruction")
    throw Error(formats::printable(capture.path),
                "holds an instruction: it has no --alpha, --beta, --activation or --tf32");
  if (options.beta && *options.beta != 0 && capture.problem.c.empty())
    throw Error("explain", "there is a beta, so C is needed");
  capture.alpha = options.alpha.value_or(capture.alpha);
  capture.beta = options.beta.value_or(capture.beta);
  if (!options.activation.empty())
    capture.activation = formats::require_word<emulator::Activation>(
        "activation", options.activation, "--activation");
  capture.tf32 = capture.tf32 || options.tf32;
  if (!options.arch.empty()) {
    emulator::require_page(options.arch, "--arch");
    capture.arch = options.arch;
  }
}

namespace {

/// Which part of the plan's K the missing elements are, if they are one: a part that was never
/// added.
std::string missing_part(const emulator::GemmPlan& plan, const emulator::Fault& fault,
                         std::int64_t k) {
  if (fault.kind != emulator::FaultKind::missing_k) return "";
  for (const auto& [partition, owner] :
       {std::pair{&plan.split, "split"}, std::pair{&plan.slices, "slice"}}) {
    constexpr int most_parts = 64;  // more are no parts that threads add, but an order of sums
    if (partition->whole() || partition->parts > most_parts) continue;
    const std::vector<emulator::KRanges> parts = emulator::divide(*partition, {{0, k}});
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::vector<std::int64_t> numbers;
      for (const emulator::KRange& range : parts[part])
        for (std::int64_t l = range.begin; l < range.end; ++l) numbers.push_back(l);
      if (emulator::places_of(numbers) == fault.k)
        return "; this is " + std::string(owner) + " " + std::to_string(part) + " of " +
               std::to_string(parts.size()) +
               " of the plan: a race, or a part that was never added";
    }
  }
  return "";
}

/// The plan of the problem that the faulty kernel solved, if a short search finds it: it says which
/// kernel is faulty.
void search_mended(const GemmCapture& capture, const emulator::Mended& mended,
                   emulator::SearchOptions options, Explanation& explanation) {
  constexpr std::chrono::seconds longest(5);
  const auto end = std::chrono::steady_clock::now() + longest;
  options.most_plans = 1;
  options.interrupted = [end, is_late = options.interrupted] {
    return is_late() || std::chrono::steady_clock::now() > end;
  };
  const emulator::SearchResult result = emulator::search_plans(mended.capture, options);
  explanation.search.tried += result.tried;
  if (!result.explained()) return;
  emulator::PlanResult plan = result.plans.front();
  explanation.mended_plan = emulator::to_text(plan.plan);
  for (emulator::Fault& fault : explanation.findings)
    fault.text += missing_part(plan.plan, fault, capture.problem.k());
  capture.set_factors(plan.plan.epilogue);
  if (mended.capture.d.format != capture.d.format) plan.plan.epilogue.via = mended.capture.d.format;
  plan.plan.epilogue.output = capture.d.format;
  // To execute a plan on a large product only to count what is wrong would take too long.
  constexpr double most_work = 3e8;
  const double work =
      static_cast<double>(capture.d.size()) * static_cast<double>(capture.problem.k());
  plan.mismatches = explanation.wrong;
  if (work <= most_work) {
    explanation.diagnosis = emulator::diagnose(capture, plan.plan, options.threads);
    plan.mismatches = explanation.diagnosis.mismatches;
  }
  explanation.search.plans = {plan};
  if (plan.mismatches != 0) return;
  // It is as asked, after all, or went through a narrower format.
  if (!plan.plan.epilogue.via) explanation.findings.clear();
  explanation.mended_plan.clear();
  explanation.verdict = emulator::Verdict::exact_plan;
}

/// What the nearest plan says of a result that rounding alone may have made.
void add_diagnosis(const GemmCapture& capture, const emulator::SearchOptions& options,
                   Explanation& explanation) {
  explanation.diagnosis =
      emulator::diagnose(capture, explanation.search.plans.front().plan, options.threads);
  if (!explanation.diagnosis.looks_like_bug || !explanation.findings.empty()) return;
  for (std::size_t i = 0; i < explanation.diagnosis.areas.size(); ++i) {
    const emulator::FailedArea& x = explanation.diagnosis.areas[i];
    const bool is_one = x.rows * x.columns == 1;
    explanation.findings.push_back(
        {.kind = is_one ? emulator::FaultKind::wrong_element : emulator::FaultKind::unknown,
         .rows = {{x.row, x.row + x.rows}},
         .columns = {{x.column, x.column + x.columns}},
         .operand = "d",
         .text = explanation.diagnosis.findings[i]});
  }
}

/// These outputs alone, a batch of dot products.
GemmCapture only(const GemmCapture& capture, const std::vector<emulator::Output>& outputs) {
  GemmCapture few = capture;
  few.problem = emulator::select(capture.lowered({}), std::span(outputs));
  few.d = emulator::select(capture.d, std::span(outputs));
  few.convolution.reset();
  return few;
}

/// The first look at a large product leaves outputs out. What the nearest plan does not give there
/// is looked at now, if it is little.
void look_at_areas(const GemmCapture& capture, const std::function<bool()>& interrupted,
                   Explanation& explanation) {
  constexpr std::int64_t most_outputs = 64;
  std::vector<emulator::Fault> findings;
  std::int64_t wrong = 0, looked_at = 0;
  for (const emulator::FailedArea& area : explanation.diagnosis.areas) {
    if (area.rows * area.columns > most_outputs - looked_at) return;
    std::vector<emulator::Output> outputs;
    for (std::int64_t i = area.row; i < area.row + area.rows; ++i)
      for (std::int64_t j = area.column; j < area.column + area.columns; ++j)
        outputs.push_back({area.batch, i, j});
    const emulator::Judgement judged =
        emulator::judge(only(capture, outputs), interrupted).judgement;
    looked_at += std::ssize(outputs);
    if (judged.verdict != emulator::Verdict::wrong) continue;
    wrong += judged.wrong;
    const emulator::Output& first = outputs.front();
    emulator::Fault fault = {.kind = emulator::FaultKind::unknown,
                             .rows = {{area.row, area.row + area.rows}},
                             .columns = {{area.column, area.column + area.columns}},
                             .operand = "d"};
    if (outputs.size() == 1) {
      fault = emulator::wrong_element(
          first.row, first.column,
          emulator::scalar::decoded(capture.d.format,
                                    capture.d(first.batch, first.row, first.column)));
    } else {
      fault.text = emulator::lines_of("row", fault.rows) + ", " +
                   emulator::lines_of("column", fault.columns) +
                   " of D are wrong, for no reason that has a name here";
    }
    if (capture.d.batch > 1)
      fault.text = "batch entry " + std::to_string(area.batch) + ": " + fault.text;
    findings.push_back(std::move(fault));
  }
  explanation.looked_at += looked_at;
  if (wrong == 0) return;
  explanation.verdict = emulator::Verdict::wrong;
  explanation.wrong += wrong;
  explanation.findings = std::move(findings);
}

/// True if a simple plan gives every bit of the outputs that seem wrong: it is a unit that rounds
/// more than the bound of honest rounding lets it, or overflows on its way.
bool is_done_by_a_unit(const GemmCapture& capture, const std::vector<emulator::Output>& outputs,
                       emulator::SearchOptions options) {
  if (outputs.empty()) return false;
  options.simple = true;
  options.most_plans = 1;
  return emulator::search_plans(only(capture, outputs), options).explained();
}

/// What the plans that were found say besides.
void look_closer(const GemmCapture& capture, const emulator::SearchOptions& options,
                 Explanation& explanation) {
  if (explanation.search.plans.empty()) return;
  if (explanation.search.explained()) {
    explanation.control =
        emulator::order_control(capture, explanation.search.plans.front().plan, options.threads);
    return;
  }
  add_diagnosis(capture, options, explanation);
  if (explanation.looked_at < explanation.outputs && capture.kind != "instruction")
    look_at_areas(capture, options.interrupted, explanation);
}

/// "d.npy: right up to rounding (off by at most 5.9e-08 of its terms); K split over thread blocks
/// by every unit, 12345 plans"
std::string status_text(const Explanation& explanation, std::string_view stage,
                        std::int64_t tried) {
  std::ostringstream text;
  text << formats::printable(explanation.file) << ": "
       << (explanation.verdict == emulator::Verdict::wrong ? "wrong" : "right up to rounding")
       << " (off by at most " << std::setprecision(2) << explanation.largest_error
       << " of its terms); " << stage << ", " << tried << " plans";
  return text.str();
}

/// Everything but the times.
void explain(const GemmCapture& capture, const ExplainSettings& options, Explanation& explanation) {
  using emulator::Verdict;
  const auto start = std::chrono::steady_clock::now();
  const auto show = [&](const std::string& text) {
    if (options.status) options.status(text);
  };
  show(formats::printable(explanation.file) + ": is the product right?");
  emulator::SearchOptions search;
  search.threads = options.threads;
  search.most_plans = options.most_plans;
  search.interrupted = [&] {
    return (options.time_limit != 0 && seconds_since(start) > options.time_limit) ||
           (options.interrupted && options.interrupted());
  };
  search.progress = [&](std::string_view stage, std::int64_t tried) {
    show(status_text(explanation, stage, tried));
  };
  // Operands and result alone say whether the product is right: a wrong one needs no search.
  emulator::CaptureJudgement judged = emulator::judge(capture, search.interrupted);
  emulator::Judgement& judgement = judged.judgement;
  explanation.verdict = judgement.verdict;
  explanation.wrong = judgement.wrong;
  explanation.looked_at = judgement.outputs;
  explanation.largest_error = judgement.largest_error;
  explanation.limits = std::move(judged.limits);
  show(status_text(explanation, "the search begins", 0));
  search.split = judgement.split;
  // Recordings of single instructions hold operands that are chosen to be difficult.
  const bool is_instruction = capture.kind == "instruction";
  if (is_instruction || (explanation.verdict == Verdict::wrong &&
                         is_done_by_a_unit(capture, judged.examples, search))) {
    explanation.verdict = Verdict::valid_rounding;
    judgement.faults.clear();
  }
  explanation.findings = judgement.faults;
  formats::ends_before(formats::shortly_after(search.interrupted), [&] {
    const auto mended = emulator::mended(capture, judgement);
    if (mended) search_mended(capture, *mended, search, explanation);
  });
  if (explanation.verdict != Verdict::wrong && explanation.verdict != Verdict::exact_plan &&
      explanation.mended_plan.empty()) {
    const std::int64_t tried = explanation.search.tried;
    explanation.search = emulator::search_plans(capture, search);
    explanation.search.tried += tried;
    if (explanation.search.explained()) {
      explanation.verdict = Verdict::exact_plan;
      explanation.findings.clear();
      explanation.limits.clear();  // the plan was compared with every output
    }
    formats::ends_before(formats::shortly_after(search.interrupted),
                         [&] { look_closer(capture, search, explanation); });
  }
  // No unit does so, after all.
  const bool is_nearly_done =
      !explanation.search.plans.empty() &&
      explanation.search.plans.front().mismatches * 16 <= explanation.outputs;
  if (is_instruction && !explanation.search.explained() && !is_nearly_done) {
    explanation.verdict = Verdict::not_judged;
    explanation.findings.clear();
  } else if (explanation.verdict == Verdict::valid_rounding && !explanation.search.stopped) {
    explanation.verdict = judgement.verdict;
  }
  if (explanation.verdict == Verdict::wrong && explanation.findings.empty())
    explanation.findings = {
        {.kind = emulator::FaultKind::unknown,
         .text = std::to_string(explanation.wrong) +
                 " elements are further from the exact result than rounding takes "
                 "them: the operands were not multiplied and added as numbers, or "
                 "D is damaged"}};
}

}  // namespace

Explanation explain_product(const GemmCapture& capture, const ExplainSettings& options) {
  Explanation explanation;
  explanation.file = capture.path;
  explanation.outputs = capture.outputs();
  explanation.time_limit = options.time_limit;
  // Until it is judged.
  explanation.verdict = emulator::Verdict::not_judged;
  const auto start = std::chrono::steady_clock::now();
  const bool is_done =
      formats::ends_before(options.interrupted, [&] { explain(capture, options, explanation); });
  explanation.search.stopped |= !is_done;
  explanation.seconds = seconds_since(start);
  return explanation;
}

}  // namespace guardbit::tools
