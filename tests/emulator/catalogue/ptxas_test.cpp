#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "tests/catch.hpp"

// NVIDIA's own assembler accepts the names of the catalogue. The case is tagged [shared] because a
// machine may lack ptxas.
namespace {

using namespace guardbit;
using emulator::Family;
using emulator::MatrixInstruction;

/// The command's output, both streams; empty when it cannot be started.
std::string output_of(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), size);
  }
  pclose(pipe);
  return text;
}

/// ptxas on the PATH, or where CUDA is installed by default.
std::string find_ptxas() {
  std::string path = output_of("command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null");
  while (!path.empty() && path.back() == '\n') path.pop_back();
  return path;
}

/// "..., release 13.0, V13.0.88" as 1300.
int toolkit_of(const std::string& ptxas) {
  const std::string text = output_of("'" + ptxas + "' --version");
  const std::size_t at = text.find("release ");
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + 8;
  return emulator::parse_toolkit(text.substr(begin, text.find(',', begin) - begin)).value_or(0);
}

/// The PTX ISA that came with a toolkit: 8.x with 12.x, 9.x with 13.x.
std::string ptx_version(int toolkit) {
  return std::to_string(toolkit / 100 - 4) + "." + std::to_string(toolkit % 100);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// ---- Operands of one instruction ----------------------------------------------------------------

/// Bits of an element of A or B in a register.
int element_bits(const MatrixInstruction& instruction, const formats::Format& f) {
  const std::string name{std::string_view(instruction.name)};
  const bool in_bytes = contains(name, "f8f6f4") && formats::bits(f) < 8;
  return in_bytes ? 8 : f == formats::tf32 ? 32 : formats::bits(f);
}

int registers(int elements, int bits) { return std::max(1, elements * bits / 32 / 32); }

/// "{%r1, %r1, ...}"
std::string list(const std::string& name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + name;
  return text + "}";
}

std::string accumulator(const formats::Format& f, int elements, int lanes) {
  if (f == formats::fp64) return list("%d1", elements / lanes);
  if (f == formats::fp32) return list("%f1", elements / lanes);
  return list("%r1", elements * (f == formats::fp16 ? 16 : 32) / 32 / lanes);
}

std::string warp_operands(const MatrixInstruction& instruction) {
  const emulator::Shape& s = instruction.shape;
  const bool is_double = instruction.a == formats::fp64;
  // mma.m8n8k4 on f16 is four products side by side; WMMA holds every f16 fragment in 8 registers.
  const bool quad = instruction.a == formats::fp16 && s == emulator::Shape{8, 8, 4};
  const bool fixed = instruction.family == Family::wmma && instruction.a == formats::fp16;
  const auto operand = [&](const formats::Format& f, int elements) {
    if (is_double) return list("%d1", elements / 32);
    return list("%r1",
                fixed ? 8 : registers(elements * (quad ? 4 : 1), element_bits(instruction, f)));
  };
  const int outputs = s.m * s.n * (quad ? 4 : 1);
  std::string text = accumulator(instruction.d, outputs, 32) + ", " +
                     operand(instruction.a, s.m * emulator::stored_k(instruction, s.k)) + ", " +
                     operand(instruction.b, s.k * s.n) + ", " +
                     accumulator(instruction.c, outputs, 32);
  if (instruction.sparsity.group_elements != 0) text += ", %r1, 0x0";
  if (instruction.scale.count != 0) text += ", %r1, {0, 0}, %r1, {0, 0}";
  return text;
}

std::string warp_group_operands(const MatrixInstruction& instruction, int n) {
  std::string text = accumulator(instruction.d, 64 * n, 128) + ", %l1, %l1";
  if (instruction.sparsity.group_elements != 0) text += ", %r1, 0x0";
  text += ", %p1";
  if (!formats::is_integer(instruction.a)) text += ", 1, 1";
  if (formats::bits(instruction.a) == 16) text += ", 0, 0";
  return text;
}

std::string instruction_text(const MatrixInstruction& instruction) {
  std::string name{std::string_view(instruction.name)};
  if (instruction.family != Family::wgmma && instruction.family != Family::wgmma_sp) {
    return name + " " + warp_operands(instruction) + ";";
  }
  const int n = 48;
  name.replace(name.find("nN"), 2, "n" + std::to_string(n));
  return name + " " + warp_group_operands(instruction, n) + ";";
}

bool is_ptx(const MatrixInstruction& instruction) {
  return instruction.family == Family::mma || instruction.family == Family::mma_sp ||
         instruction.family == Family::wmma || instruction.family == Family::wgmma ||
         instruction.family == Family::wgmma_sp;
}

/// Forms that came after a toolkit although the machine's other instructions did not (NUMERICS
/// 3.8).
bool is_known_to(int toolkit, const MatrixInstruction& instruction) {
  const bool fine_e8m0 = instruction.scale.format == formats::e8m0 && instruction.scale.count == 4;
  return instruction.toolkit.includes(toolkit) && (!fine_e8m0 || toolkit >= 1301);
}

/// One kernel for one in `every` instruction, on a line of its own, so that a complaint's line
/// number names the instruction.
std::string module_text(std::string_view arch, const std::string& target, int toolkit, int every) {
  std::ostringstream text;
  text << ".version " << ptx_version(toolkit) << "\n.target " << target << "\n.address_size 64\n";
  int index = 0, at = 0;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (instruction.arch != arch || !is_ptx(instruction) || !is_known_to(toolkit, instruction) ||
        at++ % every != 0)
      continue;
    text
        << ".visible .entry k" << index++
        << "() { .reg .b32 %r<2>; .reg .b64 %l<2>; .reg .f32 %f<2>; .reg .f64 %d<2>; .reg .pred %p<2>; "
        << instruction_text(instruction) << " ret; }\n";
  }
  return text.str();
}

