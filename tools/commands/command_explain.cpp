#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/faults/fault.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/refused_options.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/division/division.hpp"
#include "tools/console/division/launcher.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/console/words_option.hpp"
#include "tools/products/explain_operator.hpp"
#include "tools/products/explain_product.hpp"
#include "tools/products/operand_file.hpp"
#include "tools/products/product_files.hpp"
#include "tools/products/spec_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::GemmCapture;
using formats::Error;
using nlohmann::ordered_json;

struct ExplainOptions {
  std::vector<std::string> captures;
  std::string d;
  GemmPlaces places;
  std::vector<std::string> diff, specs;
  AskedProduct asked;
  ExplainSettings settings;
  AskedOperator asked_operator;
  DivisionOptions division;
  bool json = false;
};

/// Where two results of the same operands differ.
std::string differences_text(const emulator::CodeMatrix& x, const emulator::CodeMatrix& y) {
  std::set<std::int64_t> rows, columns;
  std::int64_t count = 0;
  for (std::int64_t at = 0; at < x.size(); ++at) {
    if (formats::decode(x.format, x[at]) == formats::decode(y.format, y[at])) continue;
    ++count;
    rows.insert(at / x.columns % x.rows);
    columns.insert(at % x.columns);
  }
  const auto numbers = [](const std::set<std::int64_t>& list) {
    return emulator::text_of(
        emulator::places_of(std::vector<std::int64_t>(list.begin(), list.end())));
  };
  const std::string of = " of " + counted(x.size(), "element");
  if (count == 0) return "The results are equal in all" + of + ".\n";
  return "The results differ in " + std::to_string(count) + of + ", in rows " + numbers(rows) +
         " and columns " + numbers(columns) + ".\n";
}

/// Codes of a narrow format in a file of integers look like integers.
void print_hint_of_codes(const ExplainOptions& options, const GemmCapture& capture,
                         const std::vector<Explanation>& accounts) {
  const emulator::GemmProblem& x = capture.problem;
  const bool explained = std::ranges::all_of(
      accounts, [](const Explanation& account) { return account.search.explained(); });
  if (explained || !options.places.from.empty() || options.places.a.empty()) return;
  if (!formats::is_integer(x.a.format) || !formats::is_integer(x.b.format) ||
      formats::is_integer(capture.d.format))
    return;
  std::cout << "A and B are " << formats::name_of(x.a.format) << " and D is "
            << formats::name_of(capture.d.format)
            << ": if they are codes of a floating format, --from says which (--from e4m3).\n";
}

/// The rule behind an operator that is no product.
int explain_operator(const ExplainOptions& options) {
  const Interruption interruption;
  emulator::OperatorQuestion question =
      operator_question(options.asked_operator, options.settings.threads);
  question.interrupted = [&] { return interruption.asked_for(); };
  const emulator::OperatorAnswer answer = emulator::search_operator(question);
  if (options.json) {
    print_json(operator_answer_json(options.asked_operator, answer));
  } else {
    print_operator_answer(std::cout, options.asked_operator, answer);
  }
  interruption.check(": rules from there on were not tried");
  return answer.explained() ? 0 : 1;
}

Explanation explained(const GemmCapture& capture, ExplainSettings settings) {
  StatusLine status;
  settings.status = [&](const std::string& text) { status.show(text); };
  return explain_product(capture, settings);
}

/// What is said of one of several captures: text, JSON and whether it is explained, or an error.
ordered_json explained_file(const std::string& path, const ExplainOptions& options,
                            const ExplainSettings& settings) {
  try {
    GemmCapture capture = emulator::read_gemm_capture(path);
    set_asked(options.asked, capture);
    const Explanation explanation = explained(capture, settings);
    std::ostringstream text;
    print(text, explanation);
    return {{"file", path},
            {"text", text.str()},
            {"explanation", to_json(explanation)},
            {"explained", explanation.search.explained()}};
  } catch (const Error& error) {
    return {{"file", path}, {"error", error.what()}};
  }
}

