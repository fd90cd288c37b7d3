#include "emulator/operator_search/operator_search.hpp"

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include "emulator/operator_search/all_reduce_search.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/row_norms.hpp"
#include "emulator/operators/softmax.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {
namespace {

namespace ops = operators;
using formats::Error;
using Op = SearchedOperator;

bool gives_one_number(Op op) { return op == Op::sum || op == Op::mean; }

/// The input as rows along the dimension, and of each row what was recorded.
struct Rows {
  std::int64_t count = 1, size = 1;
  std::vector<float> inputs;
  /// row by row: one element, or as many as the row has
  std::vector<std::uint64_t> outputs;
  std::int64_t outputs_of_row = 1;

  std::span<const float> row(std::int64_t r) const {
    return std::span(inputs).subspan(static_cast<std::size_t>(r * size),
                                     static_cast<std::size_t>(size));
  }
};

Rows rows_of(const OperatorQuestion& q) {
  Rows rows;
  const ops::Tensor& x = q.input;
  if (x.count() == 0) throw Error(q.input_place, "no elements");
  const bool is_all = !q.dimension;
  const std::size_t d = is_all ? 0 : ops::dimension_of(x, *q.dimension);
  std::int64_t inner = 1;
  rows.size = is_all ? x.count() : x.rank() == 0 ? 1 : x.shape[d];
  for (std::size_t i = d + 1; !is_all && i < x.shape.size(); ++i) inner *= x.shape[i];
  rows.count = x.count() / rows.size;
  rows.outputs_of_row = gives_one_number(q.op) ? 1 : rows.size;
  if (q.output.count() != rows.count * rows.outputs_of_row)
    throw Error(q.output_place, std::to_string(q.output.count()) + " elements, where " +
                                    std::string(formats::word_of(q.op)) + " of this input gives " +
                                    std::to_string(rows.count * rows.outputs_of_row));
  const std::vector<float> numbers = ops::numbers_of(x);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t start = r / inner * rows.size * inner + r % inner;
    for (std::int64_t i = 0; i < rows.size; ++i)
      rows.inputs.push_back(numbers[static_cast<std::size_t>(start + i * inner)]);
    for (std::int64_t i = 0; i < rows.outputs_of_row; ++i)
      rows.outputs.push_back(
          ops::code_at(q.output, rows.outputs_of_row == 1 ? r : start + i * inner));
  }
  return rows;
}

/// Elements of a row's results that are not the recorded ones.
std::int64_t misses(const OperatorQuestion& q, const Rows& rows, std::int64_t r,
                    std::vector<float> results) {
  const ops::Tensor codes =
      ops::tensor_of_numbers(q.output.type, {static_cast<std::int64_t>(results.size())}, results);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows.outputs_of_row; ++i) {
    const auto at = static_cast<std::size_t>(r * rows.outputs_of_row + i);
    count += ops::code_at(codes, i) != rows.outputs[at] ? 1 : 0;
  }
  return count;
}

/// The same of all rows; of many rows that are wrong the first ones are enough.
std::int64_t misses(const OperatorQuestion& q, const Rows& rows, const RowFormula& formula) {
  std::int64_t count = 0;
  constexpr std::int64_t enough = 8;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    count += misses(q, rows, r, formula.results(rows.row(r)));
    if (r == enough && count > 0) return (count * rows.count + enough) / (enough + 1);
  }
  return count;
}

/// What PyTorch's kernels give, which choose by shapes and strides.
std::pair<ops::Tensor, std::string> by_pytorch(const OperatorQuestion& q,
                                               const ops::Tensor& input) {
  const std::int64_t dimension = q.dimension.value_or(-1);
  const auto type = q.output.type;
  ops::ReductionRequest request;
  if (q.dimension) request.dimensions = {*q.dimension};
  request.type = type;
  request.threads = q.threads;
  switch (q.op) {
    case Op::sum:
    case Op::mean: {
      auto all = q.op == Op::sum ? ops::sum(input, request) : ops::mean(input, request);
      return {std::move(all.result), std::move(all.shape)};
    }
    case Op::softmax:
    case Op::log_softmax: {
      auto all = ops::softmax(input, dimension, q.op == Op::log_softmax, type, q.threads);
      return {std::move(all.result), std::move(all.plan)};
    }
    case Op::layer_norm:
    case Op::rms_norm:
    case Op::all_reduce:
    case Op::all_reduce_avg: break;
  }
  if (ops::dimension_of(input, dimension) + 1 != input.shape.size())
    throw ops::UnknownShape{"a norm over another dimension than the last"};
  auto all = ops::row_norm(q.op == Op::layer_norm ? ops::RowNorm::layer : ops::RowNorm::rms, input,
                           1, nullptr, nullptr, q.epsilon, q.threads);
  return {std::move(all.output), std::move(all.plan)};
}

