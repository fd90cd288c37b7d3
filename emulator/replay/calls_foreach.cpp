#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/scattered_sums.hpp"
#include "emulator/replay/calls.hpp"

// Operators over lists of tensors (aten._foreach_add_.List): each tensor is computed as by the
// operator of one tensor, but for what the kernels of lists do otherwise.
namespace guardbit::emulator::replay {
namespace {

/// The part of an argument that belongs to the tensor of that number: of a list or of a tensor of
/// numbers its element, else the argument itself.
Value part_of(const Value& argument, std::size_t number, std::size_t count) {
  if (const List* list = argument.list()) {
    if (list->size() != count) throw UnknownArguments{"lists of different lengths"};
    return (*list)[number];
  }
  return argument;
}

/// Scalars that the overload gives as one tensor of as many numbers (aten._foreach_addcdiv.Tensor).
Value number_of(const Tensor& tensor, std::size_t number) {
  return {operators::doubles_of(tensor).at(number)};
}

bool lie_alike(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return false;
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    if (a.shape[d] != 1 && a.stride[d] != b.stride[d]) return false;
  }
  return true;
}

/// Do the kernels of lists take them? Tensors of one type on the GPU without gaps, those of the
/// same number alike. Others are computed one by one.
bool is_for_lists(const Call& call) {
  const std::vector<Tensor> first = call.tensors(0, "self");
  List arguments = call.args;
  for (const auto& [name, value] : call.kwargs) arguments.push_back(value);
  for (const Value& argument : arguments) {
    const List* list = argument.list();
    if (list == nullptr || list->size() != first.size()) continue;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Tensor* tensor = (*list)[i].tensor();
      if (tensor == nullptr) continue;
      if (tensor->type != first[0].type || !tensor->is_on_gpu || !operators::has_no_gaps(*tensor) ||
          !lie_alike(*tensor, first[i]))
        return false;
    }
  }
  return true;
}

/// What the kernels of lists do otherwise: of a number for each tensor they divide by it, and do
/// not multiply by its reciprocal, and they take powers of any exponent by powf. The number is FP32
/// then, in whatever type the tensor is. Gives whether it changed the call.
bool adapt_to_lists(const std::string& name, bool has_list_of_numbers, Call& single) {
  if (!(name == "div" && has_list_of_numbers) && name != "pow") return false;
  if (single.args.size() < 2 || single.args[1].tensor() != nullptr) return false;
  const formats::Format& type = single.tensor(0, "self").type;
  if (type != formats::fp64 && !operators::is_working_type(type)) return false;
  const double number = single.number(1, "other");
  single.args[1] = Value{type == formats::fp64
                             ? operators::tensor_of_doubles({1}, std::array{number})
                             : operators::tensor_of_numbers(
                                   formats::fp32, {1}, std::array{static_cast<float>(number)})};
  return true;
}

/// A result of FP32 in the type and shape of its operand.
Tensor stored_like(const Tensor& like, const Tensor& result) {
  if (like.type == formats::fp64) {
    return operators::tensor_of_doubles(like.shape, operators::doubles_of(result));
  }
  return operators::tensor_of_numbers(like.type, like.shape, operators::numbers_of(result));
}

/// The greater and the lesser of lists come from the unit, NaNs too.
void make_unit_nans(Tensor& tensor) {
  if (!operators::is_working_type(tensor.type)) return;
  tensor = operators::tensor_of_numbers(tensor.type, tensor.shape, tensor.stride,
                                        operators::numbers_of(tensor));
}

Answer each_tensor(const Call& call, Context& context) {
  const std::string name = call.base_name().substr(std::string_view("_foreach_").size());
  const std::string op = "aten." + name + (call.is_in_place() ? "_.default" : ".default");
  const Handler* handler = find_handler(op);
  if (handler == nullptr) return unmodelled("no model of this operator");
  const std::vector<Tensor> tensors = call.tensors(0, "self");
  const bool is_of_lists = !tensors.empty() && is_for_lists(call);
  const bool has_list_of_numbers = call.args.size() > 1 && call.args[1].list() != nullptr;
  const bool has_tensor_of_numbers =
      name.starts_with("addc") && call.args.size() > 3 && call.args[3].tensor() != nullptr;
  Answer answer;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Call single;
    single.op = op;
    for (std::size_t k = 0; k < call.args.size(); ++k)
      single.args.push_back(has_tensor_of_numbers && k == 3
                                ? number_of(*call.args[3].tensor(), i)
                                : part_of(call.args[k], i, tensors.size()));
    for (const auto& [key, value] : call.kwargs)
      single.kwargs.emplace(key, part_of(value, i, tensors.size()));
    const bool is_adapted = is_of_lists && adapt_to_lists(name, has_list_of_numbers, single);
    Answer of_one = handler->answer(single, context);
    if (of_one.status != Status::exact) return of_one;
    answer.results.push_back(std::move(of_one.results.at(0)));
    Tensor& result = *answer.results.back();
    if (is_adapted) result = stored_like(tensors[i], result);
    if (is_of_lists && (name == "maximum" || name == "minimum")) make_unit_nans(result);
    answer.plan = "each: " + of_one.plan;
  }
  if (call.is_in_place()) answer.changed = {"self"};
  return answer;
}

