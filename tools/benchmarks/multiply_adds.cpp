// Compiled once for each instruction set, as eigen_functions.cpp is.
#include "tools/benchmarks/multiply_adds.hpp"

#include <Eigen/Core>

namespace guardbit::tools::GUARDBIT_EIGEN {

namespace {

/// As many sums as hide a multiply-add's latency, and fit any register file beside two factors.
constexpr int sums = 12;

template <class Number>
double run(std::int64_t rounds) {
  namespace packets = Eigen::internal;
  using Packet = typename packets::packet_traits<Number>::type;
  const Packet factor = packets::pset1<Packet>(Number(0.5)), addend = packets::pset1<Packet>(1);
  Packet x[sums];
  for (Packet& sum : x) sum = addend;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < sums; ++j) x[j] = packets::pmadd(x[j], factor, addend);
  }
  for (int j = 1; j < sums; ++j) x[0] = packets::padd(x[0], x[j]);
  volatile Number sink = packets::pfirst(x[0]);
  static_cast<void>(sink);
  return 2.0 * sums * packets::unpacket_traits<Packet>::size * static_cast<double>(rounds);
}

}  // namespace

double multiply_adds_fp32(std::int64_t rounds) { return run<float>(rounds); }
double multiply_adds_fp64(std::int64_t rounds) { return run<double>(rounds); }

}  // namespace guardbit::tools::GUARDBIT_EIGEN
