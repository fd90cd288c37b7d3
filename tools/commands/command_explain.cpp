#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/judge_capture.hpp"
#include "emulator/faults/mended.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/plan_search/diagnosis.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/product_files.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::GemmCapture;
using formats::Error;

struct ExplainOptions {
  std::string capture, d, arch = "sm_90";
  GemmPlaces places;
  std::vector<std::string> diff, specs;
  double alpha = 1, beta = 0;
  bool tf32 = false, json = false;
  std::size_t most_plans = 8;
  /// seconds; 0: none
  double time_limit = 60;
  int threads = 0;
};

/// What was found about one result.
struct Account {
  std::string file;
  std::int64_t outputs = 0;
  emulator::Verdict verdict = emulator::Verdict::wrong;
  /// outputs that no rounding explains, of those that were looked at
  std::int64_t wrong = 0, looked_at = 0;
  /// of a result that no plan gives as it was asked for
  std::vector<emulator::Fault> findings;
  /// what was not looked at
  std::vector<std::string> limits;
  emulator::SearchResult search;
  /// of the first plan, where it is exact
  std::optional<emulator::OrderControl> control;
  /// The plans give a mended problem, or a part of this one.
  std::string mended_plan;
  emulator::Diagnosis diagnosis;
  double seconds = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

GemmCapture capture_of(const ExplainOptions& options, const std::string& d_place) {
  GemmInput input = read_gemm_operands(options.places);
  GemmCapture capture;
  capture.path = d_place;
  capture.kind = "gemm";
  capture.arch = options.arch;
  capture.problem = std::move(input.problem);
  const formats::Tensor d = read_operand("--d", "d", d_place, formats::fp32);
  if ((d.shape.size() != 2 && d.shape.size() != 3) || d.packing != formats::Packing::container)
    throw Error("--d " + formats::printable(d_place), "has not 2 or 3 dimensions");
  capture.d = emulator::matrix_of(d);
  capture.shape = d.shape;
  const emulator::GemmProblem& x = capture.problem;
  if (capture.d.rows != x.m() || capture.d.columns != x.n() || capture.d.batch != x.a.batch)
    throw Error("--d " + formats::printable(d_place), "is not of the shape of A * B");
  capture.alpha = options.alpha;
  capture.beta = options.beta == 0 && !x.c.empty() ? 1 : options.beta;
  capture.tf32 = options.tf32;
  return capture;
}

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
                   emulator::SearchOptions options, Account& account) {
  constexpr std::chrono::seconds longest(5);
  const auto end = std::chrono::steady_clock::now() + longest;
  options.most_plans = 1;
  options.interrupted = [end, is_late = options.interrupted] {
    return is_late() || std::chrono::steady_clock::now() > end;
  };
  const emulator::SearchResult result = emulator::search_plans(mended.capture, options);
  account.search.tried += result.tried;
  if (!result.explained()) return;
  emulator::PlanResult plan = result.plans.front();
  account.mended_plan = emulator::to_text(plan.plan);
  for (emulator::Fault& fault : account.findings)
    fault.text += missing_part(plan.plan, fault, capture.problem.k());
  plan.plan.epilogue.alpha = capture.alpha;
  plan.plan.epilogue.beta = capture.beta;
  plan.plan.epilogue.output = capture.d.format;
  // To execute a plan on a large product only to count what is wrong would take too long.
  constexpr double most_work = 3e8;
  const double work =
      static_cast<double>(capture.d.size()) * static_cast<double>(capture.problem.k());
  plan.mismatches = account.wrong;
  if (work <= most_work) {
    account.diagnosis = emulator::diagnose(capture, plan.plan, options.threads);
    plan.mismatches = account.diagnosis.mismatches;
  }
  account.search.plans = {plan};
  if (plan.mismatches != 0) return;  // else it is as asked, after all
  account.findings.clear();
  account.mended_plan.clear();
  account.verdict = emulator::Verdict::exact_plan;
}

