#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "emulator/operators/broadcast.hpp"
#include "emulator/operators/integers.hpp"
#include "emulator/operators/pointwise/pointwise.hpp"
#include "emulator/operators/pointwise/pointwise_doubles.hpp"
#include "emulator/replay/calls.hpp"
#include "emulator/replay/operand_types.hpp"

// Operators that compute each element of their result from the elements at its place.
namespace guardbit::emulator::replay {
namespace {

using formats::Format;
using operators::Parameters;

/// Numbers that a call gives besides tensors, before a kernel holds them in its working type.
using Numbers = operators::DoubleParameters;

/// A change in place stores in the type of what it changes.
Format stored_type(const Call& call, const Format& computed) {
  if (!call.is_in_place()) return computed;
  return call.tensor(0, "self").type;
}

Answer with_integers(const Call& call, std::string_view name, const std::vector<Operand>& operands,
                     const Format& common) {
  const operators::IntegerOperator* op = operators::find_integer_operator(name);
  if (op == nullptr || static_cast<std::size_t>(op->operands) > operands.size())
    return unmodelled("no model of this operator for integers");
  std::vector<const Tensor*> tensors;
  for (int i = 0; i < op->operands; ++i)
    tensors.push_back(&operands[static_cast<std::size_t>(i)].tensor);
  if (!operators::broadcast_shape(tensors)) return unmodelled("shapes that do not fit");
  const Format type = op->is_boolean ? formats::b1 : common;
  return computed({operators::run_integers(*op, tensors, stored_type(call, type))},
                  "integers: exact");
}

std::vector<const Tensor*> pointers_to(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

/// What a kernel of `count` operands reads of them; UnknownArguments where they do not fit.
std::vector<Tensor> read_operands(const std::vector<Operand>& operands, int count,
                                  const Format& common) {
  if (static_cast<std::size_t>(count) != operands.size())
    throw UnknownArguments{"not modelled with so many operands"};
  std::vector<Tensor> read;
  for (const Operand& operand : operands) read.push_back(read_as(operand, common));
  if (!operators::broadcast_shape(pointers_to(read)))
    throw UnknownArguments{"shapes that do not fit"};
  return read;
}

Answer with_doubles(const Call& call, Context& context, std::string_view name,
                    const std::vector<Operand>& operands, const Numbers& numbers) {
  const operators::DoubleOperator* op = operators::find_double_operator(name);
  if (op == nullptr) return unmodelled("no model for fp64");
  const std::vector<Tensor> read = read_operands(operands, op->operands, formats::fp64);
  const Format type = op->is_boolean ? formats::b1 : formats::fp64;
  if (!(stored_type(call, type) == type)) return unmodelled("FP64 stored in another type");
  return computed({operators::run_doubles(*op, pointers_to(read), numbers, type, context.threads)},
                  std::string(op->expression) + " in FP64");
}

/// One of the table, over operands that are converted to one type.
Answer with_numbers(const Call& call, Context& context, std::string_view name,
                    const std::vector<Operand>& operands, const Numbers& numbers,
                    const Format& common) {
  if (common == formats::fp64) return with_doubles(call, context, name, operands, numbers);
  const operators::PointwiseOperator* op = operators::find_pointwise(name);
  if (op == nullptr) return unmodelled("no model of this operator");
  if (!operators::is_working_type(common))
    return unmodelled("no model for " + formats::name_of(common));
  const std::vector<Tensor> read = read_operands(operands, op->operands, common);
  Parameters parameters;
  std::ranges::transform(numbers, parameters.numbers.begin(),
                         [](double number) { return static_cast<float>(number); });
  parameters.type = common;
  const Format type = stored_type(call, op->is_boolean ? formats::b1 : common);
  return computed(
      {operators::run_pointwise(*op, pointers_to(read), parameters, type, context.threads)},
      std::string(op->expression));
}

std::vector<Operand> one(const Call& call) { return {operand(call, 0, "self")}; }
std::vector<Operand> two(const Call& call) {
  return {operand(call, 0, "self"), operand(call, 1, "other")};
}

/// Functions of integers give FP32.
Format floating_type(const std::vector<Operand>& operands) {
  const Format common = common_type(operands);
  return formats::is_integer(common) ? formats::fp32 : common;
}

/// Operators that integers have, too: abs, neg, eq, maximum.
Answer of_any_numbers(const Call& call, Context& context, std::string_view name,
                      const std::vector<Operand>& operands) {
  const Format common = common_type(operands);
  if (formats::is_integer(common)) return with_integers(call, name, operands, common);
  return with_numbers(call, context, name, operands, {}, common);
}

Answer unary(const Call& call, Context& context) {
  const auto operands = one(call);
  std::string name = call.base_name();
  // Of booleans each is the other one.
  if (name == "bitwise_not" && operands[0].tensor.type == formats::b1) name = "logical_not";
  if (name == "sgn") name = "sign";
  if (name == "relu" && formats::is_integer(operands[0].tensor.type))
    return with_integers(
        call, "maximum",
        {operands[0],
         {operators::tensor_of_integers(formats::int64, {}, std::array<std::int64_t, 1>{0}), true}},
        operands[0].tensor.type);
  if (formats::is_integer(operands[0].tensor.type) &&
      operators::find_integer_operator(name) != nullptr)
    return of_any_numbers(call, context, name, operands);
  return with_numbers(call, context, name, operands, {}, floating_type(operands));
}

/// Of what is as it is where it is an integer: floor, round.
Answer to_integer(const Call& call, Context& context) {
  const auto operands = one(call);
  if (formats::is_integer(operands[0].tensor.type)) return moves_data();
  if (const std::int64_t decimals = call.integer(1, "decimals", 0); decimals != 0) {
    if (decimals < 0) return unmodelled("rounding to tens");
    if (common_type(operands) != formats::fp32 && common_type(operands) != formats::fp64)
      return unmodelled("rounding to decimals in 16 bits");
    return with_numbers(call, context, "round_decimals", operands,
                        {std::pow(10.0, static_cast<double>(decimals))}, common_type(operands));
  }
  return unary(call, context);
}

Answer binary(const Call& call, Context& context) {
  return of_any_numbers(call, context, call.base_name(), two(call));
}

/// A number of Python as the kernels of comparisons, powers, remainders and functions of two
/// numbers have it: in the tensors' type.
Operand stored_number(const Operand& number, const Format& common) {
  if (!number.is_number || !operators::is_working_type(common)) return number;
  return {operators::tensor_of_numbers(common, {}, operators::numbers_of(number.tensor)), true,
          number.number, number.is_tensor};
}

Answer of_stored_number(const Call& call, Context& context) {
  auto operands = two(call);
  operands[1] = stored_number(operands[1], common_type(operands));
  return of_any_numbers(call, context, call.base_name(), operands);
}

Answer floating_binary(const Call& call, Context& context) {
  auto operands = two(call);
  operands[1] = stored_number(operands[1], common_type(operands));
  return with_numbers(call, context, call.base_name(), operands, {}, floating_type(operands));
}

Answer sum_of(const Call& call, Context& context, std::string_view name,
              std::vector<Operand> operands) {
  const Format common = common_type(operands);
  if (formats::is_integer(common)) {
    operands.push_back(
        {operators::tensor_of_integers(formats::int64, {}, std::array{call.integer(2, "alpha", 1)}),
         true});
    return with_integers(call, name, operands, common);
  }
  return with_numbers(call, context, name, operands, {call.number(2, "alpha", 1)}, common);
}

Answer add(const Call& call, Context& context) {
  return sum_of(call, context, call.base_name(), two(call));
}
Answer reversed_sub(const Call& call, Context& context) {
  auto operands = two(call);
  std::swap(operands[0], operands[1]);
  return sum_of(call, context, "sub", operands);
}

Answer div(const Call& call, Context& context) {
  auto operands = two(call);
  const std::string mode = call.text(2, "rounding_mode", "");
  if (!mode.empty() && mode != "trunc" && mode != "floor")
    return unmodelled("an unknown rounding mode");
  const Format common = common_type(operands);
  if (formats::is_integer(common) && !mode.empty())
    return mode == "floor" ? with_integers(call, "div_floor", operands, common)
                           : unmodelled("integers cut by division");
  const std::string ending = mode.empty() ? "" : "_" + mode;
  if (!operands[1].is_number)
    return with_numbers(call, context, "div" + ending, operands, {}, floating_type(operands));
  const Format type = floating_type(operands);
  // The kernels multiply by the reciprocal. That of plain division is formed in FP64.
  const double divisor = operands[1].number;
  const double inverse =
      mode.empty() || type == formats::fp64 ? 1 / divisor : double{1 / static_cast<float>(divisor)};
  operands.pop_back();
  return with_numbers(call, context, "div_by_number" + ending, operands, {inverse, divisor}, type);
}

Answer floor_divide(const Call& call, Context& context) {
  Call as_div = call;
  as_div.kwargs["rounding_mode"] = Value{std::string("floor")};
  return div(as_div, context);
}

/// The exponents that have kernels of their own.
std::string_view kernel_of_exponent(double exponent) {
  if (exponent == 2) return "pow_2";
  if (exponent == 3) return "pow_3";
  if (exponent == -2) return "pow_minus_2";
  if (exponent == 0.5) return "sqrt";
  if (exponent == -0.5) return "rsqrt";
  if (exponent == -1) return "reciprocal";
  return "";
}

Answer pow(const Call& call, Context& context) {
  auto operands = two(call);
  const Format common = common_type(operands);
  if (formats::is_integer(common)) return unmodelled("powers of integers");
  if (operands[1].is_of_python()) {
    const double exponent = operands[1].number;
    if (exponent == 1) return moves_data();
    if (const auto kernel = kernel_of_exponent(exponent); !kernel.empty())
      return with_numbers(call, context, kernel, {operands[0]}, {}, common);
  }
  for (Operand& operand : operands) operand = stored_number(operand, common);
  return with_numbers(call, context, "pow", operands, {}, common);
}

Answer lerp(const Call& call, Context& context) {
  std::vector<Operand> operands = {operand(call, 0, "self"), operand(call, 1, "end")};
  const Operand weight = operand(call, 2, "weight");
  if (weight.is_number)
    return with_numbers(call, context, "lerp_by_number", operands, {weight.number},
                        common_type(operands));
  operands.push_back(weight);
  return with_numbers(call, context, "lerp", operands, {}, common_type(operands));
}

Answer add_scaled(const Call& call, Context& context) {
  const std::vector<Operand> operands = {operand(call, 0, "self"), operand(call, 1, "tensor1"),
                                         operand(call, 2, "tensor2")};
  return with_numbers(call, context, call.base_name(), operands, {call.number(3, "value", 1)},
                      common_type(operands));
}

constexpr double infinity = std::numeric_limits<double>::infinity();

Answer clamp(const Call& call, Context& context) {
  const std::string name = call.base_name();
  const bool is_upper = name == "clamp_max";
  const std::size_t low_at = is_upper ? 9 : 1, high_at = is_upper ? 1 : 2;
  const bool has_low = call.find(low_at, "min") != nullptr;
  const bool has_high = name != "clamp_min" && call.find(high_at, "max") != nullptr;
  std::vector<Operand> operands = one(call);
  if (has_low) operands.push_back(operand(call, low_at, "min"));
  if (has_high) operands.push_back(operand(call, high_at, "max"));
  const Format common = common_type(operands);
  if (formats::is_integer(common)) {
    if (operands.size() == 3) return with_integers(call, "clamp", operands, common);
    return with_integers(call, has_low ? "maximum" : "minimum", operands, common);
  }
  const bool by_numbers = std::all_of(operands.begin() + 1, operands.end(),
                                      [](const Operand& bound) { return bound.is_of_python(); });
  if (!by_numbers) {
    const std::string_view kernel = operands.size() == 3 ? "clamp_by_tensors"
                                    : has_low            ? "maximum"
                                                         : "minimum";
    return with_numbers(call, context, kernel, operands, {}, common);
  }
  const Numbers bounds = {has_low ? call.number(low_at, "min") : -infinity,
                          has_high ? call.number(high_at, "max") : infinity};
  return with_numbers(call, context, "clamp", {operands[0]}, bounds, common);
}

Answer where(const Call& call, Context& context) {
  const std::vector<Operand> choices = {operand(call, 1, "self"), operand(call, 2, "other")};
  const Format common = common_type(choices);
  const std::vector<Operand> operands = {operand(call, 0, "condition"), choices[0], choices[1]};
  if (formats::is_integer(common)) return with_integers(call, "where", operands, common);
  return with_numbers(call, context, "where", operands, {}, common);
}

Answer masked_fill(const Call& call, Context& context) {
  std::vector<Operand> operands = {operand(call, 0, "self"), operand(call, 1, "mask")};
  const Format type = operands[0].tensor.type;
  const Operand value = operand(call, 2, "value");
  if (formats::is_integer(type)) {
    operands.push_back(value);
    return with_integers(call, "masked_fill", operands, type);
  }
  const double number = value.is_number ? value.number : operators::doubles_of(value.tensor).at(0);
  return with_numbers(call, context, "masked_fill", operands, {number}, type);
}

/// The number of a parameter as kernels of FP32 have it, and as some have it: in the tensor's type.
double parameter(const Call& call, std::size_t position, std::string_view name, double absent) {
  return call.number(position, name, absent);
}
double stored_parameter(const Call& call, std::size_t position, std::string_view name,
                        double absent) {
  const double number = parameter(call, position, name, absent);
  const Format& type = call.tensor(0, "self").type;
  return type == formats::fp64 ? number : operators::rounded_to(type, static_cast<float>(number));
}

Answer with_parameters(const Call& call, Context& context, std::string_view name,
                       const Numbers& numbers) {
  const auto operands = one(call);
  return with_numbers(call, context, name, operands, numbers, common_type(operands));
}

/// Of order 1; digamma has a name of its own.
Answer polygamma(const Call& call, Context& context) {
  const std::vector<Operand> operands = {operand(call, 1, "self")};
  if (call.integer(0, "n") != 1) return unmodelled("polygamma of another order than 1");
  return with_numbers(call, context, "trigamma", operands, {}, common_type(operands));
}

Answer gelu(const Call& call, Context& context) {
  const bool by_tanh = call.text(1, "approximate", "none") == "tanh";
  return with_parameters(call, context, by_tanh ? "gelu_tanh" : "gelu", {});
}
Answer softplus(const Call& call, Context& context) {
  return with_parameters(call, context, "softplus",
                         {parameter(call, 1, "beta", 1), parameter(call, 2, "threshold", 20)});
}
/// The product of two is one of the working type.
Numbers numbers_of_elu(const Call& call) {
  const double alpha = parameter(call, 1, "alpha", 1), scale = parameter(call, 2, "scale", 1);
  const double product = call.tensor(0, "self").type == formats::fp64
                             ? alpha * scale
                             : double{static_cast<float>(alpha) * static_cast<float>(scale)};
  return {product, scale, parameter(call, 3, "input_scale", 1)};
}
Answer elu(const Call& call, Context& context) {
  return with_parameters(call, context, "elu", numbers_of_elu(call));
}
/// PyTorch calls elu for it.
Answer celu(const Call& call, Context& context) {
  const double alpha = call.number(1, "alpha", 1);
  return with_parameters(call, context, "elu", {alpha, 1, 1 / alpha});
}
Answer leaky_relu(const Call& call, Context& context) {
  return with_parameters(call, context, "leaky_relu", {parameter(call, 1, "negative_slope", 0.01)});
}
Answer hardtanh(const Call& call, Context& context) {
  return with_parameters(call, context, "clamp",
                         {parameter(call, 1, "min_val", -1), parameter(call, 2, "max_val", 1)});
}
Answer threshold(const Call& call, Context& context) {
  return with_parameters(
      call, context, "threshold",
      {stored_parameter(call, 1, "threshold", 0), stored_parameter(call, 2, "value", 0)});
}
Answer shrink(const Call& call, Context& context) {
  return with_parameters(call, context, call.base_name(),
                         {stored_parameter(call, 1, "lambd", 0.5)});
}
Answer log_sigmoid(const Call& call, Context& context) {
  Answer answer = with_parameters(call, context, "log_sigmoid", {});
  // The second result is a buffer that only the CPU fills.
  if (answer.status == Status::exact)
    answer.results.emplace_back(operators::tensor_of_numbers(call.tensor(0, "self").type, {0}, {}));
  return answer;
}

/// The largest number of a type.
double largest(const Format& type) {
  if (type == formats::fp64) return std::numeric_limits<double>::max();
  return type == formats::fp16 ? 65504.0F : type == formats::bf16 ? 0x1.fep127F : 0x1.fffffep127F;
}

Answer nan_to_num(const Call& call, Context& context) {
  const double most = largest(call.tensor(0, "self").type);
  return with_parameters(call, context, "nan_to_num",
                         {parameter(call, 1, "nan", 0), parameter(call, 2, "posinf", most),
                          parameter(call, 3, "neginf", -most)});
}

Answer gradient(const Call& call, Context& context, std::string_view name, std::size_t second = 1,
                const Numbers& numbers = {}) {
  const std::vector<Operand> operands = {operand(call, 0, "grad_output"),
                                         operand(call, second, "self")};
  return with_numbers(call, context, name, operands, numbers, common_type(operands));
}

Answer plain_gradient(const Call& call, Context& context) {
  return gradient(call, context, call.base_name());
}
Answer gelu_backward(const Call& call, Context& context) {
  const bool by_tanh = call.text(2, "approximate", "none") == "tanh";
  return gradient(call, context, by_tanh ? "gelu_backward_tanh" : "gelu_backward");
}
Answer softplus_backward(const Call& call, Context& context) {
  return gradient(call, context, "softplus_backward", 1,
                  {parameter(call, 2, "beta", 1), parameter(call, 3, "threshold", 20)});
}
Answer threshold_backward(const Call& call, Context& context) {
  return gradient(call, context, "threshold_backward", 1,
                  {stored_parameter(call, 2, "threshold", 0)});
}
Answer leaky_relu_backward(const Call& call, Context& context) {
  return gradient(call, context, "leaky_relu_backward", 1,
                  {parameter(call, 2, "negative_slope", 0.01)});
}
Answer hardtanh_backward(const Call& call, Context& context) {
  return gradient(call, context, "hardtanh_backward", 1,
                  {parameter(call, 2, "min_val", -1), parameter(call, 3, "max_val", 1)});
}
Answer shrink_backward(const Call& call, Context& context) {
  return gradient(call, context, "hardshrink_backward", 1,
                  {stored_parameter(call, 2, "lambd", 0.5)});
}
Answer elu_backward(const Call& call, Context& context) {
  const bool of_result = call.boolean(4, "is_result", false);
  return gradient(call, context, of_result ? "elu_backward_result" : "elu_backward", 5,
                  numbers_of_elu(call));
}

constexpr std::array unary_names = {
    "abs",   "acos",        "acosh",       "asin",       "asinh",       "atan",    "atanh",
    "cos",   "cosh",        "digamma",     "erf",        "erfc",        "erfinv",  "exp",
    "exp2",  "expm1",       "frac",        "isfinite",   "isinf",       "isnan",   "lgamma",
    "log",   "log10",       "log1p",       "log2",       "logical_not", "neg",     "reciprocal",
    "rsqrt", "hardswish",   "hardsigmoid", "mish",       "relu",        "sigmoid", "sign",
    "sgn",   "signbit",     "silu",        "sin",        "sinh",        "sqrt",    "tan",
    "tanh",  "bitwise_not", "deg2rad",     "rad2deg",    "sinc",        "angle",   "special_entr",
    "i0",    "special_i0e", "special_i1",  "special_i1e"};
constexpr std::array binary_names = {"heaviside",   "bitwise_and", "bitwise_or",  "bitwise_xor",
                                     "fmax",        "fmin",        "logical_and", "logical_or",
                                     "logical_xor", "maximum",     "minimum",     "mul"};
constexpr std::array floating_binary_names = {"atan2", "copysign",   "hypot",          "logaddexp",
                                              "xlogy", "logaddexp2", "special_xlog1py"};
constexpr std::array gradient_names = {
    "sigmoid_backward",   "tanh_backward",        "silu_backward",       "mish_backward",
    "hardswish_backward", "hardsigmoid_backward", "log_sigmoid_backward"};

struct Named {
  std::string_view name;
  Answer (*answer)(const Call&, Context&);
};
constexpr std::array others = {
    Named{"eq", of_stored_number},
    Named{"ne", of_stored_number},
    Named{"lt", of_stored_number},
    Named{"le", of_stored_number},
    Named{"gt", of_stored_number},
    Named{"ge", of_stored_number},
    Named{"fmod", of_stored_number},
    Named{"remainder", of_stored_number},
    Named{"ceil", to_integer},
    Named{"floor", to_integer},
    Named{"round", to_integer},
    Named{"trunc", to_integer},
    Named{"add", add},
    Named{"sub", add},
    Named{"rsub", reversed_sub},
    Named{"div", div},
    Named{"floor_divide", floor_divide},
    Named{"pow", pow},
    Named{"lerp", lerp},
    Named{"addcmul", add_scaled},
    Named{"addcdiv", add_scaled},
    Named{"clamp", clamp},
    Named{"clamp_min", clamp},
    Named{"clamp_max", clamp},
    Named{"where", where},
    Named{"masked_fill", masked_fill},
    Named{"polygamma", polygamma},
    Named{"gelu", gelu},
    Named{"softplus", softplus},
    Named{"elu", elu},
    Named{"celu", celu},
    Named{"leaky_relu", leaky_relu},
    Named{"hardtanh", hardtanh},
    Named{"threshold", threshold},
    Named{"hardshrink", shrink},
    Named{"softshrink", shrink},
    Named{"log_sigmoid_forward", log_sigmoid},
    Named{"nan_to_num", nan_to_num},
    Named{"gelu_backward", gelu_backward},
    Named{"softplus_backward", softplus_backward},
    Named{"threshold_backward", threshold_backward},
    Named{"leaky_relu_backward", leaky_relu_backward},
    Named{"hardtanh_backward", hardtanh_backward},
    Named{"hardshrink_backward", shrink_backward},
    Named{"softshrink_backward", shrink_backward},
    Named{"elu_backward", elu_backward},
};

/// Each under its name and, as aten has it, the same with an underscore: in place.
void add_both(std::vector<std::string>& names, std::vector<Named>& all, std::string_view name,
              Answer (*answer)(const Call&, Context&)) {
  names.push_back("aten." + std::string(name));
  all.push_back({"", answer});
  names.push_back("aten." + std::string(name) + "_");
  all.push_back({"", answer});
}

}  // namespace

std::span<const Handler> pointwise_calls() {
  static const auto names_and_handlers = [] {
    std::vector<std::string> names;
    std::vector<Named> all;
    for (const char* name : unary_names) add_both(names, all, name, unary);
    for (const char* name : binary_names) add_both(names, all, name, binary);
    for (const char* name : floating_binary_names) add_both(names, all, name, floating_binary);
    for (const char* name : gradient_names) add_both(names, all, name, plain_gradient);
    for (const Named& other : others) add_both(names, all, other.name, other.answer);
    return std::pair(names, all);
  }();
  static const auto handlers = [] {
    std::vector<Handler> list;
    for (std::size_t i = 0; i < names_and_handlers.first.size(); ++i)
      list.push_back({names_and_handlers.first[i], names_and_handlers.second[i].answer});
    return list;
  }();
  return handlers;
}

}  // namespace guardbit::emulator::replay
