#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/functions/compile_mode.hpp"
#include "emulator/functions/numbers/apart_number.hpp"
#include "emulator/functions/numbers/compiled_number.hpp"

namespace guardbit::emulator {

/// A Program of numbers as nvcc compiles it in a mode.
template <class Program, CompileMode mode, bool cpu_flushes = false>
struct CompiledProgram {
  /// The same for a CPU that flushes.
  using OnFlushingCpu = CompiledProgram<Program, mode, true>;

  template <class... Arguments>
  requires std::is_invocable_v<Program, Arguments...>
  constexpr auto operator()(Arguments... arguments) const {
    if constexpr (mode == CompileMode::standard) {
      return Program()(arguments...);
    } else {
      return plain(Program()(compiled(arguments)...));
    }
  }

 private:
  // Integers are taken as they are.
  template <class Argument>
  static constexpr auto compiled(Argument x) {
    if constexpr (requires { typename Argument::Word; }) {
      using Number = CompiledNumber<Argument, mode, cpu_flushes>;
      if constexpr (cpu_flushes) {
        return Number(x);
      } else {
        return ApartNumber<Number>(Number(x));
      }
    } else {
      return x;
    }
  }
  template <class Result>
  static constexpr auto plain(const Result& x) {
    if constexpr (requires { std::get<1>(x); }) {
      return std::pair(plain(std::get<0>(x)), plain(std::get<1>(x)));
    } else if constexpr (requires {
                           x.number();
                           Result::is_flushing;
                         }) {
      return x.number();
    } else {
      return x;
    }
  }
};

}  // namespace guardbit::emulator
