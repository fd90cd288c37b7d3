#pragma once

// D = A * B + C as the matrix unit of an instruction would give it, block by block on offset
// accumulators (gpu/model/offset_accumulator.hpp says what is computed and why it is right). Per 16
// x 8 outputs and block: one matrix multiply-add finds the largest exponents, one counts negative
// products, and one in FP64, rounding down, does the block. All three spread outputs over lanes
// alike, so the state between blocks stays in registers, as an FP64 that holds D's value.

#include <cstdint>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/product/device_packed_operand.hpp"
#include "gpu/cuda/product/tile_operations.cuh"
#include "gpu/cuda/product/tuned_kernels.hpp"
#include "gpu/model/offset_accumulator.hpp"

namespace guardbit::gpu {

/// A block of one output by the model: what the chain cannot take.
template <Accumulated kind>
__device__ __noinline__ double block_by_model(const MultiplyArguments& p, double c, int row,
                                              int column, int block) {
  const auto a = [&](int i) -> std::uint64_t {
    const std::int64_t k = source_k(p.instruction, block, i);
    return row < p.m && k < p.k
               ? load_code(p.a, p.instruction.a,
                           static_cast<std::size_t>(row) * static_cast<std::size_t>(p.k) +
                               static_cast<std::size_t>(k))
               : 0;
  };
  const auto b = [&](int i) -> std::uint64_t {
    const std::int64_t k = source_k(p.instruction, block, i);
    return column < p.n && k < p.k
               ? load_code(p.b, p.instruction.b,
                           static_cast<std::size_t>(k) * static_cast<std::size_t>(p.n) +
                               static_cast<std::size_t>(column))
               : 0;
  };
  const std::uint64_t code =
      model_block(p.instruction, p.instruction.terms, a, b, code_of_result<kind>(c));
  return addend_of_code<kind>(code);
}

// ---- The kernel ----

/// `terms` products per block; a warp computes 16 * panels_m rows by 8 * panels_n columns, a thread
/// block warps_m * warps_n of them, from shared memory that holds `stages` times blocks_per_stage.
template <int terms_, Accumulated kind_, bool composed_, int panels_m_, int panels_n_, int warps_m_,
          int warps_n_, int stages_, int blocks_per_stage_>
struct TileShape {
  static constexpr int terms = terms_;
  static constexpr Accumulated kind = kind_;
  static constexpr bool composed = composed_;
  static constexpr int panels_m = panels_m_, panels_n = panels_n_;
  static constexpr int warps_m = warps_m_, warps_n = warps_n_;
  static constexpr int stages = stages_, blocks_per_stage = blocks_per_stage_;

  static constexpr int threads = 32 * warps_m * warps_n;
  static constexpr int rows = 16 * panels_m * warps_m, columns = 8 * panels_n * warps_n;
  static constexpr PackedShape a = {terms, true, panels_m* warps_m, blocks_per_stage};
  static constexpr PackedShape b = {terms, false, panels_n* warps_n, blocks_per_stage};
  static constexpr int stage_bytes = a.stage_bytes() + b.stage_bytes();
  static constexpr int shared_bytes = stages * stage_bytes;
};

/// Registers of one lane for one panel of A or B and one block.
template <class Shape, bool is_a>
struct Fragment {
  static constexpr int highs = is_a ? Shape::terms / 2 : Shape::terms / 4;
  static constexpr int weights = PackedShape::weight_words(Shape::terms, is_a);
  static constexpr int words = PackedShape::words(Shape::terms, is_a);
  std::uint32_t w[words];
  int exponent[2];

  __device__ void load(const std::byte* record, int lane) {
    const auto* planes = reinterpret_cast<const uint4*>(record) + lane;
    for (int i = 0; i < words / 4; ++i) {
      const uint4 four = planes[32 * i];
      w[4 * i] = four.x;
      w[4 * i + 1] = four.y;
      w[4 * i + 2] = four.z;
      w[4 * i + 3] = four.w;
    }
    const int pair = is_a ? lane / 4 : lane % 4;
    const int2 e =
        reinterpret_cast<const int2*>(record + PackedShape::lines_offset(Shape::terms, is_a))[pair];
    exponent[0] = e.x;
    exponent[1] = e.y;
  }
  __device__ const std::uint32_t* weight() const { return w + highs; }
  __device__ const std::uint32_t* signs() const { return w + highs + weights; }
};

template <class Shape>
struct Tile {
  static constexpr int terms = Shape::terms;
  using A = Fragment<Shape, true>;
  using B = Fragment<Shape, false>;

