#include "emulator/replay/calls.hpp"

#include <array>
#include <unordered_map>

namespace guardbit::emulator::replay {
namespace {

/// The one table of operators: a line for each family.
// clang-format off: one line each, which merge
constexpr std::array families = {
    attention_calls, cast_calls,      convolution_calls, data_calls,          distance_calls,
    draw_calls,      foreach_calls,   gate_calls,        interpolation_calls, loss_calls,
    norm_calls,      optimizer_calls, order_calls,       pointwise_calls,     pooling_calls,
    product_calls,   recurrent_calls, reduction_calls,   scattered_calls,     softmax_calls,
};
// clang-format on

const std::unordered_map<std::string_view, const Handler*>& handlers() {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Handler*> all;
    for (const auto family : families) {
      for (const Handler& handler : family()) all.emplace(handler.op, &handler);
    }
    return all;
  }();
  return table;
}

}  // namespace

const Handler* find_handler(std::string_view op) {
  const auto& table = handlers();
  if (const auto found = table.find(op); found != table.end()) return found->second;
  const auto overload = op.rfind('.');
  if (overload == std::string_view::npos) return nullptr;
  const auto found = table.find(op.substr(0, overload));
  return found == table.end() ? nullptr : found->second;
}

}  // namespace guardbit::emulator::replay
