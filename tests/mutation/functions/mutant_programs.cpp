#include "tests/mutation/functions/mutant_programs.hpp"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/numbers/reference_number.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/mutant_number.hpp"
#include "tests/mutation/functions/surveyed_programs.hpp"

namespace guardbit::tests {

namespace {

using Number = MutantNumber<emulator::ReferenceNumber>;

template <class Result>
std::uint32_t code_of(Result x) {
  if constexpr (std::is_same_v<Result, Number>) {
    return emulator::with_one_nan(bits(x).word);
  } else {
    return x.word;
  }
}

template <class Program>
emulator::ResultCodes results(const emulator::OperandCodes& operands) {
  program_branch = 0;
  const auto result = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return Program()(Number::operand(
        emulator::ReferenceNumber::of(static_cast<std::uint32_t>(operands[i])), i)...);
  }
  (std::make_index_sequence<operands_of<Number, Program>()>());
  if constexpr (requires { result.second; }) {
    return {code_of(result.first), code_of(result.second)};
  } else {
    return {code_of(result), 0};
  }
}

template <class... Programs>
auto programs_of(const std::tuple<NamedProgram<Programs>...>& programs) {
  return std::apply(
      [](const auto&... each) {
        return std::array{
            MutantProgram{each.name, results<std::remove_cvref_t<decltype(each.program)>>}...};
      },
      programs);
}

}  // namespace

std::span<const MutantProgram> mutant_programs() {
  static const auto all =
      programs_of(std::tuple_cat(emulator::kernels::cuda_kernels, more_programs, single_programs));
  return all;
}
const MutantProgram* find_mutant_program(std::string_view name) {
  const auto found = std::ranges::find(mutant_programs(), name, &MutantProgram::name);
  return found == mutant_programs().end() ? nullptr : &*found;
}

std::span<const MutantKernel> mutant_kernels() {
  const emulator::cpu::Features& features = emulator::cpu::features();
  if (features.avx512_kernels) return kernels_of_avx512;
  if (features.avx2_kernels) return kernels_of_avx2;
  return {};
}
const MutantKernel* find_mutant_kernel(std::string_view name) {
  const auto found = std::ranges::find(mutant_kernels(), name, &MutantKernel::name);
  return found == mutant_kernels().end() ? nullptr : &*found;
}

}  // namespace guardbit::tests