  __device__ static void sum_weights(float (&s)[4], const A& a, const B& b) {
    for (float& x : s) x = 0;
    constexpr int regs = A::weights < 4 ? A::weights : 4;
    for (int i = 0; i < A::weights / regs; ++i)
      add_weights<regs>(s, a.weight() + regs * i, b.weight() + regs / 2 * i);
  }

  __device__ static void count_negative(int (&n)[4], const A& a, const B& b) {
    for (int& x : n) x = 0;
    constexpr int regs = A::weights < 4 ? A::weights : 4;
    for (int i = 0; i < A::weights / regs; ++i)
      count_signs<regs>(n, a.signs() + regs * i, b.signs() + regs / 2 * i);
  }

  /// One block: c becomes D of c.
  __device__ static void run(const OffsetRule& rule, double (&c)[4], const A& a, const B& b) {
    constexpr ExponentWindow window = exponent_window(terms);
    float s[4];
    int negative[4];
    sum_weights(s, a, b);
    count_negative(negative, a, b);
    std::uint32_t high[4];
    double sum[4];
    for (int i = 0; i < 4; ++i) {
      const auto products = static_cast<std::int32_t>(quotient_of(window, s[i])) +
                            a.exponent[i / 2] + b.exponent[i % 2];
      high[i] = offset_high<Shape::kind>(rule, high_of(c[i]), products);
      const std::uint32_t low = offset_low(high_of(c[i]), static_cast<std::uint32_t>(negative[i]));
      sum[i] = multiply_add_down(c[i], addend_nudge, double_of(high[i], low));
    }
    constexpr int k = terms < 16 ? terms : 16;
    for (int part = 0; part < terms / k; ++part) {
      double x[k / 2], y[k / 4];
      for (int i = 0; i < k / 2; ++i)
        x[i] = __hiloint2double(static_cast<int>(a.w[part * 8 + i]), 0);
      for (int i = 0; i < k / 4; ++i)
        y[i] = __hiloint2double(static_cast<int>(b.w[part * 4 + i]), nudge);
      add_products<k>(sum, x, y);
    }
    for (int i = 0; i < 4; ++i) c[i] = rounded_sum<Shape::kind>(sum[i] - double_of(high[i], 0));
  }

  /// Does every output have a product of two factors that are not low? Then r_max is in the window.
  __device__ static bool every_pair_is_high(const uint4 a, const uint4 b) {
    return (a.y & b.y) != 0 && (a.y & b.w) != 0 && (a.w & b.y) != 0 && (a.w & b.w) != 0;
  }

  /// Which of the four outputs the chain cannot take: bits 0 to 3 need the model, bits 4 to 7 keep
  /// their value.
  __device__ static unsigned excluded(const OffsetRule& rule, const double (&c)[4], const A& a,
                                      const B& b, const uint4 a_masks, const uint4 b_masks) {
    constexpr ExponentWindow window = exponent_window(terms);
    float s[4];
    sum_weights(s, a, b);
    unsigned mask = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned common =
          (i / 2 == 0 ? a_masks.x : a_masks.z) & (i % 2 == 0 ? b_masks.x : b_masks.z);
      const Route route =
          route_of<Shape::kind>(window, rule, quotient_of(window, s[i]),
                                a.exponent[i / 2] + b.exponent[i % 2], common != 0, c[i]);
      mask |= route == Route::keep ? 16U << i : route == Route::model ? 1U << i : 0;
    }
    return mask;
  }
};

