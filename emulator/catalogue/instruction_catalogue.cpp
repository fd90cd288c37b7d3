#include "emulator/catalogue/instruction_catalogue.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "emulator/catalogue/arch/cdna3.hpp"
#include "emulator/catalogue/arch/rdna4.hpp"
#include "emulator/catalogue/arch/sm_120.hpp"
#include "emulator/catalogue/arch/sm_70.hpp"
#include "emulator/catalogue/arch/sm_75.hpp"
#include "emulator/catalogue/arch/sm_89.hpp"
#include "emulator/catalogue/arch/tpu.hpp"
#include "emulator/catalogue/arch/x86.hpp"
#include "emulator/catalogue/instruction_name.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

void append(Instructions& all, Instructions instructions) {
  all.insert(all.end(), instructions.begin(), instructions.end());
}

Instructions build_catalogue() {
  Instructions all;
  append(all, sm_70::instructions());
  append(all, sm_75::instructions());
  append(all, sm_80::instructions("sm_80"));
  append(all, sm_80::instructions("sm_86"));
  append(all, sm_89::instructions());
  append(all, sm_90::instructions());
  append(all, sm_100::instructions());
  append(all, sm_100::sm_103_instructions());
  append(all, sm_120::instructions());
  append(all, cdna1::instructions());
  append(all, cdna2::instructions());
  append(all, cdna3::instructions());
  append(all, rdna3::instructions());
  append(all, rdna4::instructions());
  append(all, tpu::instructions());
  append(all, x86::instructions());
  return all;
}

/// Instructions by machine and name key; instructions of different toolkits share a key.
using Index = std::multimap<std::pair<std::string_view, std::string>, const MatrixInstruction*>;

const Index& index() {
  static const Index built = [] {
    Index result;
    for (const MatrixInstruction& instruction : catalogue())
      result.emplace(std::pair{instruction.arch, parse_name(instruction.name).key}, &instruction);
    return result;
  }();
  return built;
}

std::vector<MatrixInstruction>& additions() {
  static std::vector<MatrixInstruction> instructions;
  return instructions;
}

/// The page that an architecture's name leads to; empty when unknown. sm_90a and sm_100f are sm_90
/// and sm_100.
std::string_view page_of(std::string_view arch) {
  const auto find = [](std::string_view name) -> std::string_view {
    for (const Arch& a : architectures()) {
      if (a.name == name) return a.alias_of.empty() ? a.name : a.alias_of;
    }
    return {};
  };
  std::string_view page = find(arch);
  const bool suffixed = arch.starts_with("sm_") && (arch.ends_with('a') || arch.ends_with('f'));
  if (page.empty() && suffixed) page = find(arch.substr(0, arch.size() - 1));
  for (const MatrixInstruction& instruction : added_instructions())
    if (page.empty() && instruction.arch == arch) page = instruction.arch;
  return page;
}

std::string architecture_names() {
  std::string names;
  for (const Arch& a : architectures()) names += (names.empty() ? "" : ", ") + std::string(a.name);
  for (const MatrixInstruction& instruction : added_instructions())
    names += ", " + std::string(instruction.arch);
  return names;
}

/// Machines other than `page` that have the name, for the error message.
std::string owners_of(const std::string& key, std::string_view page) {
  std::string owners;
  for (const Arch& a : architectures()) {
    if (!a.alias_of.empty() || a.name == page || index().count({a.name, key}) == 0) continue;
    owners += (owners.empty() ? "" : ", ") + std::string(a.name);
  }
  return owners;
}

/// The words of a text, letters and digits, in lower case; others stand between them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : formats::lower_case(text)) {
    const bool belongs = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (belongs)
      words.back() += c;
    else
      words.emplace_back();
  }
  return words;
}

/// True if the name is that of a chip in the title, or one with a letter after it ("MI300X").
bool is_named(const std::string& name, std::string_view title) {
  constexpr std::size_t shortest = 3;
  if (name.size() < shortest) return false;
  return std::ranges::any_of(words_of(title), [&](const std::string& word) {
    const bool is_chip = word.size() >= shortest && (word.front() < '0' || word.front() > '9');
    const bool has_digit = word.find_first_of("0123456789") != std::string::npos;
    return is_chip && (name == word ||
                       (has_digit && name.starts_with(word) && name.size() == word.size() + 1));
  });
}

