#pragma once

#include <cfenv>

namespace guardbit::emulator {

/// The default floating-point environment of this thread while it lives: round to nearest even,
/// subnormal operands and results kept, which a caller may have switched off.
class DefaultEnvironment {
 public:
  DefaultEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;
  ~DefaultEnvironment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_{};
};

/// The direction of rounding that tiles need of the thread, while it lives.
class TileRounding {
 public:
  explicit TileRounding(int direction) { std::fesetround(direction); }
  TileRounding(const TileRounding&) = delete;
  TileRounding& operator=(const TileRounding&) = delete;
  ~TileRounding() { std::fesetround(FE_TONEAREST); }
};

}  // namespace guardbit::emulator