// Values that only a rare path needs stay out of the registers, and out of the compiler's hands,
// which would else store them always.
__device__ inline void store_aside(double* to, double x) {
  asm volatile("st.f64 [%0], %1;" ::"l"(to), "d"(x) : "memory");
}
__device__ inline double load_aside(const double* from) {
  double x;
  asm volatile("ld.f64 %0, [%1];" : "=d"(x) : "l"(from) : "memory");
  return x;
}

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    multiply_tiles(const __grid_constant__ MultiplyArguments p) {
  using T = Tile<Shape>;
  constexpr int outputs = Shape::panels_m * Shape::panels_n * 4;
  static_assert(outputs <= 32);
  extern __shared__ uint4 shared_memory[];
  __shared__ std::uint64_t filled[Shape::stages], emptied[Shape::stages];
  auto* const shared = reinterpret_cast<std::byte*>(shared_memory);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Shape::warps_n, warp_n = warp % Shape::warps_n;

  // Neighbouring thread blocks share rows of A and columns of B in the cache.
  constexpr int group = 8;
  const int per_group = group * p.tiles_n;
  const int first_tile_m = static_cast<int>(blockIdx.x) / per_group * group;
  const int rows_in_group = min(group, p.tiles_m - first_tile_m);
  const int tile_m = first_tile_m + static_cast<int>(blockIdx.x) % per_group % rows_in_group;
  const int tile_n = static_cast<int>(blockIdx.x) % per_group / rows_in_group;

  const std::byte* const a_tile =
      p.a_packed + static_cast<std::size_t>(tile_m) * p.stages * Shape::a.stage_bytes();
  const std::byte* const b_tile =
      p.b_packed + static_cast<std::size_t>(tile_n) * p.stages * Shape::b.stage_bytes();
  const auto copy_stage = [&](int stage) {
    const auto at = static_cast<std::size_t>(stage);
    fill_slot(shared + stage % Shape::stages * Shape::stage_bytes,
              {a_tile + at * Shape::a.stage_bytes(), Shape::a.stage_bytes()},
              {b_tile + at * Shape::b.stage_bytes(), Shape::b.stage_bytes()},
              &filled[stage % Shape::stages]);
  };
  constexpr int ahead = Shape::stages - 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::stages; ++i) {
      make_barrier(&filled[i], 1);
      make_barrier(&emptied[i], Shape::threads);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < min(ahead, p.stages); ++stage) copy_stage(stage);
  }

  const int first_row = tile_m * Shape::rows + warp_m * 16 * Shape::panels_m;
  const int first_column = tile_n * Shape::columns + warp_n * 8 * Shape::panels_n;
  const auto row_of = [&](int i, int e) { return first_row + 16 * i + 8 * (e / 2) + lane / 4; };
  const auto column_of = [&](int j, int e) {
    return first_column + 8 * j + 2 * (lane % 4) + e % 2;
  };

  double c[Shape::panels_m][Shape::panels_n][4];
  float total[Shape::composed ? Shape::panels_m : 1][Shape::composed ? Shape::panels_n : 1][4];
  bool excluded = false;
#pragma unroll
  for (int i = 0; i < Shape::panels_m; ++i)
#pragma unroll
    for (int j = 0; j < Shape::panels_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = row_of(i, e), column = column_of(j, e);
        double x = 0;
        if (p.c != nullptr && row < p.m && column < p.n)
          x = addend_of_code<Shape::kind>(
              load_code(p.c, p.instruction.d, static_cast<std::size_t>(row) * p.n + column));
        if constexpr (Shape::composed) {
          total[i][j][e] = static_cast<float>(x);  // exact: c is an FP32 or an FP16
          x = 0;
        }
        c[i][j][e] = x;
        excluded |= (high_of(x) & 0x7FFFFFFF) >= first_excluded<Shape::kind>;
      }
  bool any_excluded = __any_sync(~0U, excluded);

  double aside[outputs];
  const unsigned* const a_low = p.a_low + static_cast<std::size_t>(tile_m) * p.stages;
  const unsigned* const b_low = p.b_low + static_cast<std::size_t>(tile_n) * p.stages;
  unsigned next_low = a_low[0] + b_low[0];
