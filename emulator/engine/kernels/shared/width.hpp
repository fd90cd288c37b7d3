#pragma once

namespace guardbit::emulator {

/// Which of x86's registers a kernel may use: the widest that the CPU has, or 256 bits at most.
enum class Width { widest, bits_256 };

}  // namespace guardbit::emulator
