#include "emulator/replay/operand_types.hpp"

#include <array>
#include <variant>

#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::replay {
namespace {

using formats::Format;
using Type = std::optional<Format>;

bool is_boolean(const Format& type) { return type == formats::b1; }

Format promoted_integers(const Format& x, const Format& y) {
  if (is_boolean(x)) return y;
  if (is_boolean(y)) return x;
  if (x.has_sign == y.has_sign) return formats::bits(x) >= formats::bits(y) ? x : y;
  const Format& with_sign = x.has_sign ? x : y;
  const Format& without = x.has_sign ? y : x;
  if (formats::bits(with_sign) > formats::bits(without)) return with_sign;
  return formats::integer(std::min(2 * formats::bits(without), 64), true);
}

Format promoted(const Format& x, const Format& y) {
  if (x == y) return x;
  if (formats::is_integer(x) && formats::is_integer(y)) return promoted_integers(x, y);
  if (formats::is_integer(x)) return y;
  if (formats::is_integer(y)) return x;
  if (formats::bits(x) != formats::bits(y)) return formats::bits(x) > formats::bits(y) ? x : y;
  return formats::fp32;
}

Type promoted(const Type& x, const Type& y) {
  if (!x) return y;
  return y ? promoted(*x, *y) : *x;
}

/// Operands of a higher kind decide, unless a lower one is of a greater class: booleans, integers,
/// floating numbers.
Type combined(const Type& higher, const Type& lower) {
  if (!higher) return lower;
  if (!lower || !formats::is_integer(*higher)) return higher;
  if (is_boolean(*higher) || !formats::is_integer(*lower)) return promoted(*higher, *lower);
  return higher;
}

}  // namespace

Operand operand_of_number(double number) {
  const auto value = static_cast<float>(number);
  return {operators::tensor_of_numbers(formats::fp32, {}, std::array{value}), true, number};
}

Operand operand(const Call& call, std::size_t position, std::string_view name) {
  const Value* value = call.find(position, name);
  if (value == nullptr) throw UnknownArguments{"argument " + std::string(name) + ": absent"};
  if (const Tensor* tensor = value->tensor()) {
    if (tensor->rank() != 0 || tensor->is_on_gpu) return {*tensor, false, 0, true};
    return {*tensor, true, operators::doubles_of(*tensor).at(0), true};
  }
  if (const auto* truth = std::get_if<bool>(&value->content))
    return {operators::tensor_of_integers(formats::b1, {}, std::array<std::int64_t, 1>{*truth}),
            true, *truth ? 1.0 : 0.0};
  if (const auto* number = std::get_if<std::int64_t>(&value->content))
    return {operators::tensor_of_integers(formats::int64, {}, std::array{*number}), true,
            static_cast<double>(*number)};
  return operand_of_number(call.number(position, name));
}

Format common_type(const std::vector<Operand>& operands) {
  Type of_tensors, of_scalars, of_numbers;
  for (const Operand& operand : operands) {
    Type& type = operand.is_of_python()       ? of_numbers
                 : operand.tensor.rank() == 0 ? of_scalars
                                              : of_tensors;
    type = promoted(type, operand.tensor.type);
  }
  return combined(of_tensors, combined(of_scalars, of_numbers)).value_or(formats::fp32);
}

Tensor read_as(const Operand& operand, const Format& common) {
  if (operand.is_number && common == formats::fp64)
    return operators::tensor_of_doubles({}, std::array{operand.number});
  const bool is_cut = !operand.is_number && operand.tensor.is_on_gpu &&
                      operators::is_working_type(common) && operand.tensor.type != common &&
                      common != formats::fp32;
  if (!is_cut) return operand.tensor;
  return operators::tensor_of_numbers(common, operand.tensor.shape,
                                      operators::numbers_of(operand.tensor));
}

}  // namespace guardbit::emulator::replay
