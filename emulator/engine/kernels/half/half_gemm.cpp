#include "emulator/engine/kernels/half/half_gemm.hpp"

#include <algorithm>
#include <array>
#include <cfenv>
#include <cstring>
#include <optional>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/half/half_tile.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/model/mma.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::half_gemm {

namespace {

constexpr std::int64_t lines_of_panel = half::lines_of_panel;
constexpr std::int64_t depth = 128;

class Kernel {
 public:
  /// Every sum is cut by rounding down.
  struct Environment : DefaultEnvironment {
    explicit Environment(const Kernel&) { std::fesetround(FE_DOWNWARD); }
  };

  Kernel(const fused::FusedInstruction& instruction, const MatrixProduct& product,
         const half::Functions& functions)
      : block_k_(instruction.block_k),
        kept_fraction_bits_(instruction.kept_fraction_bits),
        product_(product),
        functions_(functions) {}

  PanelBlocking blocking() const {
    const std::int64_t rounded = std::min(depth, round_up(product_.k, block_k_));
    return {{lines_of_panel, lines_of_panel, rounded, 256, round_up(1024, lines_of_panel)},
            sizeof(half::Panel),
            sizeof(half::Panel)};
  }

  void pack_a(std::byte* to, std::int64_t i, std::int64_t k, std::int64_t length) const {
    const ConstMatrix& a = product_.a;
    pack({a.from(i, k), a.row_stride, a.column_stride, product_.m - i}, product_.modifiers.negate_a,
         length, true, to);
  }
  void pack_b(std::byte* to, std::int64_t j, std::int64_t k, std::int64_t length) const {
    const ConstMatrix& b = product_.b;
    pack({b.from(k, j), b.column_stride, b.row_stride, product_.n - j}, product_.modifiers.negate_b,
         length, false, to);
  }

  void tile(const std::byte* a, const std::byte* b, std::int64_t i, std::int64_t j, std::int64_t k,
            std::int64_t length) const {
    const half::Blocks blocks{kept_fraction_bits_, block_k_,
                              static_cast<int>((length + block_k_ - 1) / block_k_)};
    visit_tile<std::uint32_t, lines_of_panel, lines_of_panel>(
        product_, i, j, k == 0,
        [&](const std::byte* from, std::int64_t from_stride, std::byte* to,
            std::int64_t to_stride) {
          functions_.tile(blocks, *reinterpret_cast<const half::Panel*>(a),
                          *reinterpret_cast<const half::Panel*>(b), from, from_stride, to,
                          to_stride);
        });
  }

 private:
  struct Lines {
    ConstMatrix first;
    std::int64_t line_stride = 0, k_stride = 0, lines = 0;
  };

  void pack(const Lines& x, bool negate, std::int64_t length, bool is_a, std::byte* to) const {
    const std::int64_t places = (length + block_k_ - 1) / block_k_ * block_k_;
    const std::int64_t there = std::min(lines_of_panel, x.lines);
    std::array<half::Codes, depth> codes{};
    for (std::int64_t k = 0; k < length; ++k) {
      const std::byte* const from = x.first.codes.data + k * x.k_stride * 2;
      half::Codes& at = codes[static_cast<std::size_t>(k)];
      if (x.line_stride == 1 && there == lines_of_panel) {
        std::memcpy(at.data(), from, sizeof at);
      } else {
        for (std::int64_t line = 0; line < there; ++line)
          std::memcpy(&at[static_cast<std::size_t>(line)], from + line * x.line_stride * 2, 2);
      }
    }
    functions_.pack(codes.data(),
                    {kept_fraction_bits_, block_k_, static_cast<int>(places / block_k_)}, negate,
                    is_a, *reinterpret_cast<half::Panel*>(to));
  }

  int block_k_, kept_fraction_bits_;
  const MatrixProduct& product_;
  half::Functions functions_;
};

}  // namespace

bool accepts(const MatrixInstruction& instruction) {
  const std::optional<fused::FusedInstruction> x = fused::fused_instruction(instruction);
  return x && instruction.a == formats::fp16 && instruction.b == formats::fp16 && x->scale_k == 0 &&
         x->sparsity.group_elements == 0 && x->lane == fused::LaneType::fp64 &&
         x->result == fused::Result::fp32 && x->composition == fused::Composition::chain &&
         !x->any_exponents && (x->block_k == 16 || x->block_k == 8 || x->block_k == 4) &&
         half::functions_avx2().tile != nullptr;
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads) {
  const fused::FusedInstruction fused = *fused::fused_instruction(instruction);
  const Kernel kernel(fused, product, half::functions_avx2());
  multiply_by_panels(kernel, product, threads);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end) {
  portable::run(instruction, batch, begin, end);
}

}  // namespace guardbit::emulator::half_gemm
