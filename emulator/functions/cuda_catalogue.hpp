#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/functions/compiled_program.hpp"
#include "emulator/functions/function_program.hpp"
#include "formats/support/words.hpp"

// CUDA's functions as entries of the catalogue, in each mode that nvcc compiles them in.
namespace guardbit::emulator {

/// What the digests of a function of so many operands are, in a mode.
constexpr Evidence cuda_evidence(std::size_t operands, CompileMode mode) {
  using Sources = std::array<std::string_view, formats::words_of<CompileMode>.size()>;
  constexpr Sources of_all = {"H100, CUDA 13.0: digest of all 2^32 results",
                              "H100, CUDA 13.0, -ftz=true: digest of all 2^32 results",
                              "H100, CUDA 13.0, -use_fast_math: digest of all 2^32 results"};
  constexpr Sources of_drawn = {
      "H100, CUDA 13.0: digest of the results of 2^32 drawn operands",
      "H100, CUDA 13.0, -ftz=true: digest of the results of 2^32 drawn operands",
      "H100, CUDA 13.0, -use_fast_math: digest of the results of 2^32 drawn operands"};
  return {Basis::measured, (operands == 1 ? of_all : of_drawn).at(static_cast<std::size_t>(mode))};
}

class CudaCatalogue {
 public:
  const std::vector<Function>& functions(CompileMode mode) const {
    return lists_.at(static_cast<std::size_t>(mode));
  }

  /// A function that takes the steps of one program in every mode.
  template <const FunctionFormats& formats = formats_of_fp32, class Program, class Exact>
  void add(std::string_view name, std::string_view meaning, Program program, Exact exact) {
    add_with_fast<formats>(name, meaning, program, program, exact);
  }

  /// One that -use_fast_math replaces by another program.
  template <const FunctionFormats& formats = formats_of_fp32, class Program, class Fast,
            class Exact>
  void add_with_fast(std::string_view name, std::string_view meaning, Program, Fast, Exact exact) {
    using enum CompileMode;
    add_modes(name, meaning,
              {code_of<Program, formats>(), code_of<CompiledProgram<Program, ftz>, formats>(),
               code_of<CompiledProgram<Fast, fast>, formats>()},
              in_doubles(exact));
  }

 private:
  /// One code a mode.
  using Codes = std::array<ProgramCode, formats::words_of<CompileMode>.size()>;
  void add_modes(std::string_view name, std::string_view meaning, const Codes& codes,
                 const InDoubles& exact);

  std::array<std::vector<Function>, formats::words_of<CompileMode>.size()> lists_;
};

// The parts of the catalogue, one after the other.
void add_elementary_functions(CudaCatalogue& all);
void add_special_functions(CudaCatalogue& all);
void add_number_functions(CudaCatalogue& all);

}  // namespace guardbit::emulator