/// Of several captures.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void add(const ordered_json& file) {
    of_kept_results("explain", [&] { report(file); });
  }
  int finish() const {
    if (json_) print_json({{"files", list_}});
    if (has_failed_) return exit_bad_input;
    return all_ ? 0 : exit_mismatch;
  }

 private:
  void report(const ordered_json& file) {
    if (file.contains("error")) {
      has_failed_ = true;
      say(file["error"].get<std::string>());
      return;
    }
    all_ &= file.at("explained").get<bool>();
    if (json_) {
      ordered_json j = {{"file", file.at("file")}};
      j.update(file.at("explanation"));
      list_.push_back(std::move(j));
    } else {
      std::cout << formats::printable(file.at("file").get<std::string>()) << ":\n"
                << file.at("text").get<std::string>();
    }
  }

  bool json_, all_ = true, has_failed_ = false;
  ordered_json list_ = ordered_json::array();
};

/// Everything but the files that the explanations depend on.
ordered_json question_of(const ExplainOptions& options) {
  const auto number = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  return {{"arch", options.asked.arch},
          {"specs", options.specs},
          {"alpha", number(options.asked.alpha)},
          {"beta", number(options.asked.beta)},
          {"activation", options.asked.activation},
          {"tf32", options.asked.tf32},
          {"max_plans", options.settings.most_plans},
          {"time_limit", options.settings.time_limit}};
}

int explain_files(const ExplainOptions& options) {
  const Interruption interruption;
  Report report(options.json);
  ExplainSettings settings = options.settings;
  settings.interrupted = [&] { return interruption.asked_for(); };
  const std::vector<std::string>& files = options.captures;
  if (is_divided(options.division, files.size())) {
    settings.threads = threads_of_process(settings.threads);
    const auto results = divide(options.division,
                                {.description = {"explain", files, question_of(options)},
                                 .work =
                                     [&](std::size_t i) {
                                       ordered_json file =
                                           explained_file(files[i], options, settings);
                                       interruption.check();
                                       return file;
                                     }},
                                interruption);
    if (!results) return 0;
    for (const ordered_json& file : *results) report.add(file);
    return report.finish();
  }
  for (const std::string& file : files) {
    report.add(explained_file(file, options, settings));
    interruption.check(": the captures from there on were not explained");
  }
  return report.finish();
}

int merge_files(const ExplainOptions& options) {
  Report report(options.json);
  const auto parts = std::span(options.captures).subspan(1);
  for (const ordered_json& file : merged_results_of("explain", parts)) report.add(file);
  return report.finish();
}

