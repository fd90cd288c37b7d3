#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "emulator/functions/function.hpp"
#include "emulator/functions/kernels/function_kernels.hpp"

// The functions that a GPU computes, by their names.
namespace guardbit::emulator {

/// Instructions of PTX, and CUDA's functions as nvcc compiles them.
std::vector<Function> ptx_functions();
/// Instructions of other formats than FP32, and those that round once.
std::vector<Function> ptx_functions_of_formats();
const std::vector<Function>& cuda_functions(CompileMode mode = CompileMode::standard);
/// CUDA's arithmetic of FP32 in each rounding.
std::vector<Function> cuda_rounded_functions(CompileMode mode);
/// CUDA's functions of FP16 and BF16 numbers, and its arithmetic of them.
std::vector<Function> cuda_functions_of_halves(CompileMode mode = CompileMode::standard);
std::vector<Function> cuda_arithmetic_of_halves();
/// Instructions of AMD's RDNA3 and RDNA4.
std::vector<Function> rdna_functions();

/// All of them, by the fastest engine that has a kernel; in other modes than the standard one
/// CUDA's functions alone.
const std::vector<Function>& function_catalogue(CompileMode mode = CompileMode::standard);

/// The function by an engine; number by number where that has no kernel for it.
Function on_engine(Function function, const FunctionEngine& engine);

/// How errors call what a caller asks of require_function.
struct FunctionPlaces {
  std::string name, arch, compile;

  FunctionPlaces(std::string_view where)  // NOLINT(google-explicit-constructor)
      : name(where), arch(name + ": arch"), compile(name + ": compile") {}
  FunctionPlaces(const char* where)  // NOLINT(google-explicit-constructor)
      : FunctionPlaces(std::string_view(where)) {}
  FunctionPlaces(const std::string& where)  // NOLINT(google-explicit-constructor)
      : FunctionPlaces(std::string_view(where)) {}
  FunctionPlaces(std::string_view where, std::string_view arch_place,
                 std::string_view compile_place)
      : name(where), arch(arch_place), compile(compile_place) {}
};

/// The function of that name on a machine, of FP16 where the name has overloads and does not say
/// which; formats::Error that begins with one of the places and names the nearest ones.
const Function& require_function(std::string_view arch, std::string_view name,
                                 const FunctionPlaces& where,
                                 CompileMode compile = CompileMode::standard);

/// The codes of all results of as many arguments: an array for each operand and each result, on
/// `threads` threads (0: all).
std::vector<std::vector<std::uint64_t>> function_results(
    const Function& function, const std::vector<std::vector<std::uint64_t>>& operands,
    int threads = 0);

/// Names of arrays in files and recordings: the operands, and the results.
inline constexpr std::array<const char*, most_operands> operand_names = {"x", "y", "z", "w"};
inline constexpr std::array<const char*, most_results> result_names = {"d", "d1"};

/// Does a computed code agree with a recorded one? Two NaNs of FP32 or FP64 are equal: digests
/// have one. Everything else is compared bit by bit.
bool same_function_result(const formats::Format& format, std::uint64_t recorded,
                          std::uint64_t computed);

/// Inputs of a function of one number are numbered by their codes; of more than 32 bits the number
/// is the high word, and the low one is 0. Formats that have so many, from 0 to 2^bits.
int input_bits(const Function& function);

/// The digest of a function of one number over every `stride`th input, on `threads` threads (0:
/// all). It calls progress(inputs done) now and then, one call at a time; whatever that
/// throws ends the work.
std::uint64_t function_digest(
    const Function& function, std::uint64_t stride = 1, int threads = 0,
    const std::function<void(std::uint64_t)>& progress = [](std::uint64_t) {});

}  // namespace guardbit::emulator
