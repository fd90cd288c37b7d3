#include "emulator/engine/kernels/x86/x86_units.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/mma.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace guardbit::emulator::x86_units {

#if defined(__x86_64__)

namespace {

enum class Opcode : std::uint8_t {
  vfmadd231pd,
  vfmadd231ps,
  vfmadd231ph,
  vdpbf16ps,
  vpdpbusd,
  vpdpbusds,
  vpdpwssd,
  vpdpwssds,
  tdpbf16ps,
  tdpfp16ps,
  tdpbssd,
  tdpbsud,
  tdpbusd,
  tdpbuud
};

struct Unit {
  std::string_view name;
  Opcode opcode;
  bool cpu::Features::*feature;
};

using cpu::Features;
constexpr std::array units = {
    Unit{"VFMADD231PD", Opcode::vfmadd231pd, &Features::fma},
    Unit{"VFMADD231PS", Opcode::vfmadd231ps, &Features::fma},
    Unit{"VFMADD231PH", Opcode::vfmadd231ph, &Features::avx512_fp16},
    Unit{"VDPBF16PS", Opcode::vdpbf16ps, &Features::avx512_bf16},
    Unit{"VPDPBUSD", Opcode::vpdpbusd, &Features::avx512_vnni},
    Unit{"VPDPBUSDS", Opcode::vpdpbusds, &Features::avx512_vnni},
    Unit{"VPDPWSSD", Opcode::vpdpwssd, &Features::avx512_vnni},
    Unit{"VPDPWSSDS", Opcode::vpdpwssds, &Features::avx512_vnni},
    Unit{"TDPBF16PS", Opcode::tdpbf16ps, &Features::amx_bf16},
    Unit{"TDPFP16PS", Opcode::tdpfp16ps, &Features::amx_fp16},
    Unit{"TDPBSSD", Opcode::tdpbssd, &Features::amx_int8},
    Unit{"TDPBSUD", Opcode::tdpbsud, &Features::amx_int8},
    Unit{"TDPBUSD", Opcode::tdpbusd, &Features::amx_int8},
    Unit{"TDPBUUD", Opcode::tdpbuud, &Features::amx_int8},
};

const Unit* unit_of(const MatrixInstruction& instruction) {
  if (instruction.arch != "x86") return nullptr;
  const auto* const found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) {
    return unit.name == std::string_view(instruction.name);
  });
  return found == units.end() ? nullptr : &*found;
}

// ---- The instructions themselves. Assembly names them, because an intrinsic leaves the compiler a
// choice of forms (132, 213, 231) that prefer different NaNs. ----

constexpr std::size_t register_bytes = 64;

/// The register operands of a vector instruction; d comes in as the addends.
struct Vectors {
  alignas(register_bytes) std::array<std::byte, register_bytes> a{}, b{}, d{};
};

__attribute__((target("avx512f"))) void multiply_512(Opcode opcode, Vectors& x) {
  const __m512i a = _mm512_load_si512(x.a.data());
  const __m512i b = _mm512_load_si512(x.b.data());
  __m512i d = _mm512_load_si512(x.d.data());
  switch (opcode) {
    case Opcode::vfmadd231ph:
      asm volatile("vfmadd231ph %2, %1, %0" : "+v"(d) : "v"(a), "v"(b));
      break;
    case Opcode::vdpbf16ps: asm volatile("vdpbf16ps %2, %1, %0" : "+v"(d) : "v"(a), "v"(b)); break;
    case Opcode::vpdpbusd: asm volatile("vpdpbusd %2, %1, %0" : "+v"(d) : "v"(a), "v"(b)); break;
    case Opcode::vpdpbusds: asm volatile("vpdpbusds %2, %1, %0" : "+v"(d) : "v"(a), "v"(b)); break;
    case Opcode::vpdpwssd: asm volatile("vpdpwssd %2, %1, %0" : "+v"(d) : "v"(a), "v"(b)); break;
    case Opcode::vpdpwssds: asm volatile("vpdpwssds %2, %1, %0" : "+v"(d) : "v"(a), "v"(b)); break;
    default: break;
  }
  _mm512_store_si512(x.d.data(), d);
}

/// By halves of the registers, for CPUs without AVX-512.
__attribute__((target("avx"))) void multiply_256(Opcode opcode, Vectors& x) {
  for (std::size_t at = 0; at < register_bytes; at += sizeof(__m256i)) {
    auto* const result = reinterpret_cast<__m256i*>(x.d.data() + at);
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(x.a.data() + at));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(x.b.data() + at));
    __m256i d = _mm256_load_si256(result);
    if (opcode == Opcode::vfmadd231pd) {
      asm volatile("vfmadd231pd %2, %1, %0" : "+x"(d) : "x"(a), "x"(b));
    } else {
      asm volatile("vfmadd231ps %2, %1, %0" : "+x"(d) : "x"(a), "x"(b));
    }
    _mm256_store_si256(result, d);
  }
}