int explain_command(const ExplainOptions& options) {
  if (!options.asked_operator.op.empty()) return explain_operator(options);
  if (!options.captures.empty() && options.captures.front() == "merge") return merge_files(options);
  load_specs(options.specs);
  if (options.captures.size() > 1 || is_divided(options.division, options.captures.size()))
    return explain_files(options);
  const EndAtOnce at_once;
  std::vector<GemmCapture> captures;
  if (!options.captures.empty()) {
    captures.push_back(emulator::read_gemm_capture(options.captures.front()));
  } else {
    if (options.places.a.empty() || options.places.b.empty() ||
        (options.d.empty() && options.diff.empty()))
      throw Error("explain", "needs a CAPTURE, or --a, --b and --d (or --diff)");
    std::vector<std::string> results = options.diff;
    if (results.empty()) results.push_back(options.d);
    captures.reserve(results.size());
    for (const std::string& result : results)
      captures.push_back(
          capture_of(read_gemm_operands(options.places),
                     read_operand("--d", "d", result, formats::fp32, options.places.from), result));
  }
  for (GemmCapture& capture : captures) set_asked(options.asked, capture);
  std::vector<Explanation> accounts;
  accounts.reserve(captures.size());
  for (const GemmCapture& capture : captures)
    accounts.push_back(explained(capture, options.settings));
  if (options.json) {
    nlohmann::ordered_json j = to_json(accounts.front());
    if (accounts.size() > 1) j = {j, to_json(accounts[1])};
    print_json(j);
  } else {
    for (const Explanation& explanation : accounts) print(std::cout, explanation);
    if (accounts.size() > 1) {
      print_changes(accounts[0], accounts[1]);
      std::cout << differences_text(captures[0].d, captures[1].d);
    }
    print_hint_of_codes(options, captures.front(), accounts);
  }
  const bool all = std::all_of(accounts.begin(), accounts.end(),
                               [](const Explanation& x) { return x.search.explained(); });
  return all ? 0 : 1;
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "explain", "Find the plan that gives a library's result, or what is wrong with it");
  const auto options = std::make_shared<ExplainOptions>();
  command->add_option(
      "CAPTURE", options->captures,
      "Captures of kind gemm, conv2d or instruction; or the word merge and the parts "
      "that --part made");
  command->add_option("--a", options->places.a, "A: [M, K] or [B, M, K], as FILE or FILE:TENSOR");
  command->add_option("--b", options->places.b, "B: [K, N] or [B, K, N]");
  add_operand_options(*command, options->places);
  command->add_option("--d", options->d, "The result: [M, N] or [B, M, N]");
  command->add_option("--diff", options->diff, "Two results of the same operands: what changed")
      ->expected(2);
  command->add_option("--arch", options->asked.arch,
                      "The machine (default sm_90, or the capture's)");
  add_spec_option(*command, options->specs);
  command->add_option("--alpha", options->asked.alpha,
                      "D = alpha * A * B + beta * C (default 1, or the capture's)");
  command->add_option("--beta", options->asked.beta, "Default 1 with --c, or the capture's");
  command->add_option("--activation", options->asked.activation, "What D went through")
      ->type_name(type_of_words<emulator::Activation>());
  command->add_flag("--tf32", options->asked.tf32, "FP32 operands were multiplied in TF32 mode");
  command
      ->add_option("--max-plans", options->settings.most_plans,
                   "Exact plans to look for (default 8)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--time-limit", options->settings.time_limit,
                   "Seconds after which the search for plans stops (default 60; 0: never)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  command
      ->add_option("--operator", options->asked_operator.op,
                   "In place of a product: the order and formula behind a reduction or a norm")
      ->type_name(type_of_words<emulator::SearchedOperator>());
  command->add_option("--input", options->asked_operator.input,
                      "With --operator: what it took, as FILE or FILE:TENSOR");
  command->add_option("--output", options->asked_operator.output, "With --operator: what it gave");
  command->add_option("--dim", options->asked_operator.dimension,
                      "With --operator: along which dimension (default the last one; of sum and "
                      "mean all)");
  command
      ->add_option("--epsilon", options->asked_operator.epsilon,
                   "With --operator: what norms add to the variance (default 1e-5)")
      ->check(CLI::Range(0.0, 1.0));
  add_threads_option(*command, options->settings.threads);
  add_division_options(*command, options->division);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit status: 0 explained, 1 not explained, 2 bad input, 130 interrupted.\n"
      "Example: guardbit explain tests/golden/gemm/mm_fp32_33x17x100.safetensors\n"
      "Example: guardbit explain captures/*.safetensors --part 3/8 --results part3\n"
      "Example: guardbit explain --a a.npy --b b.npy --d d.npy --arch sm_90 --tf32\n"
      "Example: guardbit explain --operator softmax --input x.npy --output y.npy");
  command->callback([options, command, &status] {
    if (!options->captures.empty())
      refuse_unread(*command,
                    {"--a", "--b", "--c", "--bias", "--scale-a", "--scale-b", "--sparse", "--from",
                     "--d", "--diff"},
                    "without a CAPTURE");
    if (options->captures.empty())
      refuse_unread(*command, {"--part", "--results"}, "with captures alone");
    else if (options->captures.front() == "merge")
      refuse_unread(*command,
                    {"--arch", "--spec", "--alpha", "--beta", "--activation", "--tf32",
                     "--max-plans", "--time-limit", "--threads", "--part", "--results"},
                    "without merge");
    if (!options->division.part.empty())
      refuse_unread(*command, {"--json"}, "without --part: 'guardbit explain merge' takes it");
    const bool is_operator = !options->asked_operator.op.empty();
    if (is_operator) {
      refuse_unread(*command,
                    {"CAPTURE", "--a", "--b", "--c", "--bias", "--scale-a", "--scale-b", "--sparse",
                     "--from", "--d", "--diff", "--arch", "--spec", "--alpha", "--beta",
                     "--activation", "--tf32", "--max-plans", "--time-limit"},
                    "without --operator");
    } else {
      refuse_unread(*command, {"--input", "--output", "--dim", "--epsilon"}, "with --operator");
    }
    status = explain_command(*options);
  });
}

}  // namespace guardbit::tools