/// Has it zeros of both signs? Which of them is the greatest then is left open.
bool has_both_zeros(const Tensor& tensor) {
  bool has_positive = false, has_negative = false;
  for (const float x : operators::numbers_of(tensor)) {
    has_positive = has_positive || (x == 0 && !std::signbit(x));
    has_negative = has_negative || (x == 0 && std::signbit(x));
  }
  return has_positive && has_negative;
}

Answer greatest(const Call& call, Context& context) {
  for (const Tensor& tensor : call.tensors(0, "self")) {
    if (has_both_zeros(tensor))
      return unmodelled("the greatest of tensors with zeros of both signs");
  }
  return each_tensor(call, context);
}

Answer norms(const Call& call, Context& context) {
  const std::vector<Tensor> tensors = call.tensors(0, "self");
  const double order = call.number(1, "ord", 2);
  const bool is_of_lists =
      !tensors.empty() && is_for_lists(call) &&
      (order == 1 || order == 2 || order == std::numeric_limits<double>::infinity());
  const Handler* of_one = find_handler("aten.linalg_vector_norm.default");
  Answer answer = computed({}, "chunks of 65536, 512 threads with 4 accumulators");
  for (const Tensor& tensor : tensors) {
    if (tensor.type != formats::fp64) floating(tensor);
    if (is_of_lists) {
      answer.results.emplace_back(operators::norm_of_list(tensor, order, call.dtype(2, "dtype")));
      continue;
    }
    Call single;
    single.op = "aten.linalg_vector_norm.default";
    single.args = {Value{tensor}, Value{order}};
    if (const Value* type = call.find(2, "dtype")) single.kwargs.emplace("dtype", *type);
    Answer norm = of_one->answer(single, context);
    if (norm.status != Status::exact) return norm;
    answer.results.push_back(std::move(norm.results.at(0)));
    answer.plan = "each: " + norm.plan;
  }
  return answer;
}

constexpr std::array foreach_handlers = {
    Handler{"aten._foreach_abs", each_tensor},
    Handler{"aten._foreach_abs_", each_tensor},
    Handler{"aten._foreach_add", each_tensor},
    Handler{"aten._foreach_add_", each_tensor},
    Handler{"aten._foreach_addcdiv", each_tensor},
    Handler{"aten._foreach_addcdiv_", each_tensor},
    Handler{"aten._foreach_addcmul", each_tensor},
    Handler{"aten._foreach_addcmul_", each_tensor},
    Handler{"aten._foreach_clamp_max", each_tensor},
    Handler{"aten._foreach_clamp_max_", each_tensor},
    Handler{"aten._foreach_clamp_min", each_tensor},
    Handler{"aten._foreach_clamp_min_", each_tensor},
    Handler{"aten._foreach_copy", moves},
    Handler{"aten._foreach_copy_", moves},
    Handler{"aten._foreach_div", each_tensor},
    Handler{"aten._foreach_div_", each_tensor},
    Handler{"aten._foreach_exp", each_tensor},
    Handler{"aten._foreach_exp_", each_tensor},
    Handler{"aten._foreach_lerp", each_tensor},
    Handler{"aten._foreach_lerp_", each_tensor},
    Handler{"aten._foreach_log", each_tensor},
    Handler{"aten._foreach_log_", each_tensor},
    Handler{"aten._foreach_max", greatest},
    Handler{"aten._foreach_maximum", each_tensor},
    Handler{"aten._foreach_maximum_", each_tensor},
    Handler{"aten._foreach_minimum", each_tensor},
    Handler{"aten._foreach_minimum_", each_tensor},
    Handler{"aten._foreach_mul", each_tensor},
    Handler{"aten._foreach_mul_", each_tensor},
    Handler{"aten._foreach_neg", each_tensor},
    Handler{"aten._foreach_neg_", each_tensor},
    Handler{"aten._foreach_norm", norms},
    Handler{"aten._foreach_pow", each_tensor},
    Handler{"aten._foreach_pow_", each_tensor},
    Handler{"aten._foreach_reciprocal", each_tensor},
    Handler{"aten._foreach_reciprocal_", each_tensor},
    Handler{"aten._foreach_sigmoid", each_tensor},
    Handler{"aten._foreach_sigmoid_", each_tensor},
    Handler{"aten._foreach_sign", each_tensor},
    Handler{"aten._foreach_sign_", each_tensor},
    Handler{"aten._foreach_sqrt", each_tensor},
    Handler{"aten._foreach_sqrt_", each_tensor},
    Handler{"aten._foreach_rsqrt", each_tensor},
    Handler{"aten._foreach_rsqrt_", each_tensor},
    Handler{"aten._foreach_sub", each_tensor},
    Handler{"aten._foreach_sub_", each_tensor},
    Handler{"aten._foreach_tanh", each_tensor},
    Handler{"aten._foreach_tanh_", each_tensor},
    Handler{"aten._foreach_zero_", moves},
};

}  // namespace

std::span<const Handler> foreach_calls() { return foreach_handlers; }

}  // namespace guardbit::emulator::replay