/// "; did you mean sm_90?" of a product's name, AMD's name of a target, or another spelling of the
/// machine's own; empty where it means none or several.
std::string meant_by(std::string_view arch) {
  static const std::map<std::string_view, std::string_view> targets = {
      {"gfx908", "cdna1"}, {"gfx90a", "cdna2"}, {"gfx940", "cdna3"},
      {"gfx941", "cdna3"}, {"gfx942", "cdna3"},
  };
  std::string name;
  for (const std::string& word : words_of(arch)) name += word;
  std::string_view meant;
  if (const auto target = targets.find(name); target != targets.end()) meant = target->second;
  for (const Arch& a : architectures()) {
    std::string own(a.name);
    std::erase(own, '_');
    const bool is_own = name == own || (name.starts_with("sm") && name.size() == own.size() + 1 &&
                                        name.starts_with(own) && name.back() >= 'a');
    if (!is_own && !is_named(name, a.title)) continue;
    const std::string_view page = a.alias_of.empty() ? a.name : a.alias_of;
    if (is_own) {
      meant = a.name;
      break;
    }
    if (!meant.empty() && meant != page) return {};
    meant = page;
  }
  return meant.empty() ? std::string() : "; did you mean " + std::string(meant) + "?";
}

}  // namespace

std::string_view require_page(std::string_view arch, std::string_view where) {
  const std::string_view page = page_of(arch);
  if (page.empty()) {
    throw formats::Error(std::string(where),
                         "unknown architecture " + formats::in_quotes(arch) + meant_by(arch),
                         architecture_names());
  }
  return page;
}

const std::vector<Arch>& architectures() {
  static const std::vector<Arch> all = {
      {"sm_70", "NVIDIA Volta (V100)", ""},
      {"sm_75", "NVIDIA Turing (T4)", ""},
      {"sm_80", "NVIDIA Ampere (A100)", ""},
      {"sm_86", "NVIDIA Ampere (A2, RTX 30)", ""},
      {"sm_87", "NVIDIA Ampere (Orin)", "sm_86"},
      {"sm_89", "NVIDIA Ada (L40S, RTX 40)", ""},
      {"sm_90", "NVIDIA Hopper (H100, H200)", ""},
      {"sm_100", "NVIDIA Blackwell (B200)", ""},
      {"sm_101", "NVIDIA Blackwell (Thor, as named before CUDA 13)", "sm_100"},
      {"sm_103", "NVIDIA Blackwell (B300)", ""},
      {"sm_110", "NVIDIA Blackwell (Thor)", "sm_100"},
      {"sm_120", "NVIDIA Blackwell (RTX PRO 6000, RTX 50)", ""},
      {"sm_121", "NVIDIA Blackwell (Spark)", "sm_120"},
      {"cdna1", "AMD CDNA1 (MI100)", ""},
      {"cdna2", "AMD CDNA2 (MI210, MI250)", ""},
      {"cdna3", "AMD CDNA3 (MI300)", ""},
      {"rdna3", "AMD RDNA3 (Radeon)", ""},
      {"gfx1100", "AMD RDNA3 (RX 7900, PRO W7900)", "rdna3"},
      {"gfx1101", "AMD RDNA3 (RX 7700, RX 7800)", "rdna3"},
      {"gfx1102", "AMD RDNA3 (RX 7600)", "rdna3"},
      {"gfx1103", "AMD RDNA3 (Radeon 780M)", "rdna3"},
      {"gfx1150", "AMD RDNA3.5 (Radeon 890M), inferred", "rdna3"},
      {"gfx1151", "AMD RDNA3.5 (Radeon 8060S), inferred", "rdna3"},
      {"rdna4", "AMD RDNA4 (Radeon)", ""},
      {"gfx1200", "AMD RDNA4 (RX 9060)", "rdna4"},
      {"gfx1201", "AMD RDNA4 (RX 9070, AI PRO R9700)", "rdna4"},
      {"tpu", "Google TPU matrix unit (this project's definition)", ""},
      {"x86", "x86 CPUs: FMA, AVX-512 dot products, AMX tiles", ""},
  };
  return all;
}

const std::vector<MatrixInstruction>& catalogue() {
  static const Instructions instructions = build_catalogue();
  return instructions;
}

const std::vector<MatrixInstruction>& added_instructions() { return additions(); }

void add_instruction(const MatrixInstruction& instruction) {
  auto& added = additions();
  added.insert(added.begin(), instruction);
}

