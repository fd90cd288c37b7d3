#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "emulator/operators/operator_tensor.hpp"

// A call of an operator, as a recording holds it or a running program makes it.
namespace guardbit::emulator::replay {

using operators::Dimensions;
using operators::Tensor;

struct Value;
using List = std::vector<Value>;

/// An argument or a result.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Tensor, List> content;

  bool is_none() const { return std::holds_alternative<std::monostate>(content); }
  const Tensor* tensor() const { return std::get_if<Tensor>(&content); }
  const List* list() const { return std::get_if<List>(&content); }
};

/// The tensors of a value, those of lists in order.
std::vector<const Tensor*> tensors_of(const Value& value);

struct Call {
  /// as in aten.add.Tensor
  std::string op;
  List args;
  std::map<std::string, Value> kwargs;
  /// what the recording has as its result
  Value out;
  /// What the call left in arguments that are not among its results, by their names, where the
  /// recording has it.
  std::map<std::string, Value, std::less<>> written;
  /// of calls too large to keep: the rows and columns that `out` has
  std::optional<Dimensions> sampled_rows, sampled_columns;
  /// The CPU seems to have computed it, in a recording that names no devices.
  bool is_likely_of_cpu = false;
  /// of the CUDA generator, where the recording has it
  std::optional<std::uint64_t> seed, philox_offset;
  /// the library's settings that are others from here on, by name
  std::map<std::string, std::string> changed_flags;

  /// The operator's name alone: add of aten.add_.Tensor.
  std::string base_name() const;
  /// Its name ends with an underscore.
  bool is_in_place() const { return op.find("_.") != std::string::npos; }

  /// The argument of that position or name; null where it is absent, None too.
  const Value* find(std::size_t position, std::string_view name) const;

  // The same by type. UnknownArguments where it is absent (without a default) or of another type.
  const Tensor& tensor(std::size_t position, std::string_view name) const;
  const Tensor* optional_tensor(std::size_t position, std::string_view name) const;
  std::vector<Tensor> tensors(std::size_t position, std::string_view name) const;
  /// integers and booleans, too
  double number(std::size_t position, std::string_view name) const;
  double number(std::size_t position, std::string_view name, double absent) const;
  std::int64_t integer(std::size_t position, std::string_view name) const;
  std::int64_t integer(std::size_t position, std::string_view name, std::int64_t absent) const;
  bool boolean(std::size_t position, std::string_view name, bool absent) const;
  /// A single integer counts as a list of one.
  Dimensions integers(std::size_t position, std::string_view name) const;
  Dimensions integers(std::size_t position, std::string_view name, Dimensions absent) const;
  std::vector<double> numbers(std::size_t position, std::string_view name) const;
  std::string text(std::size_t position, std::string_view name, std::string_view absent) const;
  /// What the call left in that argument, which is one tensor; null where the recording lacks it.
  const Tensor* written_tensor(std::string_view name) const;
  /// PyTorch's name of a type, as in torch.float16; nothing where it is absent.
  std::optional<formats::Format> dtype(std::size_t position, std::string_view name) const;
};

/// Arguments that a handler does not know: the call is then not modelled, for this reason.
struct UnknownArguments {
  std::string reason;
};

/// The type that PyTorch calls so (torch.bfloat16); nothing where it has none of ours.
std::optional<formats::Format> type_of_torch_name(std::string_view name);

}  // namespace guardbit::emulator::replay