std::int64_t differing(const ops::Tensor& a, const ops::Tensor& b) {
  if (a.type != b.type || a.count() != b.count()) return b.count();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < b.count(); ++i)
    count += ops::code_at(a, i) != ops::code_at(b, i) ? 1 : 0;
  return count;
}

/// A place for each element of a row, at random.
std::vector<std::size_t> permutation(std::int64_t size) {
  std::vector<std::size_t> places(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::mt19937_64 random(1);
  for (std::size_t i = places.size(); i > 1; --i)
    std::swap(places[i - 1], places[static_cast<std::size_t>(random() % i)]);
  return places;
}

/// Outputs that a formula misses if rows come in another order and their results go back.
std::int64_t refuting(const OperatorQuestion& q, const Rows& rows, const RowFormula& formula) {
  const auto places = permutation(rows.size);
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const auto row = rows.row(r);
    std::vector<float> moved(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) moved[i] = row[places[i]];
    const std::vector<float> results = formula.results(moved);
    std::vector<float> back(results);
    for (std::size_t i = 0; results.size() > 1 && i < results.size(); ++i)
      back[places[i]] = results[i];
    count += misses(q, rows, r, back);
  }
  return count;
}

/// The same of PyTorch's kernels, over rows that lie one after another.
std::int64_t refuting_of_pytorch(const OperatorQuestion& q, const Rows& rows) {
  const auto places = permutation(rows.size);
  std::vector<float> moved(rows.inputs.size());
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::size_t i = 0; i < places.size(); ++i)
      moved[static_cast<std::size_t>(r * rows.size) + i] = rows.row(r)[places[i]];
  }
  OperatorQuestion other = q;
  other.dimension = -1;
  const ops::Tensor results =
      by_pytorch(other, ops::tensor_of_numbers(q.input.type, {rows.count, rows.size}, moved)).first;
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t i = 0; i < rows.outputs_of_row; ++i) {
      const std::int64_t place =
          rows.outputs_of_row == 1 ? 0
                                   : static_cast<std::int64_t>(places[static_cast<std::size_t>(i)]);
      const auto recorded = rows.outputs[static_cast<std::size_t>(r * rows.outputs_of_row + place)];
      count += ops::code_at(results, r * rows.outputs_of_row + i) != recorded ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

OperatorAnswer search_operator(const OperatorQuestion& q) {
  for (const auto& [place, tensor] :
       {std::pair{&q.input_place, &q.input}, std::pair{&q.output_place, &q.output}}) {
    if (!ops::is_working_type(tensor->type))
      throw Error(*place, formats::name_of(tensor->type) + " is not searched", "fp32, fp16, bf16");
  }
  if (q.op == Op::all_reduce || q.op == Op::all_reduce_avg) return search_all_reduce(q);
  OperatorAnswer answer;
  Rows rows;
  try {
    rows = rows_of(q);
  } catch (const ops::UnknownShape& unknown) {
    throw Error(q.dimension_place, unknown.reason);
  }
  answer.outputs = q.output.count();
  const auto add = [&](std::string rule, std::int64_t mismatches) {
    ++answer.tried;
    RuleResult result{std::move(rule), mismatches};
    if (mismatches == 0) {
      answer.exact.push_back(std::move(result));
    } else if (!answer.nearest || mismatches < answer.nearest->mismatches) {
      answer.nearest = std::move(result);
    }
  };
  try {
    const auto [result, plan] = by_pytorch(q, q.input);
    add("PyTorch 2.11 on sm_90: " + plan, differing(result, q.output));
    if (answer.explained()) answer.refuting = refuting_of_pytorch(q, rows);
  } catch (const ops::UnknownShape&) {
    // Its kernels do not compute this.
  }
  constexpr std::size_t most_rules = 8;
  for (const RowFormula& formula : row_formulas(q.op, rows.size, static_cast<float>(q.epsilon))) {
    if (q.interrupted() || answer.exact.size() >= most_rules) break;
    const bool was_explained = answer.explained();
    add(formula.text, misses(q, rows, formula));
    if (answer.explained() && !was_explained) answer.refuting = refuting(q, rows, formula);
  }
  return answer;
}

}  // namespace guardbit::emulator