std::string version_text(int toolkit) {
  return std::to_string(toolkit / 100) + '.' + std::to_string(toolkit % 100);
}

std::optional<int> parse_toolkit(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc{} || major < 0 || major > 999) return {};
  if (dot == end) return major * 100;
  if (*dot != '.') return {};
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc{} || (rest != end && *rest != '.') || minor < 0 || minor > 99)
    return {};
  return major * 100 + minor;
}

int require_toolkit(std::string_view text, std::string_view where) {
  if (text.empty()) return newest_toolkit;
  if (const auto version = parse_toolkit(text)) return *version;
  throw formats::Error(std::string(where), formats::in_quotes(text) + " is not a version",
                       "such as 12.4 or 13.0");
}

std::optional<MatrixInstruction> find_instruction(std::string_view arch, std::string_view name,
                                                  int toolkit) {
  if (name.size() > Name{}.text.size()) return {};
  for (const MatrixInstruction& instruction : added_instructions())
    if (std::string_view(instruction.name) == name && instruction.arch == page_of(arch))
      return instruction;
  const ParsedName parsed = parse_name(name);
  const auto [first, last] = index().equal_range({page_of(arch), parsed.key});
  for (auto it = first; it != last; ++it) {
    const MatrixInstruction& instruction = *it->second;
    if (!instruction.toolkit.includes(toolkit) || !accepts_geometry(instruction, parsed)) continue;
    MatrixInstruction found = instruction;
    if (name.find('.') != std::string_view::npos) found.name = Name(name);
    if (instruction.shape.m == 0) found.shape.m = parsed.shape.m;
    if (instruction.shape.n == 0) found.shape.n = parsed.shape.n;
    return found;
  }
  return {};
}

MatrixInstruction require_instruction(std::string_view arch, std::string_view name,
                                      std::string_view where, int toolkit) {
  const std::string_view page = require_page(arch, where);
  if (const auto found = find_instruction(arch, name, toolkit)) return *found;
  const std::string key = parse_name(name).key;
  std::string message;
  if (index().count({page, key}) != 0) {
    message = "'" + formats::printable(name) + "' is an instruction of " +
              formats::printable(arch) + ", but not with this geometry, layout or toolkit " +
              version_text(toolkit);
  } else if (const std::string owners = owners_of(key, page); !owners.empty()) {
    message = "instruction '" + formats::printable(name) + "' is not in the catalogue of " +
              formats::printable(arch) + " (it is in that of " + owners + ")";
  } else {
    std::vector<std::string_view> names;
    for (const auto* list : {&added_instructions(), &catalogue()})
      for (const MatrixInstruction& instruction : *list)
        if (instruction.arch == page) names.push_back(instruction.name);
    message = formats::unknown_name("instruction", name, names);
  }
  throw formats::Error(std::string(where), message);
}

MatrixInstruction require_dot(std::string_view arch, std::string_view unit, const Format& inputs,
                              const Format& output, int k, std::string_view where, int toolkit) {
  const std::string_view page = require_page(arch, where);
  const MatrixInstruction* best = nullptr;
  std::string units;
  for (const MatrixInstruction& instruction : catalogue()) {
    if (instruction.arch != page) continue;
    const std::string_view family = formats::word_of(instruction.family);
    if (units.find(family) == std::string::npos)
      units += (units.empty() ? "" : ", ") + std::string(family);
    const bool same = family == unit && instruction.a == inputs && instruction.b == inputs &&
                      instruction.c == output && instruction.d == output &&
                      instruction.sparsity == Sparsity{} && instruction.scale == BlockScale{} &&
                      instruction.toolkit.includes(toolkit);
    // m8n8k4 is the tensor core's only where it is not emulated by scalar arithmetic.
    const bool scalar = instruction.shape == Shape{8, 8, 4} && instruction.steps.count > 1;
    if (same && !scalar && instruction.shape.k >= k &&
        (best == nullptr || instruction.shape.k < best->shape.k))
      best = &instruction;
  }
  if (best == nullptr) {
    throw formats::Error(std::string(where),
                         "no " + std::string(unit) + " instruction of " + std::string(arch) +
                             " multiplies " + formats::name_of(inputs) + " into " +
                             formats::name_of(output) + " with K of at least " + std::to_string(k),
                         "units " + units);
  }
  return *best;
}

}  // namespace guardbit::emulator
