#include <limits>

#include "emulator/operators/casts.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/scan.hpp"
#include "emulator/replay/calls.hpp"

// Sums, means, norms, moments, extremes; running sums and products; order.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

ops::ReductionRequest request_of(const Call& call, const Context& context, std::size_t dimensions,
                                 std::size_t keep) {
  return {.dimensions = call.integers(dimensions, "dim", {}),
          .keep_dimensions = call.boolean(keep, "keepdim", false),
          .type = call.dtype(std::numeric_limits<std::size_t>::max(), "dtype"),
          .machine = context.machine,
          .threads = context.threads};
}

const Tensor& input_of(const Call& call) {
  const Tensor& input = call.tensor(0, "self");
  if (!ops::is_working_type(input.type) && !formats::is_integer(input.type) &&
      !(input.type == formats::fp64))
    throw UnknownArguments{"a type without a model"};
  return input;
}
const Tensor& floating_input_of(const Call& call) {
  const Tensor& input = input_of(call);
  if (formats::is_integer(input.type)) throw UnknownArguments{"a type without a model"};
  return input;
}

Answer answered(ops::Reduced reduced) {
  return computed({std::move(reduced.result)}, std::move(reduced.shape));
}

Answer sum(const Call& call, Context& context) {
  return answered(ops::sum(input_of(call), request_of(call, context, 1, 2)));
}
Answer sum_without_nan(const Call& call, Context& context) {
  const Tensor& input = input_of(call);
  const ops::ReductionRequest request = request_of(call, context, 1, 2);
  return answered(formats::is_integer(input.type) ? ops::sum(input, request)
                                                  : ops::sum_without_nan(input, request));
}
Answer mean(const Call& call, Context& context) {
  return answered(ops::mean(input_of(call), request_of(call, context, 1, 2)));
}
Answer product_of_elements(const Call& call, Context& context) {
  return answered(ops::product(floating_input_of(call), request_of(call, context, 1, 2)));
}
Answer vector_norm(const Call& call, Context& context) {
  ops::ReductionRequest request = request_of(call, context, 2, 3);
  request.type = call.dtype(4, "dtype");
  return answered(ops::norm(floating_input_of(call), call.number(1, "ord", 2), request));
}
Answer norm(const Call& call, Context& context) {
  return answered(
      ops::norm(floating_input_of(call), call.number(1, "p", 2), request_of(call, context, 2, 3)));
}
Answer log_sum_exp(const Call& call, Context& context) {
  return answered(ops::log_sum_exp(floating_or_double(call.tensor(0, "self")),
                                   request_of(call, context, 1, 2)));
}

ops::Spread spread_of(const Call& call, Context& context, bool is_root) {
  constexpr auto by_name = std::numeric_limits<std::size_t>::max();
  return ops::variance(floating_input_of(call), call.number(by_name, "correction", 1), is_root,
                       request_of(call, context, 1, by_name));
}
Answer spread(const Call& call, Context& context, bool is_root, bool has_mean) {
  ops::Spread all = spread_of(call, context, is_root);
  std::vector<std::optional<Tensor>> results = {std::move(all.spread)};
  if (has_mean) results.emplace_back(std::move(all.mean));
  return computed(std::move(results), std::move(all.shape));
}
Answer variance(const Call& call, Context& context) { return spread(call, context, false, false); }
Answer deviation(const Call& call, Context& context) { return spread(call, context, true, false); }
Answer variance_and_mean(const Call& call, Context& context) {
  return spread(call, context, false, true);
}
Answer deviation_and_mean(const Call& call, Context& context) {
  return spread(call, context, true, true);
}

constexpr std::string_view order_is_free = "a choice of elements, in any order";

template <bool is_greatest>
Answer extreme(const Call& call, Context& context) {
  return computed(
      {ops::extremes(input_of(call), is_greatest, request_of(call, context, 1, 2)).numbers},
      std::string(order_is_free));
}
template <bool is_greatest>
Answer index_of_extreme(const Call& call, Context& context) {
  return computed(
      {ops::extremes(input_of(call), is_greatest, request_of(call, context, 1, 2)).indices},
      std::string(order_is_free));
}
template <bool is_greatest>
Answer extreme_and_index(const Call& call, Context& context) {
  ops::Extremes all = ops::extremes(input_of(call), is_greatest, request_of(call, context, 1, 2));
  return computed({std::move(all.numbers), std::move(all.indices)}, std::string(order_is_free));
}
template <bool is_any>
Answer any_or_all(const Call& call, Context& context) {
  return computed({ops::any_or_all(input_of(call), is_any, request_of(call, context, 1, 2))},
                  std::string(order_is_free));
}

template <ops::Running operation>
Answer running(const Call& call, Context& context) {
  const Tensor& given = input_of(call);
  const std::optional<formats::Format> type = call.dtype(2, "dtype");
  // Elements are converted before they are added.
  const Tensor input = type && *type != given.type ? ops::converted(given, *type) : given;
  ops::Scanned scanned = ops::scan(input, call.integer(1, "dim"), operation, context.threads);
  if (!scanned.is_ordered)
    return {.results = {}, .plan = std::move(scanned.plan), .status = Status::unordered};
  return computed({std::move(scanned.result)}, std::move(scanned.plan));
}

constexpr std::array reduction_handlers = {
    Handler{"aten.all", any_or_all<false>},
    Handler{"aten.amax", extreme<true>},
    Handler{"aten.amin", extreme<false>},
    Handler{"aten.any", any_or_all<true>},
    Handler{"aten.argmax", index_of_extreme<true>},
    Handler{"aten.argmin", index_of_extreme<false>},
    Handler{"aten.cumprod", running<ops::Running::product>},
    Handler{"aten.cumsum", running<ops::Running::sum>},
    Handler{"aten.linalg_vector_norm", vector_norm},
    Handler{"aten.logcumsumexp", running<ops::Running::log_sum_exp>},
    Handler{"aten.logsumexp", log_sum_exp},
    Handler{"aten.max.default", extreme<true>},
    Handler{"aten.max.dim", extreme_and_index<true>},
    Handler{"aten.mean", mean},
    Handler{"aten.min.default", extreme<false>},
    Handler{"aten.min.dim", extreme_and_index<false>},
    Handler{"aten.nansum", sum_without_nan},
    Handler{"aten.norm.Scalar", norm},
    Handler{"aten.norm.ScalarOpt_dim", norm},
    Handler{"aten.prod", product_of_elements},
    Handler{"aten.std.correction", deviation},
    Handler{"aten.std_mean.correction", deviation_and_mean},
    Handler{"aten.sum", sum},
    Handler{"aten.var.correction", variance},
    Handler{"aten.var_mean.correction", variance_and_mean},
};

}  // namespace

std::span<const Handler> reduction_calls() { return reduction_handlers; }

}  // namespace guardbit::emulator::replay
