#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/plan_search/diagnosis.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "emulator/plan_search/variants.hpp"
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
  int threads = 0;
};

/// What was found about one result.
struct Account {
  std::string file;
  std::int64_t outputs = 0;
  emulator::SearchResult search;
  /// about what no plan explains
  std::vector<std::string> findings;
  emulator::Diagnosis diagnosis;
  double seconds = 0;
};

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

/// A result that is exactly what another problem than was asked gives: C forgotten, another alpha,
/// a tail of K missed everywhere. True where there is such a problem, with a plan.
bool explain_as_variant(const GemmCapture& capture, const emulator::SearchOptions& options,
                        Account& account) {
  const std::optional<emulator::Variant> variant = emulator::likely_variant(capture);
  if (!variant) return false;
  emulator::SearchOptions search = options;
  search.most_plans = 1;
  const emulator::SearchResult result = emulator::search_plans(variant->capture, search);
  if (!result.explained()) return false;
  emulator::PlanResult plan = result.plans.front();
  plan.plan.epilogue.alpha = capture.alpha;
  plan.plan.epilogue.beta = capture.beta;
  account.diagnosis = emulator::diagnose(capture, plan.plan, options.threads, options.interrupted);
  plan.mismatches = account.diagnosis.mismatches;
  if (plan.mismatches == 0) return false;  // as asked, after all
  account.search = {{plan}, result.tried};
  account.diagnosis.looks_like_bug = true;
  account.findings = {variant->name + "; then it is " +
                      emulator::to_text(result.plans.front().plan)};
  return true;
}

Account explain(const ExplainOptions& options, const GemmCapture& capture,
                const Interruption& interruption) {
  Account account;
  account.file = capture.path;
  account.outputs = capture.outputs();
  const auto start = std::chrono::steady_clock::now();
  emulator::SearchOptions search;
  search.threads = options.threads;
  search.most_plans = options.most_plans;
  search.interrupted = [&] { return interruption.asked_for(); };
  if (!explain_as_variant(capture, search, account)) {
    account.search = emulator::search_plans(capture, search);
    if (!interruption.asked_for() && !account.search.explained() && !account.search.plans.empty()) {
      account.diagnosis = emulator::diagnose(capture, account.search.plans.front().plan,
                                             options.threads, search.interrupted);
      account.findings = account.diagnosis.findings;
    }
  }
  account.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return account;
}

std::string summary_of(const Account& account, std::size_t number) {
  const emulator::PlanResult& x = account.search.plans[number];
  std::string text = emulator::describe(x.plan);
  if (number == 0)
    for (const std::string& finding : account.findings) text += "; " + finding;
  return text;
}

std::string_view engine_of(const emulator::PlanResult& x) {
  return emulator::plan_engine("auto", x.plan).name;
}

nlohmann::ordered_json to_json(const Account& account) {
  nlohmann::ordered_json j = {{"file", account.file},
                              {"outputs", account.outputs},
                              {"explained", account.search.explained()},
                              {"plans", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < account.search.plans.size(); ++i) {
    const emulator::PlanResult& x = account.search.plans[i];
    j["plans"].push_back({{"mismatches", x.mismatches},
                          {"plan", emulator::to_text(x.plan)},
                          {"engine", engine_of(x)},
                          {"summary", summary_of(account, i)}});
  }
  return j;
}

void print_exact(const Account& account) {
  const auto& plans = account.search.plans;
  std::cout << paint("explained", Colour::green) << ": " << account.outputs
            << " outputs, 0 mismatches\n\n  "
            << paint(emulator::to_text(plans[0].plan), Colour::bold) << "\n  "
            << emulator::describe(plans[0].plan) << "\n  engine " << engine_of(plans[0]) << '\n';
  if (plans.size() == 1) return;
  std::cout << "\nThese operands cannot tell it from:\n";
  for (std::size_t i = 1; i < plans.size(); ++i)
    std::cout << "  " << emulator::to_text(plans[i].plan) << '\n';
  std::cout << emulator::distinguishing_operands(plans) << '\n';
}

/// Mismatches counted over a grid of tiles, as characters.
void print_nearest(const Account& account) {
  const emulator::Diagnosis& d = account.diagnosis;
  std::cout << paint("not explained", Colour::red) << " by " << account.search.tried
            << " plans; the nearest leaves " << d.mismatches << " of " << d.outputs
            << " outputs:\n\n  "
            << paint(emulator::to_text(account.search.plans[0].plan), Colour::bold) << "\n  "
            << emulator::describe(account.search.plans[0].plan) << "\n  engine "
            << engine_of(account.search.plans[0]) << "\n\n  in " << d.rows << " rows and "
            << d.columns << " columns, " << d.area_count << (d.area_count == 1 ? " area" : " areas")
            << "; median distance " << d.median_distance << " ulp, largest " << d.largest_distance
            << " ulp";
  if (d.nans != 0) std::cout << ", " << d.nans << " NaN in the result only";
  std::cout << '\n';
  for (const emulator::FailedArea& x : d.areas) {
    std::cout << "    " << x.mismatches << " mismatches in rows " << x.row << ".."
              << x.row + x.rows - 1 << ", columns " << x.column << ".." << x.column + x.columns - 1;
    if (x.batch != 0) std::cout << " of batch entry " << x.batch;
    std::cout << '\n';
  }
  std::cout << '\n'
            << (d.looks_like_bug ? paint("This looks like a bug:", Colour::red)
                                 : "What it points to:")
            << '\n';
  for (const std::string& finding : account.findings) std::cout << "  " << finding << '\n';
}

void print(const Account& account) {
  std::cout << formats::printable(account.file) << "  ";
  if (account.search.explained()) {
    print_exact(account);
  } else if (account.search.plans.empty()) {
    std::cout << "not explained: no unit of the catalogue takes these operands\n";
  } else {
    print_nearest(account);
  }
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
  const Interruption interruption;
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
  for (const GemmCapture& capture : captures) {
    accounts.push_back(explain(options, capture, interruption));
    interruption.check();
  }
  if (options.json) {
    nlohmann::ordered_json j = to_json(accounts.front());
    if (accounts.size() > 1) j = {j, to_json(accounts[1])};
    print_json(j);
  } else {
    for (const Account& account : accounts) print(account);
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
  add_threads_option(*command, options->threads);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 explained, 1 not explained, 2 bad input, 130 interrupted.\n"
      "Example: guardbit explain tests/golden/gemm/mm_fp32_33x17x100.safetensors\n"
      "Example: guardbit explain --a a.npy --b b.npy --d d.npy --arch sm_90 --tf32");
  command->callback([options, &status] { status = explain_command(*options); });
}

}  // namespace guardbit::tools