/// What the nearest plan says of a result that rounding alone may have made.
void add_diagnosis(const GemmCapture& capture, const emulator::SearchOptions& options,
                   Account& account) {
  account.diagnosis =
      emulator::diagnose(capture, account.search.plans.front().plan, options.threads);
  if (!account.diagnosis.looks_like_bug || !account.findings.empty()) return;
  for (std::size_t i = 0; i < account.diagnosis.areas.size(); ++i) {
    const emulator::FailedArea& x = account.diagnosis.areas[i];
    const bool is_one = x.rows * x.columns == 1;
    account.findings.push_back(
        {.kind = is_one ? emulator::FaultKind::wrong_element : emulator::FaultKind::unknown,
         .rows = {{x.row, x.row + x.rows}},
         .columns = {{x.column, x.column + x.columns}},
         .operand = "d",
         .text = account.diagnosis.findings[i]});
  }
}

/// True if a simple plan gives every bit of the outputs that seem wrong: it is a unit that rounds
/// more than the bound of honest rounding lets it, or overflows on its way.
bool is_done_by_a_unit(const GemmCapture& capture, const std::vector<emulator::Output>& outputs,
                       emulator::SearchOptions options) {
  if (outputs.empty()) return false;
  GemmCapture few = capture;
  few.problem = emulator::select(capture.lowered({}), std::span(outputs));
  few.d = emulator::select(capture.d, std::span(outputs));
  few.convolution.reset();
  options.simple = true;
  options.most_plans = 1;
  return emulator::search_plans(few, options).explained();
}

/// "d.npy: right up to rounding; K split over thread blocks by every unit, 12345 plans"
std::string status_text(const Account& account, std::string_view stage, std::int64_t tried) {
  const std::string verdict =
      account.verdict == emulator::Verdict::wrong ? "wrong" : "right up to rounding";
  return formats::printable(account.file) + ": " + verdict + "; " + std::string(stage) + ", " +
         std::to_string(tried) + " plans";
}

Account explain(const ExplainOptions& options, const GemmCapture& capture) {
  using emulator::Verdict;
  Account account;
  account.file = capture.path;
  account.outputs = capture.outputs();
  const auto start = std::chrono::steady_clock::now();
  StatusLine status;
  status.show(formats::printable(account.file) + ": is the product right?");
  emulator::SearchOptions search;
  search.threads = options.threads;
  search.most_plans = options.most_plans;
  search.interrupted = [&] {
    return options.time_limit != 0 && seconds_since(start) > options.time_limit;
  };
  search.progress = [&](std::string_view stage, std::int64_t tried) {
    status.show(status_text(account, stage, tried));
  };
  // Operands and result alone say whether the product is right: a wrong one needs no search.
  emulator::CaptureJudgement judged = emulator::judge(capture, search.interrupted);
  account.verdict = judged.judgement.verdict;
  account.wrong = judged.judgement.wrong;
  account.looked_at = judged.judgement.outputs;
  account.findings = std::move(judged.judgement.faults);
  account.limits = std::move(judged.limits);
  // Recordings of single instructions hold operands that are chosen to be difficult.
  const bool is_instruction = capture.kind == "instruction";
  if (is_instruction ||
      (account.verdict == Verdict::wrong && is_done_by_a_unit(capture, judged.examples, search))) {
    account.verdict = Verdict::valid_rounding;
    account.findings.clear();
  }
  judged.judgement.faults = account.findings;
  const auto mended = emulator::mended(capture, judged.judgement);
  if (mended) search_mended(capture, *mended, search, account);
  if (account.verdict != Verdict::wrong && account.verdict != Verdict::exact_plan &&
      account.mended_plan.empty()) {
    const std::int64_t tried = account.search.tried;
    account.search = emulator::search_plans(capture, search);
    account.search.tried += tried;
    if (account.search.explained()) {
      account.verdict = Verdict::exact_plan;
      account.findings.clear();
      account.control =
          emulator::order_control(capture, account.search.plans.front().plan, options.threads);
    } else if (!account.search.plans.empty()) {
      add_diagnosis(capture, search, account);
    }
  }
  // No unit does so, after all.
  if (account.verdict == Verdict::valid_rounding && !account.search.stopped)
    account.verdict = judged.judgement.verdict;
  if (account.verdict == Verdict::wrong && account.findings.empty())
    account.findings = {{.kind = emulator::FaultKind::unknown,
                         .text = std::to_string(account.wrong) +
                                 " elements are further from the exact result than rounding takes "
                                 "them: the operands were not multiplied and added as numbers, or "
                                 "D is damaged"}};
  account.seconds = seconds_since(start);
  return account;
}

