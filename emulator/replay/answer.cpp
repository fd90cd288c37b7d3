#include "emulator/replay/answer.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "emulator/replay/calls.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator::replay {
namespace {

bool is_of_the_cpu(const Call& call) {
  bool has_tensors = false;
  const auto on_cpu = [&](const Value& value) {
    const auto tensors = tensors_of(value);
    has_tensors = has_tensors || !tensors.empty();
    return std::ranges::none_of(tensors, [](const Tensor* tensor) { return tensor->is_on_gpu; });
  };
  bool all = std::ranges::all_of(call.args, on_cpu) && on_cpu(call.out);
  for (const auto& [name, value] : call.kwargs) all = all && on_cpu(value);
  return all && has_tensors;
}

bool has_tensors(const Call& call) {
  const auto has = [](const Value& value) { return !tensors_of(value).empty(); };
  return has(call.out) || std::ranges::any_of(call.args, has) ||
         std::ranges::any_of(call.kwargs, [&](const auto& named) { return has(named.second); });
}

}  // namespace

Answer answer_of(const Call& call, Context& context) {
  if (is_of_the_cpu(call)) return moves_data("computed by the CPU");
  const Handler* handler = find_handler(call.op);
  if (handler == nullptr && !has_tensors(call))
    return moves_data("no tensors: a question to a library");
  if (handler == nullptr) return unmodelled("no model of this operator");
  try {
    return handler->answer(call, context);
  } catch (const UnknownArguments& unknown) {
    return unmodelled(unknown.reason);
  } catch (const operators::UnknownShape& unknown) {
    return unmodelled(unknown.reason);
  } catch (const std::logic_error&) {  // a list that is too short, a size that no array has
    return unmodelled("arguments that the operator cannot have");
  } catch (const std::bad_alloc&) {
    return unmodelled("arguments that ask for more memory than there is");
  }
}

}  // namespace guardbit::emulator::replay
