#include "emulator/engine/cpu.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "formats/support/instruction_sets.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace guardbit::emulator::cpu {

#if defined(__x86_64__)

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// CPUID; zeros where the CPU does not have the leaf.
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(unsigned word, int index) { return (word >> index & 1U) != 0; }

/// XCR0: the register state that the operating system saves. The CPU must have OSXSAVE.
std::uint64_t saved_state() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

/// Tile data is large, so Linux hands it out on request only (Documentation/arch/x86/xstate.rst).
bool tile_data_permitted() {
#if defined(__linux__)
  constexpr long arch_req_xcomp_perm = 0x1023;
  constexpr long xfeature_xtiledata = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata) == 0;
#else
  return false;
#endif
}

/// Bit numbers: Intel SDM, CPUID leaves 1 and 7.
Features detect() {
  using formats::InstructionSets;
  const InstructionSets allowed = formats::allowed_instruction_sets();
  Features found;
  if (allowed < InstructionSets::avx2) return found;
  const Registers basic = cpuid(1);
  if (!bit(basic.ecx, 27)) return found;  // OSXSAVE
  const std::uint64_t state = saved_state();
  const auto saves = [state](std::uint64_t mask) { return (state & mask) == mask; };
  const Registers extended = cpuid(7, 0);
  const Registers more = cpuid(7, 1);
  found.fma = bit(basic.ecx, 12) && bit(basic.ecx, 28) && saves(0x6);
  found.avx2_kernels = found.fma && bit(basic.ecx, 29) && bit(extended.ebx, 5);
  found.avx_vnni = found.avx2_kernels && bit(more.eax, 4);
  const bool has_avx512f = saves(0xE6) && bit(extended.ebx, 16);
  if (has_avx512f && allowed >= InstructionSets::avx512) {
    const bool byte_and_word =
        bit(extended.ebx, 30) && bit(extended.ecx, 1) && bit(extended.ecx, 6);
    const bool counts = bit(extended.ecx, 12) && bit(extended.ecx, 14);
    found.avx512_vnni = bit(extended.ecx, 11);
    found.avx512_kernels = found.avx2_kernels && byte_and_word && counts && found.avx512_vnni &&
                           bit(extended.ebx, 17) && bit(extended.ebx, 31);
    found.avx512_bf16 = bit(more.eax, 5);
    found.avx512_fp16 = bit(extended.edx, 23);
  }
  const bool tiles = saves(0x60000) && bit(extended.edx, 24);
  if (tiles && allowed >= InstructionSets::all && tile_data_permitted()) {
    found.amx_bf16 = bit(extended.edx, 22);
    found.amx_int8 = bit(extended.edx, 25);
    found.amx_fp16 = bit(more.eax, 21);
  }
  return found;
}

std::string brand() {
  std::array<char, 49> text{};
  for (unsigned part = 0; part < 3; ++part) {
    const Registers r = cpuid(0x80000002U + part);
    const std::array<unsigned, 4> words = {r.eax, r.ebx, r.ecx, r.edx};
    std::memcpy(text.data() + std::size_t{part} * 16, words.data(), 16);
  }
  std::string name(text.data());
  name.erase(0, name.find_first_not_of(' '));
  return name.erase(name.find_last_not_of(' ') + 1);
}

}  // namespace

const Features& features() {
  static const Features found = detect();
  return found;
}

std::string description() {
  const unsigned version = cpuid(1).eax;
  const unsigned base_family = version >> 8 & 15U;
  const unsigned family = base_family + (base_family == 15 ? version >> 20 & 255U : 0);
  const bool has_extended_model = base_family == 6 || base_family == 15;
  const unsigned model = (version >> 4 & 15U) | (has_extended_model ? version >> 12 & 0xF0U : 0);
  return brand() + ", family " + std::to_string(family) + ", model " + std::to_string(model) +
         ", stepping " + std::to_string(version & 15U);
}

#elif defined(__aarch64__)

namespace {

bool has_dot_products() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
  return true;
#else
  return false;
#endif
}

Features detect() {
  Features found;
  found.neon_kernels = formats::allowed_instruction_sets() >= formats::InstructionSets::neon;
  found.dot_products = found.neon_kernels && has_dot_products();
  return found;
}

}  // namespace

const Features& features() {
  static const Features found = detect();
  return found;
}

std::string description() { return "ARM CPU"; }

#else

const Features& features() {
  static const Features none;
  return none;
}

std::string description() { return "another CPU"; }

#endif

}  // namespace guardbit::emulator::cpu