/// What ptxas says about the instructions of a machine: the complaints with the lines they are
/// about.
std::string complaints(const std::string& ptxas, std::string_view arch, const std::string& target,
                       int toolkit, int every) {
  const std::string text = module_text(arch, target, toolkit, every);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("guardbit_" + target + "_" + std::to_string(getpid()) + ".ptx");
  std::ofstream(file) << text;
  std::istringstream output(
      output_of("'" + ptxas + "' -arch=" + target + " '" + file.string() + "' -o /dev/null"));
  std::filesystem::remove(file);
  std::string found;
  for (std::string line; std::getline(output, line);) {
    if (!contains(line, "error") && !contains(line, "fatal")) continue;
    found += line + "\n";
    const std::size_t at = line.find("line ");
    if (at == std::string::npos) continue;
    std::istringstream module(text);
    std::string source;
    for (int i = std::atoi(line.c_str() + at + 5); i > 0; --i) std::getline(module, source);
    found += "  " + source + "\n";
  }
  return found;
}

void assemble(int every) {
  const std::string ptxas = find_ptxas();
  const int toolkit = ptxas.empty() ? 0 : toolkit_of(ptxas);
  if (toolkit < 1200) {
    std::cout << "SKIPPED: no ptxas of toolkit 12.0 or later\n";
    return;
  }
  int assembled = 0;
  for (const auto& [arch, target] :
       {std::pair{"sm_70", "sm_70"}, std::pair{"sm_75", "sm_75"}, std::pair{"sm_80", "sm_80"},
        std::pair{"sm_86", "sm_86"}, std::pair{"sm_89", "sm_89"}, std::pair{"sm_90", "sm_90a"},
        std::pair{"sm_100", "sm_100a"}, std::pair{"sm_103", "sm_103a"},
        std::pair{"sm_120", "sm_120a"}}) {
    INFO(target);
    const std::string found = complaints(ptxas, arch, target, toolkit, every);
    if (contains(found, "is not defined for option 'gpu-name'")) continue;  // too old or too new
    CHECK(found == "");
    ++assembled;
  }
  CHECK(assembled > 0);
}

}  // namespace

TEST_CASE("ptxas accepts every fifth of the catalogue's names", "[tool]") { assemble(5); }

TEST_CASE("ptxas accepts the catalogue's names", "[tool][sweep]") { assemble(1); }