std::string summary_of(const Account& account, std::size_t number) {
  const emulator::PlanResult& x = account.search.plans[number];
  std::string text = emulator::describe(x.plan);
  if (number == 0)
    for (const emulator::Fault& finding : account.findings) text += "; " + finding.text;
  return text;
}

std::string_view engine_of(const emulator::PlanResult& x) {
  return emulator::plan_engine("auto", x.plan).name;
}

/// [[begin, end], ...]: ranges of numbers, the end not included.
nlohmann::ordered_json to_json(const std::vector<emulator::Places>& places) {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const emulator::Places& x : places) j.push_back({x.begin, x.end});
  return j;
}

nlohmann::ordered_json to_json(const emulator::Fault& fault) {
  nlohmann::ordered_json j = {{"kind", emulator::name_of(fault.kind)}};
  if (!fault.k.empty()) j["k"] = to_json(fault.k);
  if (!fault.rows.empty()) j["rows"] = to_json(fault.rows);
  if (!fault.columns.empty()) j["columns"] = to_json(fault.columns);
  if (fault.value) j["value"] = *fault.value;
  if (!fault.operand.empty()) j["operand"] = fault.operand;
  if (!fault.name.empty()) j["name"] = fault.name;
  j["text"] = fault.text;
  return j;
}

nlohmann::ordered_json to_json(const Account& account) {
  nlohmann::ordered_json j = {{"file", account.file},
                              {"outputs", account.outputs},
                              {"explained", account.search.explained()},
                              {"verdict", emulator::name_of(account.verdict)},
                              {"findings", nlohmann::ordered_json::array()},
                              {"plans", nlohmann::ordered_json::array()}};
  for (const emulator::Fault& finding : account.findings) j["findings"].push_back(to_json(finding));
  for (std::size_t i = 0; i < account.search.plans.size(); ++i) {
    const emulator::PlanResult& x = account.search.plans[i];
    j["plans"].push_back({{"mismatches", x.mismatches},
                          {"plan", emulator::to_text(x.plan)},
                          {"engine", engine_of(x)},
                          {"summary", summary_of(account, i)}});
    if (!account.mended_plan.empty()) j["plans"].back()["mended"] = account.mended_plan;
  }
  if (account.control)
    j["order_control"] = {{"outputs", account.control->outputs},
                          {"refuting", account.control->refuting}};
  j["stopped"] = account.search.stopped;
  j["ruled_out"] = account.search.ruled_out;
  return j;
}

/// How much the result says of the order of its sums.
void print_control(const emulator::OrderControl& control) {
  std::cout << "\nWith K in a random order, ";
  const std::string outputs = std::to_string(control.outputs) + " outputs that were tried ";
  const std::string some = std::to_string(control.refuting) + " of " + outputs;
  if (control.refuting == 0)
    std::cout << "all " << outputs << "stay as they are: any order of the sums fits.\n";
  else if (control.refuting * 20 < control.outputs)
    std::cout << "only " << some << "change: the order of the sums hardly shows.\n";
  else
    std::cout << some << "change: they tell the order of the sums.\n";
}

/// What the time allowed to be ruled out.
void print_stop(const Account& account, double time_limit) {
  std::cout << "The search stopped after " << time_limit
            << " s (--time-limit); a plan that was not tried may give the result.";
  if (!account.search.ruled_out.empty()) std::cout << " Ruled out:";
  std::cout << '\n';
  for (const std::string& stage : account.search.ruled_out) std::cout << "  " << stage << '\n';
}