constexpr int tile_rows = 16;

using Tile = std::array<std::array<std::byte, register_bytes>, tile_rows>;

/// C and D (0), A (1) and B (2) as whole tiles of 16 rows of 64 bytes.
struct Tiles {
  Tile a{}, b{}, d{};
};

/// Tiles as the instructions need them, configured on this thread while it lives (Intel SDM,
/// LDTILECFG: palette 1).
class TileConfiguration {
 public:
  TileConfiguration() {
    struct {
      std::uint8_t palette = 1, start_row = 0;
      std::array<std::uint8_t, 14> reserved{};
      std::array<std::uint16_t, 16> row_bytes{};
      std::array<std::uint8_t, 16> rows{};
    } configuration;
    static_assert(sizeof(configuration) == register_bytes);
    for (std::size_t tile = 0; tile < 3; ++tile) {
      configuration.row_bytes[tile] = register_bytes;
      configuration.rows[tile] = tile_rows;
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  TileConfiguration(const TileConfiguration&) = delete;
  TileConfiguration& operator=(const TileConfiguration&) = delete;
  ~TileConfiguration() { asm volatile("tilerelease"); }

  void multiply(Opcode opcode, Tiles& x) const {
    const std::size_t stride = register_bytes;
    asm volatile(
        "tileloadd (%0,%3,1), %%tmm0\n\ttileloadd (%1,%3,1), %%tmm1\n\ttileloadd (%2,%3,1), %%tmm2"
        :
        : "r"(&x.d), "r"(&x.a), "r"(&x.b), "r"(stride)
        : "memory");
    switch (opcode) {
      case Opcode::tdpbf16ps: asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0"); break;
      case Opcode::tdpfp16ps:  // tdpfp16ps %tmm2, %tmm1, %tmm0, which assemblers of 2022 lack
        asm volatile(".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1");
        break;
      case Opcode::tdpbssd: asm volatile("tdpbssd %tmm2, %tmm1, %tmm0"); break;
      case Opcode::tdpbsud: asm volatile("tdpbsud %tmm2, %tmm1, %tmm0"); break;
      case Opcode::tdpbusd: asm volatile("tdpbusd %tmm2, %tmm1, %tmm0"); break;
      case Opcode::tdpbuud: asm volatile("tdpbuud %tmm2, %tmm1, %tmm0"); break;
      default: break;
    }
    asm volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(&x.d), "r"(stride) : "memory");
  }
};

// ---- Batches to registers and back ----

std::size_t container_bytes(const Format& f) {
  return static_cast<std::size_t>(formats::container_bits(f)) / 8;
}

/// Codes to and from the bytes of a register, element `at` of the format's own width.
void put(const Format& f, std::byte* bytes, std::size_t at, std::uint64_t code) {
  std::memcpy(bytes + at * container_bytes(f), &code, container_bytes(f));
}
std::uint64_t get(const Format& f, const std::byte* bytes, std::size_t at) {
  std::uint64_t code = 0;
  std::memcpy(&code, bytes + at * container_bytes(f), container_bytes(f));
  return code;
}

/// The operands of one execution as the unit gets them.
class Operands {
 public:
  Operands(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t execution)
      : instruction_(instruction), batch_(batch), execution_(execution) {}

  std::uint64_t a(int m, int k) const {
    const Shape& s = batch_.shape;
    return negated(instruction_.a, batch_.a[(execution_ * s.m + m) * s.k + k],
                   batch_.modifiers.negate_a);
  }
  std::uint64_t b(int k, int n) const {
    const Shape& s = batch_.shape;
    return negated(instruction_.b, batch_.b[(execution_ * s.k + k) * s.n + n],
                   batch_.modifiers.negate_b);
  }
  std::uint64_t c(int m, int n) const {
    return batch_.modifiers.zero_addend ? 0 : batch_.c[place(m, n)];
  }
  void set_d(int m, int n, std::uint64_t code) const { batch_.d.set(place(m, n), code); }

 private:
  std::int64_t place(int m, int n) const {
    return (execution_ * batch_.shape.m + m) * batch_.shape.n + n;
  }

