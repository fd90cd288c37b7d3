#include "gpu/cuda/injection/other_screenings.hpp"

#include <cmath>
#include <cstring>

namespace guardbit::gpu {

namespace {

constexpr const char* where = "injection";

/// The images again and again.
std::vector<std::byte> repeated(const ScreenSet& set, std::size_t begin, int bytes, int images,
                                int copies) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<std::byte> all(size * static_cast<std::size_t>(copies));
  for (int i = 0; i < copies && size != 0; ++i)
    std::memcpy(all.data() + size * static_cast<std::size_t>(i),
                set.bytes.data() + begin + size * static_cast<std::size_t>(i % images), size);
  return all;
}

/// Every processing block gets some tens of inputs, as many as a second of copying allows.
int copies_of(const PackedCase& x, int processors) {
  return processors * (x.instruction->unit == Unit::wgmma ? 8 : 128);
}

}  // namespace

UncheckedRun::UncheckedRun(const PackedCase& x, const ScreenSet& set, int processors)
    : case_(x),
      copies_(copies_of(x, processors)),
      a_(repeated(set, x.a, x.a_bytes, x.images, copies_), where),
      b_(repeated(set, x.b, x.b_bytes, x.images, copies_), where),
      c_(repeated(set, x.c, x.c_bytes, x.images, copies_), where),
      e_(repeated(set, x.e, x.instruction->sparse ? x.e_bytes : 0, x.images, copies_), where),
      d_(static_cast<std::size_t>(x.d_bytes) * static_cast<std::size_t>(copies_), where) {}

std::vector<std::byte> UncheckedRun::run(const Fault* fault) const {
  kernel_of (*case_.instruction)({.a = a_.as(),
                                  .b = b_.as(),
                                  .c = c_.as(),
                                  .e = case_.instruction->sparse ? e_.as() : nullptr,
                                  .d = d_.as(),
                                  .images = copies_,
                                  .a_bytes = case_.a_bytes,
                                  .b_bytes = case_.b_bytes,
                                  .c_bytes = case_.c_bytes,
                                  .d_bytes = case_.d_bytes,
                                  .fault = fault});
  check_cuda(cudaGetLastError(), where);
  return d_.read();
}

bool differ(const std::vector<std::byte>& x, const std::vector<std::byte>& y) { return x != y; }

bool differ_in_thousandths(const std::vector<std::byte>& x, const std::vector<std::byte>& y) {
  constexpr float tolerance = 0.001F;
  for (std::size_t i = 0; i + sizeof(float) <= x.size(); i += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, x.data() + i, sizeof a);
    std::memcpy(&b, y.data() + i, sizeof b);
    if (std::fabs(a - b) > tolerance) return true;
  }
  return false;
}

}  // namespace guardbit::gpu