void print_exact(const Account& account) {
  const auto& plans = account.search.plans;
  std::cout << paint("explained", Colour::green) << ": " << account.outputs
            << " outputs, 0 mismatches\n\n  "
            << paint(emulator::to_text(plans[0].plan), Colour::bold) << "\n  "
            << emulator::describe(plans[0].plan) << "\n  engine " << engine_of(plans[0]) << '\n';
  if (account.control) print_control(*account.control);
  if (plans.size() == 1) return;
  std::cout << "\nThese operands cannot tell it from:\n";
  for (std::size_t i = 1; i < plans.size(); ++i)
    std::cout << "  " << emulator::to_text(plans[i].plan) << '\n';
  std::cout << emulator::distinguishing_operands(plans) << '\n';
}

/// The verdict in a word, and what it means.
void print_verdict(const Account& account) {
  using emulator::Verdict;
  if (account.verdict != Verdict::wrong)
    std::cout << paint("right", Colour::green) << ": " << emulator::meaning_of(account.verdict);
  else if (account.wrong == 0)
    std::cout << paint("wrong", Colour::red)
              << ": rounding might take every element there, but this explains them far better";
  else
    std::cout << paint("wrong", Colour::red) << ": " << account.wrong << " of " << account.looked_at
              << " elements are further from the exact result than rounding takes them";
  std::cout << '\n';
  if (account.findings.empty()) return;
  std::cout << '\n'
            << (account.verdict == Verdict::wrong ? paint("This looks like a bug:", Colour::red)
                : account.diagnosis.looks_like_bug
                    ? paint("Up to rounding it is right, but this looks like a bug:", Colour::red)
                    : "What it points to:")
            << '\n';
  for (const emulator::Fault& finding : account.findings) std::cout << "  " << finding.text << '\n';
}

void print_plan(const emulator::PlanResult& x, const std::string& text) {
  std::cout << "\n  " << paint(text, Colour::bold) << "\n  " << emulator::describe(x.plan)
            << "\n  engine " << engine_of(x) << '\n';
}

/// Where the result differs from the nearest plan.
void print_differences(const emulator::Diagnosis& d) {
  std::cout << "\n  in " << d.rows << " rows and " << d.columns << " columns, " << d.area_count
            << (d.area_count == 1 ? " area" : " areas") << "; median distance " << d.median_distance
            << " ulp, largest " << d.largest_distance << " ulp";
  if (d.nans != 0) std::cout << ", " << d.nans << " NaN in the result only";
  std::cout << '\n';
  for (const emulator::FailedArea& area : d.areas) {
    std::cout << "    " << area.mismatches << " mismatches in rows " << area.row << ".."
              << area.row + area.rows - 1 << ", columns " << area.column << ".."
              << area.column + area.columns - 1;
    if (area.batch != 0) std::cout << " of batch entry " << area.batch;
    std::cout << '\n';
  }
  if (d.looks_like_bug) return;
  for (const std::string& finding : d.findings) std::cout << "  " << finding << '\n';
}

/// A result that no plan gives as it was asked for.
void print_unexplained(const Account& account) {
  print_verdict(account);
  const auto& plans = account.search.plans;
  if (plans.empty()) {
    if (account.verdict != emulator::Verdict::wrong)
      std::cout << "not explained: no unit of the catalogue takes these operands\n";
    return;
  }
  if (!account.mended_plan.empty()) {
    std::cout << "\nApart from that it is:\n";
    print_plan(plans.front(), account.mended_plan);
    return;
  }
  std::cout << '\n'
            << paint("not explained", Colour::red) << " by " << account.search.tried
            << " plans; the nearest leaves " << account.diagnosis.mismatches << " of "
            << account.diagnosis.outputs << " outputs:\n";
  print_plan(plans.front(), emulator::to_text(plans.front().plan));
  print_differences(account.diagnosis);
}

void print(const Account& account, double time_limit) {
  std::cout << formats::printable(account.file) << "  ";
  if (account.search.explained()) {
    print_exact(account);
  } else {
    print_unexplained(account);
  }
  for (const std::string& limit : account.limits) std::cout << limit << '\n';
  if (account.search.stopped) print_stop(account, time_limit);
  std::cout << std::fixed << std::setprecision(2) << account.search.tried << " plans tried, "
            << account.seconds << " s\n";
}