  const MatrixInstruction& instruction_;
  const MatrixBatch& batch_;
  std::int64_t execution_;
};

/// Outputs [begin, end) of a batch, in its order, one lane each; a lane holds K products of as many
/// bytes together as one result.
void run_vectors(const MatrixInstruction& instruction, Opcode opcode, const MatrixBatch& batch,
                 std::int64_t begin, std::int64_t end) {
  const std::int64_t outputs = std::int64_t{batch.shape.m} * batch.shape.n;
  const auto lanes = static_cast<std::int64_t>(register_bytes / container_bytes(instruction.d));
  const auto lane_products = static_cast<std::size_t>(instruction.shape.k);
  const auto place_of = [&](std::int64_t output) {
    const auto inside = static_cast<int>(output % outputs);
    return std::pair(inside / batch.shape.n, inside % batch.shape.n);
  };
  for (std::int64_t first = begin * outputs; first < end * outputs; first += lanes) {
    Vectors x;
    const auto count = static_cast<std::size_t>(std::min(lanes, end * outputs - first));
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::int64_t output = first + static_cast<std::int64_t>(lane);
      const auto [m, n] = place_of(output);
      const Operands operands(instruction, batch, output / outputs);
      for (int k = 0; k < batch.shape.k; ++k) {
        const std::size_t at = lane * lane_products + static_cast<std::size_t>(k);
        put(instruction.a, x.a.data(), at, operands.a(m, k));
        put(instruction.b, x.b.data(), at, operands.b(k, n));
      }
      put(instruction.c, x.d.data(), lane, operands.c(m, n));
    }
    const bool is_fma3 = opcode == Opcode::vfmadd231pd || opcode == Opcode::vfmadd231ps;
    is_fma3 ? multiply_256(opcode, x) : multiply_512(opcode, x);
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::int64_t output = first + static_cast<std::int64_t>(lane);
      const auto [m, n] = place_of(output);
      Operands(instruction, batch, output / outputs)
          .set_d(m, n, get(instruction.d, x.d.data(), lane));
    }
  }
}

/// One tile of 16 x 16 outputs from (m0, n0) on. B's tile holds, in row i, the 4 / width(B)
/// elements of K that make the i-th dword, side by side for each column (Intel SDM, TDP*).
void run_tile(const MatrixInstruction& instruction, Opcode opcode, const Operands& operands,
              const Shape& shape, int m0, int n0, const TileConfiguration& configuration) {
  Tiles x;
  const int rows = std::min(tile_rows, shape.m - m0);
  const int columns = std::min(tile_rows, shape.n - n0);
  const auto packed = static_cast<int>(4 / container_bytes(instruction.b));
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  for (int m = 0; m < rows; ++m) {
    for (int k = 0; k < shape.k; ++k)
      put(instruction.a, x.a[index(m)].data(), index(k), operands.a(m0 + m, k));
    for (int n = 0; n < columns; ++n)
      put(instruction.c, x.d[index(m)].data(), index(n), operands.c(m0 + m, n0 + n));
  }
  for (int k = 0; k < shape.k; ++k) {
    for (int n = 0; n < columns; ++n) {
      put(instruction.b, x.b[index(k / packed)].data(), index(n * packed + k % packed),
          operands.b(k, n0 + n));
    }
  }
  configuration.multiply(opcode, x);
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n)
      operands.set_d(m0 + m, n0 + n, get(instruction.d, x.d[index(m)].data(), index(n)));
  }
}

void run_tiles(const MatrixInstruction& instruction, Opcode opcode, const MatrixBatch& batch,
               std::int64_t begin, std::int64_t end) {
  const TileConfiguration configuration;
  for (std::int64_t t = begin; t < end; ++t) {
    const Operands operands(instruction, batch, t);
    for (int m = 0; m < batch.shape.m; m += tile_rows) {
      for (int n = 0; n < batch.shape.n; n += tile_rows)
        run_tile(instruction, opcode, operands, batch.shape, m, n, configuration);
    }
  }
}

/// Only these obey the caller's rounding and flushing; the others have theirs wired in.
bool reads_mxcsr(Opcode opcode) {
  return opcode == Opcode::vfmadd231pd || opcode == Opcode::vfmadd231ps ||
         opcode == Opcode::vfmadd231ph;
}

}  // namespace

bool accepts(const MatrixInstruction& instruction) {
  const Unit* const unit = unit_of(instruction);
  return unit != nullptr && cpu::features().*unit->feature;
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end) {
  const Opcode opcode = unit_of(instruction)->opcode;
  std::optional<DefaultEnvironment> environment;
  if (reads_mxcsr(opcode)) environment.emplace();
  if (instruction.family == Family::amx) {
    run_tiles(instruction, opcode, batch, begin, end);
  } else {
    run_vectors(instruction, opcode, batch, begin, end);
  }
}

#else

bool accepts(const MatrixInstruction&) { return false; }

void run(const MatrixInstruction&, const MatrixBatch&, std::int64_t, std::int64_t) {}

#endif

}  // namespace guardbit::emulator::x86_units