#pragma unroll 1
  for (int stage = 0; stage < p.stages; ++stage) {
    const int slot = stage % Shape::stages;
    // Refills the slot of the stage before the last: warps may drift apart by one.
    if (threadIdx.x == 0 && stage + ahead < p.stages) {
      const int next = stage + ahead;
      if (next >= Shape::stages)
        wait_for(&emptied[next % Shape::stages], (next / Shape::stages - 1) % 2);
      copy_stage(next);
    }
    const bool stage_is_plain = next_low < Shape::terms;
    const int prefetched = min(stage + 1, p.stages - 1);
    next_low = a_low[prefetched] + b_low[prefetched];
    wait_for(&filled[slot], stage / Shape::stages % 2);
    const std::byte* const a_stage = shared + slot * Shape::stage_bytes;
    const std::byte* const b_stage = a_stage + Shape::a.stage_bytes();
#pragma unroll 1
    for (int in_stage = 0; in_stage < Shape::blocks_per_stage; ++in_stage) {
      const auto a_record = [&](int i) {
        return a_stage + ((warp_m * Shape::panels_m + i) * Shape::blocks_per_stage + in_stage) *
                             Shape::a.record_bytes();
      };
      const auto b_record = [&](int j) {
        return b_stage + ((warp_n * Shape::panels_n + j) * Shape::blocks_per_stage + in_stage) *
                             Shape::b.record_bytes();
      };
      if constexpr (Shape::composed) {
        if (in_stage % 2 == 0) {
#pragma unroll
          for (int at = 0; at < outputs; ++at)
            c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4] = 0;
          excluded = any_excluded = false;
        }
      }

      // Outputs that the chain cannot take are computed beside it and put back afterwards.
      unsigned put_back = 0;
      const auto a_masks = [&](int i) {
        return reinterpret_cast<const uint4*>(a_record(i) + Shape::a.masks_offset())[lane / 4];
      };
      const auto b_masks = [&](int j) {
        return reinterpret_cast<const uint4*>(b_record(j) + Shape::b.masks_offset())[lane % 4];
      };
      bool plain = stage_is_plain && !any_excluded;
      if (!plain && !any_excluded) {
        bool common = true;
#pragma unroll
        for (int i = 0; i < Shape::panels_m; ++i)
#pragma unroll
          for (int j = 0; j < Shape::panels_n; ++j)
            common &= T::every_pair_is_high(a_masks(i), b_masks(j));
        plain = __all_sync(~0U, common);
      }
      if (!plain) {
        unsigned by_model = 0;
#pragma unroll
        for (int i = 0; i < Shape::panels_m; ++i) {
          typename T::A a;
          a.load(a_record(i), lane);
#pragma unroll
          for (int j = 0; j < Shape::panels_n; ++j) {
            typename T::B b;
            b.load(b_record(j), lane);
            const unsigned mask = T::excluded(p.rule, c[i][j], a, b, a_masks(i), b_masks(j));
            const int at = (i * Shape::panels_n + j) * 4;
            by_model |= (mask & 15) << at;
            put_back |= (mask >> 4 | (mask & 15)) << at;
          }
        }
        if (put_back != 0) {
#pragma unroll
          for (int at = 0; at < outputs; ++at)
            store_aside(aside + at, c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4]);
          const int block = stage * Shape::blocks_per_stage + in_stage;
#pragma unroll 1
          for (unsigned rest = by_model; rest != 0; rest &= rest - 1) {
            const int at = __ffs(static_cast<int>(rest)) - 1;
            const int tile = at / 4;
            const double x = block_by_model<Shape::kind>(
                p, load_aside(aside + at), row_of(tile / Shape::panels_n, at % 4),
                column_of(tile % Shape::panels_n, at % 4), block);
            store_aside(aside + at, x);
            excluded |= (high_of(x) & 0x7FFFFFFF) >= first_excluded<Shape::kind>;
          }
          // No accumulator lives in registers across the calls.
#pragma unroll
          for (int at = 0; at < outputs; ++at)
            c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4] = load_aside(aside + at);
        }
        __syncwarp();
      }

