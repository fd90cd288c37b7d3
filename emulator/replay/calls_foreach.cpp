#include <algorithm>
#include <string>

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

/// What the kernels of lists do otherwise: those with a number for each tensor divide by it, and do
/// not multiply by its reciprocal.
void adapt_to_lists(const std::string& name, Call& single) {
  if (name != "div" || single.args.size() < 2 || single.args[1].tensor() != nullptr) return;
  const double divisor = single.number(1, "other");
  Tensor tensor = single.tensor(0, "self").type == formats::fp64
                      ? operators::tensor_of_doubles({}, std::array{divisor})
                      : operators::tensor_of_numbers(formats::fp32, {},
                                                     std::array{static_cast<float>(divisor)});
  // As a number of Python it takes no part in the choice of types.
  tensor.is_on_gpu = false;
  single.args[1] = Value{std::move(tensor)};
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
    if (call.op.ends_with(".ScalarList")) adapt_to_lists(name, single);
    Answer of_one = handler->answer(single, context);
    if (of_one.status != Status::exact) return of_one;
    answer.results.push_back(std::move(of_one.results.at(0)));
    if (name == "maximum" || name == "minimum") make_unit_nans(*answer.results.back());
    answer.plan = "each: " + of_one.plan;
  }
  if (call.is_in_place()) answer.changed = {"self"};
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
    Handler{"aten._foreach_maximum", each_tensor},
    Handler{"aten._foreach_maximum_", each_tensor},
    Handler{"aten._foreach_minimum", each_tensor},
    Handler{"aten._foreach_minimum_", each_tensor},
    Handler{"aten._foreach_mul", each_tensor},
    Handler{"aten._foreach_mul_", each_tensor},
    Handler{"aten._foreach_neg", each_tensor},
    Handler{"aten._foreach_neg_", each_tensor},
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
