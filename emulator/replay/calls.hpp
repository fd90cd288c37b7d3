#pragma once

#include <span>
#include <string_view>

#include "emulator/replay/handler.hpp"

// The operators by families: each calls_*.cpp has the handlers of one.
namespace guardbit::emulator::replay {

std::span<const Handler> attention_calls();
std::span<const Handler> cast_calls();
std::span<const Handler> convolution_calls();
std::span<const Handler> data_calls();
std::span<const Handler> distance_calls();
std::span<const Handler> draw_calls();
std::span<const Handler> foreach_calls();
std::span<const Handler> gate_calls();
std::span<const Handler> interpolation_calls();
std::span<const Handler> loss_calls();
std::span<const Handler> norm_calls();
std::span<const Handler> optimizer_calls();
std::span<const Handler> order_calls();
std::span<const Handler> pointwise_calls();
std::span<const Handler> pooling_calls();
std::span<const Handler> product_calls();
std::span<const Handler> recurrent_calls();
std::span<const Handler> reduction_calls();
std::span<const Handler> scattered_calls();
std::span<const Handler> softmax_calls();

/// The handler of an operator; null where there is none.
const Handler* find_handler(std::string_view op);

}  // namespace guardbit::emulator::replay
