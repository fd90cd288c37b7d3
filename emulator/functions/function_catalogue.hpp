#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "emulator/functions/function.hpp"

// The functions that a GPU computes, by their names.
namespace guardbit::emulator {

/// Instructions of PTX, and CUDA's functions as nvcc compiles them.
std::vector<Function> ptx_functions();
const std::vector<Function>& cuda_functions(CompileMode mode = CompileMode::standard);

/// Both; in other modes than the standard one CUDA's alone.
const std::vector<Function>& function_catalogue(CompileMode mode = CompileMode::standard);

/// The function of that name on a machine; formats::Error that begins with `where` and names the
/// nearest ones.
const Function& require_function(std::string_view arch, std::string_view name,
                                 std::string_view where,
                                 CompileMode compile = CompileMode::standard);

/// The digest of a function of one number over every `stride`th of the 2^32 inputs, on `threads`
/// threads (0: all). It calls progress(inputs done) now and then, one call at a time; whatever that
/// throws ends the work.
std::uint64_t function_digest(
    const Function& function, std::uint64_t stride = 1, int threads = 0,
    const std::function<void(std::uint64_t)>& progress = [](std::uint64_t) {});

}  // namespace guardbit::emulator