#pragma unroll
      for (int i = 0; i < Shape::panels_m; ++i) {
        typename T::A a;
        a.load(a_record(i), lane);
#pragma unroll
        for (int j = 0; j < Shape::panels_n; ++j) {
          typename T::B b;
          b.load(b_record(j), lane);
          T::run(p.rule, c[i][j], a, b);
        }
      }

      if (put_back != 0) {
#pragma unroll
        for (int at = 0; at < outputs; ++at)
          if ((put_back >> at & 1) != 0)
            c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4] = load_aside(aside + at);
      }
      if constexpr (Shape::kind == Accumulated::fp16) {
        bool overflow = false;
#pragma unroll
        for (int at = 0; at < outputs; ++at)
          overflow |= (high_of(c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4]) &
                       0x7FFFFFFF) >= first_excluded<Shape::kind>;
        if (overflow) {
          excluded = true;
#pragma unroll
          for (int at = 0; at < outputs; ++at) {
            double& x = c[at / 4 / Shape::panels_n][at / 4 % Shape::panels_n][at % 4];
            if (fabs(x) >= 65536.0) x = copysign(INFINITY, x);
          }
        }
      }
      if (!plain || Shape::kind == Accumulated::fp16) any_excluded = __any_sync(~0U, excluded);

      if constexpr (Shape::composed) {
        if (in_stage % 2 == 1) {
#pragma unroll
          for (int at = 0; at < outputs; ++at) {
            const int i = at / 4 / Shape::panels_n, j = at / 4 % Shape::panels_n;
            float& t = total[i][j][at % 4];
            if constexpr (Shape::kind == Accumulated::fp16) {
              t = __half2float(__double2half(static_cast<double>(t) + c[i][j][at % 4]));
            } else {
              t = __fadd_rn(t, static_cast<float>(c[i][j][at % 4]));
            }
          }
        }
      }
    }
    arrive(&emptied[slot]);
  }

#pragma unroll
  for (int i = 0; i < Shape::panels_m; ++i)
    for (int j = 0; j < Shape::panels_n; ++j)
      for (int e = 0; e < 4; ++e) {
        const int row = row_of(i, e), column = column_of(j, e);
        if (row >= p.m || column >= p.n) continue;
        double x = c[i][j][e];
        if constexpr (Shape::composed) x = total[i][j][e];
        const std::uint32_t code = code_of_result<Shape::kind>(x);
        const std::size_t at = static_cast<std::size_t>(row) * p.n + column;
        if constexpr (Shape::kind == Accumulated::fp16) {
          reinterpret_cast<std::uint16_t*>(p.d)[at] = static_cast<std::uint16_t>(code);
        } else {
          reinterpret_cast<std::uint32_t*>(p.d)[at] = code;
        }
      }
}

template <class Shape>
void launch_multiply(const MultiplyArguments& arguments) {
  const auto kernel = multiply_tiles<Shape>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  Shape::shared_bytes),
             "gemm");
  const auto tiles =
      static_cast<unsigned>(arguments.tiles_m) * static_cast<unsigned>(arguments.tiles_n);
  kernel<<<tiles, Shape::threads, Shape::shared_bytes>>>(arguments);
  check_cuda(cudaGetLastError(), "gemm");
}

template <class Shape>
TunedKernel kernel_of() {
  return {
      Shape::a, Shape::b, Shape::rows, Shape::columns, Shape::shared_bytes, launch_multiply<Shape>};
}

/// Warps of 32 x 32 outputs, 128 x 64 together, and stages of 32 products (16 in blocks of 4): as
/// many as shared memory holds.
template <int terms, Accumulated kind, bool composed = false>
using UsualShape =
    TileShape<terms, kind, composed, 2, 4, 4, 2, terms <= 8 ? 3 : 4, 32 / (terms < 8 ? 8 : terms)>;

/// The kernel for blocks of `terms` products, one of `Terms`; nothing for others.
template <Accumulated kind, bool composed, int... Terms>
std::optional<TunedKernel> kernel_for(int terms) {
  std::optional<TunedKernel> kernel;
  ((terms == Terms ? void(kernel = kernel_of<UsualShape<Terms, kind, composed>>()) : void()), ...);
  return kernel;
}

}  // namespace guardbit::gpu
