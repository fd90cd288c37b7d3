#include "emulator/replay/call.hpp"

#include <array>
#include <limits>
#include <utility>

#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::replay {
namespace {

void add_tensors(const Value& value, std::vector<const Tensor*>& all) {
  if (const Tensor* tensor = value.tensor()) all.push_back(tensor);
  if (const List* list = value.list()) {
    for (const Value& inner : *list) add_tensors(inner, all);
  }
}

[[noreturn]] void refuse(std::string_view name, std::string_view what) {
  throw UnknownArguments{"argument " + std::string(name) + ": " + std::string(what)};
}

const Value& require(const Call& call, std::size_t position, std::string_view name) {
  const Value* value = call.find(position, name);
  if (value == nullptr) refuse(name, "absent");
  return *value;
}

std::optional<double> number_in(const Value& value) {
  if (const auto* number = std::get_if<double>(&value.content)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value.content))
    return static_cast<double>(*number);
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? 1.0 : 0.0;
  // What JSON has no numbers for may be written as a text.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (const auto* text = std::get_if<std::string>(&value.content)) {
    if (*text == "inf") return infinity;
    if (*text == "-inf") return -infinity;
    if (*text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

std::optional<std::int64_t> integer_in(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) return *number;
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? 1 : 0;
  return std::nullopt;
}

}  // namespace

std::vector<const Tensor*> tensors_of(const Value& value) {
  std::vector<const Tensor*> all;
  add_tensors(value, all);
  return all;
}

std::string Call::base_name() const {
  std::string name = op.substr(op.find('.') + 1);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.pop_back();
  return name;
}

const Value* Call::find(std::size_t position, std::string_view name) const {
  const Value* value = nullptr;
  if (const auto found = kwargs.find(std::string(name)); found != kwargs.end()) {
    value = &found->second;
  } else if (position < args.size()) {
    value = &args[position];
  }
  return value == nullptr || value->is_none() ? nullptr : value;
}

const Tensor& Call::tensor(std::size_t position, std::string_view name) const {
  const Tensor* tensor = require(*this, position, name).tensor();
  if (tensor == nullptr) refuse(name, "not a tensor");
  return *tensor;
}

const Tensor* Call::optional_tensor(std::size_t position, std::string_view name) const {
  return find(position, name) == nullptr ? nullptr : &tensor(position, name);
}

std::vector<Tensor> Call::tensors(std::size_t position, std::string_view name) const {
  const List* list = require(*this, position, name).list();
  if (list == nullptr) refuse(name, "not a list of tensors");
  std::vector<Tensor> all;
  all.reserve(list->size());
  for (const Value& value : *list) {
    if (value.tensor() == nullptr) refuse(name, "not a list of tensors");
    all.push_back(*value.tensor());
  }
  return all;
}

double Call::number(std::size_t position, std::string_view name) const {
  const auto number = number_in(require(*this, position, name));
  if (!number) refuse(name, "not a number");
  return *number;
}
double Call::number(std::size_t position, std::string_view name, double absent) const {
  return find(position, name) == nullptr ? absent : number(position, name);
}

std::int64_t Call::integer(std::size_t position, std::string_view name) const {
  const auto number = integer_in(require(*this, position, name));
  if (!number) refuse(name, "not an integer");
  return *number;
}
std::int64_t Call::integer(std::size_t position, std::string_view name, std::int64_t absent) const {
  return find(position, name) == nullptr ? absent : integer(position, name);
}

bool Call::boolean(std::size_t position, std::string_view name, bool absent) const {
  const Value* value = find(position, name);
  if (value == nullptr) return absent;
  const auto* truth = std::get_if<bool>(&value->content);
  if (truth == nullptr) refuse(name, "not a boolean");
  return *truth;
}

Dimensions Call::integers(std::size_t position, std::string_view name) const {
  const Value& value = require(*this, position, name);
  if (const auto single = integer_in(value)) return {*single};
  if (value.list() == nullptr) refuse(name, "not a list of integers");
  Dimensions all;
  for (const Value& inner : *value.list()) {
    const auto number = integer_in(inner);
    if (!number) refuse(name, "not a list of integers");
    all.push_back(*number);
  }
  return all;
}
Dimensions Call::integers(std::size_t position, std::string_view name, Dimensions absent) const {
  return find(position, name) == nullptr ? std::move(absent) : integers(position, name);
}

std::vector<double> Call::numbers(std::size_t position, std::string_view name) const {
  const Value& value = require(*this, position, name);
  if (const auto single = number_in(value)) return {*single};
  if (value.list() == nullptr) refuse(name, "not a list of numbers");
  std::vector<double> all;
  for (const Value& inner : *value.list()) {
    const auto number = number_in(inner);
    if (!number) refuse(name, "not a list of numbers");
    all.push_back(*number);
  }
  return all;
}

std::string Call::text(std::size_t position, std::string_view name, std::string_view absent) const {
  const Value* value = find(position, name);
  if (value == nullptr) return std::string(absent);
  const auto* text = std::get_if<std::string>(&value->content);
  if (text == nullptr) refuse(name, "not a text");
  return *text;
}

const Tensor* Call::written_tensor(std::string_view name) const {
  const auto found = written.find(name);
  if (found == written.end()) return nullptr;
  const std::vector<const Tensor*> tensors = tensors_of(found->second);
  return tensors.size() == 1 ? tensors.front() : nullptr;
}

std::optional<formats::Format> Call::dtype(std::size_t position, std::string_view name) const {
  if (find(position, name) == nullptr) return std::nullopt;
  const std::string word = text(position, name, "");
  const auto type = type_of_torch_name(word);
  if (!type) refuse(name, "a type without a model");
  return type;
}

std::optional<formats::Format> type_of_torch_name(std::string_view name) {
  struct Named {
    std::string_view name;
    formats::Format type;
  };
  constexpr std::array types = {
      Named{"torch.float64", formats::fp64},       Named{"torch.float32", formats::fp32},
      Named{"torch.float16", formats::fp16},       Named{"torch.bfloat16", formats::bf16},
      Named{"torch.float8_e4m3fn", formats::e4m3}, Named{"torch.float8_e5m2", formats::e5m2},
      Named{"torch.int64", formats::int64},        Named{"torch.int32", formats::int32},
      Named{"torch.int16", formats::int16},        Named{"torch.int8", formats::int8},
      Named{"torch.uint8", formats::uint8},        Named{"torch.bool", formats::b1},
  };
  for (const Named& entry : types) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

}  // namespace guardbit::emulator::replay