/// Fields in which the first plans of two results differ.
void print_changes(const Account& first, const Account& second) {
  if (!first.search.explained() || !second.search.explained()) {
    std::cout << "\nWithout an exact plan for both, what changed cannot be said.\n";
    return;
  }
  for (const auto& x : first.search.plans) {
    for (const auto& y : second.search.plans) {
      if (x.plan == y.plan) {
        std::cout << "\nOne plan explains both: " << emulator::to_text(x.plan) << '\n';
        return;
      }
    }
  }
  const auto p = emulator::fields_of(first.search.plans[0].plan);
  const auto q = emulator::fields_of(second.search.plans[0].plan);
  const auto value = [](const std::vector<emulator::PlanField>& fields, const std::string& key) {
    for (const auto& field : fields)
      if (field.key == key) return field.value;
    return std::string("(none)");
  };
  std::cout << "\nWhat changed:\n";
  for (const auto& field : p)
    if (value(q, field.key) != field.value)
      std::cout << "  " << field.key << ": " << field.value << " -> " << value(q, field.key)
                << '\n';
  for (const auto& field : q)
    if (value(p, field.key) == "(none)")
      std::cout << "  " << field.key << ": (none) -> " << field.value << '\n';
}

int explain_command(const ExplainOptions& options) {
  load_specs(options.specs);
  const EndAtOnce at_once;
  std::vector<GemmCapture> captures;
  if (!options.capture.empty()) {
    captures.push_back(emulator::read_gemm_capture(options.capture));
  } else {
    if (options.places.a.empty() || options.places.b.empty() ||
        (options.d.empty() && options.diff.empty()))
      throw Error("explain", "needs a CAPTURE, or --a, --b and --d (or --diff)");
    std::vector<std::string> results = options.diff;
    if (results.empty()) results.push_back(options.d);
    captures.reserve(results.size());
    for (const std::string& result : results) captures.push_back(capture_of(options, result));
  }
  std::vector<Account> accounts;
  accounts.reserve(captures.size());
  for (const GemmCapture& capture : captures) accounts.push_back(explain(options, capture));
  if (options.json) {
    nlohmann::ordered_json j = to_json(accounts.front());
    if (accounts.size() > 1) j = {j, to_json(accounts[1])};
    print_json(j);
  } else {
    for (const Account& account : accounts) print(account, options.time_limit);
    if (accounts.size() > 1) print_changes(accounts[0], accounts[1]);
  }
  const bool all = std::all_of(accounts.begin(), accounts.end(),
                               [](const Account& x) { return x.search.explained(); });
  return all ? 0 : 1;
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "explain", "Find the plan that gives a library's result, or what is wrong with it");
  const auto options = std::make_shared<ExplainOptions>();
  command->add_option("CAPTURE", options->capture, "A capture of kind gemm, conv2d or instruction");
  command->add_option("--a", options->places.a, "A: [M, K] or [B, M, K], as FILE or FILE:TENSOR");
  command->add_option("--b", options->places.b, "B: [K, N] or [B, K, N]");
  add_operand_options(*command, options->places);
  command->add_option("--d", options->d, "The result: [M, N] or [B, M, N]");
  command->add_option("--diff", options->diff, "Two results of the same operands: what changed")
      ->expected(2);
  command->add_option("--arch", options->arch, "The machine (default sm_90)");
  add_spec_option(*command, options->specs);
  command->add_option("--alpha", options->alpha, "D = alpha * A * B + beta * C (default 1)");
  command->add_option("--beta", options->beta, "Default 1 with --c");
  command->add_flag("--tf32", options->tf32, "FP32 operands were multiplied in TF32 mode");
  command->add_option("--max-plans", options->most_plans, "Exact plans to look for (default 8)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--time-limit", options->time_limit,
                   "Seconds after which the search for plans stops (default 60; 0: never)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 explained, 1 not explained, 2 bad input, 130 interrupted.\n"
      "Example: guardbit explain tests/golden/gemm/mm_fp32_33x17x100.safetensors\n"
      "Example: guardbit explain --a a.npy --b b.npy --d d.npy --arch sm_90 --tf32");
  command->callback([options, &status] { status = explain_command(*options); });
}

}  // namespace guardbit::tools
