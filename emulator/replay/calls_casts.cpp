#include "emulator/operators/casts.hpp"
#include "emulator/replay/calls.hpp"

// Copies, which convert where the types differ.
namespace guardbit::emulator::replay {
namespace {

Answer cast(const Tensor& source, const formats::Format& type) {
  if (source.type == type) return moves_data();
  return computed({operators::converted(source, type)},
                  "each element converted, rounded to nearest even");
}

Answer to_copy(const Call& call, Context&) {
  if (call.text(9, "device", "").starts_with("cpu")) return moves_data("a copy to the CPU");
  const Tensor& source = call.tensor(0, "self");
  return cast(source, call.dtype(1, "dtype").value_or(source.type));
}

Answer copy(const Call& call, Context&) {
  const Tensor& source = call.tensor(1, "src");
  const Tensor& target = call.tensor(0, "self");
  if (source.shape != target.shape) return moves_data("a copy that broadcasts");
  return cast(source, target.type);
}

constexpr std::array cast_handlers = {
    Handler{"aten._to_copy", to_copy},
    Handler{"aten.copy_", copy},
};

}  // namespace

std::span<const Handler> cast_calls() { return cast_handlers; }

}  // namespace guardbit::emulator::replay
