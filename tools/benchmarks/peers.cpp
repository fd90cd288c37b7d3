#include "tools/benchmarks/peers.hpp"

#include <utility>

#include "tools/benchmarks/native_cpu.hpp"

namespace guardbit::tools {

std::vector<ConversionPeer> conversion_peers([[maybe_unused]] std::string_view to) {
  static const bool may_run = native_obstacle().empty();
  std::vector<ConversionPeer> list;
  if (!may_run) return list;
#if defined(GUARDBIT_CPFLOAT)
  list.push_back(peers::cpfloat(to));
#endif
#if defined(GUARDBIT_ML_DTYPES)
  list.push_back(peers::ml_dtypes(to));
#endif
  std::erase_if(list, [&](const ConversionPeer& peer) { return peer.convert == nullptr; });
  return list;
}

}  // namespace guardbit::tools
