#include "emulator/replay/handler.hpp"

#include <utility>

namespace guardbit::emulator::replay {

bool Context::flag(std::string_view name, bool absent) const {
  if (flags == nullptr) return absent;
  const auto found = flags->find(std::string(name));
  if (found == flags->end()) return absent;
  return found->second == "true" || found->second == "True" || found->second == "1";
}

Answer unmodelled(std::string reason) {
  return {.results = {}, .plan = std::move(reason), .status = Status::unmodelled};
}
Answer moves_data(std::string how) {
  return {.results = {}, .plan = std::move(how), .status = Status::data};
}
Answer moves(const Call&, Context&) { return moves_data(); }
Answer computed(std::vector<std::optional<Tensor>> results, std::string plan) {
  return {.results = std::move(results), .plan = std::move(plan)};
}

const Tensor& floating(const Tensor& tensor) {
  if (!operators::is_working_type(tensor.type)) throw UnknownArguments{"a type without a model"};
  return tensor;
}

const Tensor& floating_or_double(const Tensor& tensor) {
  return tensor.type == formats::fp64 ? tensor : floating(tensor);
}

}  // namespace guardbit::emulator::replay
