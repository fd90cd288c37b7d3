#include "tools/products/plans/call_plan.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "emulator/replay/plan_book.hpp"
#include "emulator/replay/product_shape.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/products/plan_book_file.hpp"
#include "tools/products/plans/plan_json.hpp"

namespace guardbit::tools {

namespace {

using emulator::atlas::Known;
using emulator::atlas::scope;

void require_scope(const std::string& like) {
  const std::string ours = AskedCall{}.like;
  if (like != ours)
    throw formats::Error("--like",
                         "the atlas does not hold for " + formats::in_quotes(like) +
                             "; plans change with version and machine",
                         ours);
}

/// What the book has of the call: the plan that gave all of its recorded results.
const emulator::GemmPlan* recorded_plan(const emulator::replay::PlanBook& book,
                                        const emulator::atlas::StridedCall& call) {
  const auto* plans = book.find(emulator::replay::shape_of_call(call));
  if (plans == nullptr) return nullptr;
  const emulator::GemmPlan& plan = plans->front();
  // A book does not say whether TF32 was allowed. Its plan does where it multiplies in TF32.
  const bool is_tf32 = plan.unit.instruction.find("tf32") != std::string::npos;
  return is_tf32 && call.numbers == "fp32" ? nullptr : &plan;
}

void set_strides(const AskedCall& asked, emulator::atlas::StridedCall& call) {
  if (call.a_stride.empty() && call.b_stride.empty()) {
    set_layout(call, asked.layout, "--layout");
  } else if (call.a_stride.empty() || call.b_stride.empty()) {
    throw formats::Error("plan", "--a-stride and --b-stride go together");
  }
  const std::size_t rank = call.op == "bmm" ? 3 : 2;
  if (call.a_stride.size() != rank || call.b_stride.size() != rank)
    throw formats::Error("plan", formats::printable(call.op) + " needs " + std::to_string(rank) +
                                     " strides of each operand");
}

}  // namespace

CallPlan plan_of_call(const AskedCall& asked) {
  require_scope(asked.like);
  CallPlan result = {asked.call, {}, false};
  set_strides(asked, result.call);
  // Refuses what no library's call can be, in a book too.
  result.answer = emulator::atlas::plan_of(emulator::atlas::call_of(result.call, "plan"));
  if (asked.book.empty()) return result;
  // Of a name that cannot be a file's, reading says more.
  std::error_code error;
  if (!std::filesystem::exists(asked.book, error) && !error)
    throw formats::Error(formats::printable(asked.book), "no such file");
  emulator::replay::PlanBook book;
  read_plan_book(asked.book, book);
  if (const emulator::GemmPlan* plan = recorded_plan(book, result.call)) {
    result.answer = {*plan, Known::recorded, 1000, "the book has this call"};
    result.of_book = true;
  }
  return result;
}

std::optional<AskedCall> call_of(const GemmInput& input) {
  const emulator::GemmProblem& x = input.problem;
  const formats::Format& format = x.a.format;
  const bool is_held =
      format == formats::fp16 || format == formats::bf16 || format == formats::fp32;
  if (!is_held || x.b.format != format || x.sparse_a || !x.c.empty() || !x.scale_a.empty() ||
      !x.scale_b.empty())
    return std::nullopt;
  // PyTorch has no batch of products with a bias.
  if (input.batched && !x.bias.empty()) return std::nullopt;
  AskedCall asked;
  asked.call = {.op = input.batched    ? "bmm"
                      : x.bias.empty() ? "mm"
                                       : "addmm",
                .numbers = formats::name_of(format),
                .m = x.m(),
                .n = x.n(),
                .k = x.k(),
                .batch = x.a.batch,
                .a_stride = {},
                .b_stride = {}};
  return asked;
}

std::string sizes_text(const emulator::atlas::StridedCall& call, std::string_view varied) {
  const auto size = [&](char name, std::int64_t value) {
    return varied.find(name) == std::string_view::npos ? std::to_string(value)
                                                       : std::string(1, name);
  };
  return call.op + ' ' + (call.batch != 1 ? std::to_string(call.batch) + " x " : "") +
         size('m', call.m) + " x " + size('n', call.n) + " x " + size('k', call.k) + ", " +
         call.numbers;
}

std::string scope_line() { return "for    " + AskedCall{}.like + ": " + describe(scope) + '\n'; }

nlohmann::ordered_json scope_json() {
  return {{"library", scope.library},     {"arch", scope.arch},
          {"framework", scope.framework}, {"driver", scope.driver},
          {"device", scope.device},       {"multiprocessors", scope.multiprocessors}};
}

nlohmann::ordered_json sizes_json(const emulator::atlas::StridedCall& call) {
  return {{"op", call.op}, {"m", call.m},         {"n", call.n},
          {"k", call.k},   {"batch", call.batch}, {"dtype", call.numbers}};
}

nlohmann::ordered_json to_json(const CallPlan& plan) {
  const auto& [call, answer, of_book] = plan;
  nlohmann::ordered_json asked = sizes_json(call);
  asked["a_stride"] = call.a_stride;
  asked["b_stride"] = call.b_stride;
  nlohmann::ordered_json j = {{"call", std::move(asked)},
                              {"known", formats::word_of(answer.known)},
                              {"agree", answer.agree / 1000.0},
                              {"why", answer.why}};
  j["plan"] = answer.known != Known::unknown ? to_json(answer.plan) : nlohmann::ordered_json();
  j["holds_for"] = scope_json();
  return j;
}

void print(std::ostream& out, const CallPlan& plan) {
  const auto& [call, answer, of_book] = plan;
  const bool is_known = answer.known != Known::unknown;
  out << sizes_text(call) << '\n'
      << "plan   " << (is_known ? emulator::to_text(answer.plan) : "none") << '\n'
      << "known  " << formats::word_of(answer.known) << ": " << answer.why << '\n';
  if (!of_book) out << scope_line();
}

}  // namespace guardbit::tools
