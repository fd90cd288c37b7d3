#include <array>
#include <string>

#include "emulator/operators/orders.hpp"
#include "emulator/replay/calls.hpp"

// Sorting and choosing by order.
namespace guardbit::emulator::replay {
namespace {

namespace ops = operators;

Answer ordered(ops::Ordered all) {
  return computed({std::move(all.numbers), std::move(all.indices)}, std::move(all.plan));
}

Answer sorted(const Call& call, Context&) {
  return ordered(ops::sorted(call.tensor(0, "self"), call.integer(1, "dim", -1),
                             call.boolean(2, "descending", false), false));
}
Answer sorted_stably(const Call& call, Context&) {
  return ordered(ops::sorted(call.tensor(0, "self"), call.integer(2, "dim", -1),
                             call.boolean(3, "descending", false),
                             call.boolean(1, "stable", false)));
}
Answer chosen(const Call& call, Context&) {
  return ordered(ops::chosen(call.tensor(0, "self"), call.integer(1, "k"),
                             call.integer(2, "dim", -1), call.boolean(3, "largest", true),
                             call.boolean(4, "sorted", true)));
}
template <ops::Place place>
Answer median(const Call& call, Context&) {
  return ordered(ops::at_place(call.tensor(0, "self"), call.integer(1, "dim", -1),
                               call.boolean(2, "keepdim", false), place, 0));
}
Answer least(const Call& call, Context&) {
  return ordered(ops::at_place(call.tensor(0, "self"), call.integer(2, "dim", -1),
                               call.boolean(3, "keepdim", false), ops::Place::given,
                               call.integer(1, "k")));
}
template <bool leaves_out_nans>
Answer median_of_all(const Call& call, Context&) {
  return computed({ops::median_of_all(call.tensor(0, "self"), leaves_out_nans)},
                  "the middle of a sort");
}

constexpr std::array order_handlers = {
    Handler{"aten.kthvalue", least},
    Handler{"aten.median.default", median_of_all<false>},
    Handler{"aten.median.dim", median<ops::Place::median>},
    Handler{"aten.nanmedian.default", median_of_all<true>},
    Handler{"aten.nanmedian.dim", median<ops::Place::median_of_numbers>},
    Handler{"aten.sort.default", sorted},
    Handler{"aten.sort.stable", sorted_stably},
    Handler{"aten.topk", chosen},
};

}  // namespace

std::span<const Handler> order_calls() { return order_handlers; }

}  // namespace guardbit::emulator::replay
