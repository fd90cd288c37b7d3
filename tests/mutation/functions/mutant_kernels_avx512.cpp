#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "formats/rounding.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/program_change.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512,
#include "emulator/functions/kernels/kernels_begin_avx512.inc"
// these headers too; all else that they need is included above.
#include "emulator/functions/kernels/coefficient_lookup_avx512.hpp"
#include "emulator/functions/kernels/truncated_square_avx512.hpp"
#include "emulator/functions/kernels/vector_unit.hpp"
#define GUARDBIT_MUTANT_STEP [[gnu::always_inline]]
#define GUARDBIT_MUTANT_LAMBDA __attribute__((always_inline))
#include "tests/mutation/functions/mutant_number.hpp"
#include "tests/mutation/functions/surveyed_programs.hpp"

namespace guardbit::tests {

using emulator::kernels::Avx512;
using Vector = emulator::kernels::VectorNumber<Avx512>;
namespace vectors = formats::vectors;

template <>
struct LargeAngles<Vector> {
  static void reduce(Vector x, Vector::Mask which, Vector::Word& quarter, Vector& r) {
    if (any(which)) [[unlikely]]
      reduce_some(x, which, quarter, r);
  }
  [[gnu::noinline]] static void reduce_some(Vector x, Vector::Mask which, Vector::Word& quarter,
                                            Vector& r) {
    std::uint32_t codes[16], quarters[16], rests[16];
    vectors::store(codes, bits(x).words);
    vectors::store(quarters, quarter.words);
    vectors::store(rests, bits(r).words);
    emulator::kernels::reduce_large_angles(codes, Avx512::bits_of(which.lanes), quarters, rests);
    quarter = vectors::load<Avx512::Words>(quarters);
    r = Vector::of(vectors::load<Avx512::Words>(rests));
  }
};

namespace {

using Number = MutantNumber<Vector>;

template <class Result>
[[gnu::always_inline]] inline void store_result(Result x, std::uint32_t* to) {
  if constexpr (std::is_same_v<Result, Number>) {
    const Vector v = x.number();
    const Vector one_nan = select(v == v, v, Vector::of(emulator::mufu::nan_code));
    vectors::store(to, bits(one_nan).words);
  } else {
    vectors::store(to, x.word.words);
  }
}

template <class Program>
[[gnu::flatten, gnu::noinline]] void run(const std::array<const std::uint32_t*, 4>& operands,
                                         const std::array<std::uint32_t*, 2>& results,
                                         std::size_t count) {
  for (std::size_t at = 0; at < count; at += 16) {
    program_branch = 0;
    const auto result = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return Program()(
          Number::operand(Vector::of(vectors::load<Avx512::Words>(operands[i] + at)), i)...);
    }
    (std::make_index_sequence<operands_of<Number, Program>()>());
    if constexpr (requires { result.second; }) {
      store_result(result.first, results[0] + at);
      store_result(result.second, results[1] + at);
    } else {
      store_result(result, results[0] + at);
    }
  }
}

template <class... Programs>
constexpr auto kernels_of(const std::tuple<NamedProgram<Programs>...>& programs) {
  return std::apply(
      [](const auto&... each) {
        return std::array{
            MutantKernel{each.name, run<std::remove_cvref_t<decltype(each.program)>>}...};
      },
      programs);
}
constexpr auto kernels = kernels_of(std::tuple_cat(emulator::kernels::cuda_kernels, more_programs));

}  // namespace

const std::span<const MutantKernel> kernels_of_avx512 = kernels;

}  // namespace guardbit::tests

#include "emulator/functions/kernels/kernels_end.inc"

#else

namespace guardbit::tests {
const std::span<const MutantKernel> kernels_of_avx512;
}  // namespace guardbit::tests

#endif
