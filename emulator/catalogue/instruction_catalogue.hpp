#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"

// The catalogue of instructions: what machines there are, what each of them computes, and which
// entry a name means.
namespace guardbit::emulator {

/// A machine of the catalogue. An alias has no page of its own: it computes like the machine it
/// names.
struct Arch {
  std::string_view name;
  std::string_view title;
  /// empty for machines with a page
  std::string_view alias_of;
};

/// Every machine, oldest first.
const std::vector<Arch>& architectures();

/// The machine whose page `arch` means: its own, its alias's target, or sm_90's for sm_90a.
/// formats::Error that begins with `where` when there is none.
std::string_view require_page(std::string_view arch, std::string_view where);

/// Every instruction of every machine that has a page.
const std::vector<MatrixInstruction>& catalogue();

/// Instructions that were added while the program runs, the newest first.
const std::vector<MatrixInstruction>& added_instructions();

/// Adds an instruction, of any machine: from then on its name means it, and no entry of the
/// catalogue. Called before anything executes.
void add_instruction(const MatrixInstruction& instruction);

/// The newest toolkit the catalogue knows, as major * 100 + minor: what is meant when none is
/// named.
inline constexpr int newest_toolkit = 1300;

/// A toolkit's version as NVIDIA writes it: 13.0 of 1300.
std::string version_text(int toolkit);

/// "13.0" as 1300; empty when the text is not a version.
std::optional<int> parse_toolkit(std::string_view text);

/// The toolkit that an option's text names, the newest where it is empty; formats::Error that
/// begins with `where` when it is not a version.
int require_toolkit(std::string_view text, std::string_view where);

/// The instruction that `arch` and `name` mean. The architecture may carry a suffix (sm_90a) or be
/// an alias; a mnemonic without qualifiers may be in upper or lower case and comes back as the
/// catalogue spells it; qualifiers may stand in any order that ptxas takes, operand layouts are
/// ignored where the instruction allows several, and M and N of wgmma and tcgen05 may be any that
/// the instruction has. M or N is 0 where the name leaves it open.
std::optional<MatrixInstruction> find_instruction(std::string_view arch, std::string_view name,
                                                  int toolkit = newest_toolkit);

/// find_instruction, or formats::Error that begins with `where` and names the nearest names.
MatrixInstruction require_instruction(std::string_view arch, std::string_view name,
                                      std::string_view where, int toolkit = newest_toolkit);

/// The dense instruction of `arch` whose family is `unit` (wmma, mma.sync, wgmma, tcgen05, mfma),
/// that multiplies `inputs` with `inputs` into `output` and has at least `k` products; the shortest
/// such K.
MatrixInstruction require_dot(std::string_view arch, std::string_view unit, const Format& inputs,
                              const Format& output, int k, std::string_view where,
                              int toolkit = newest_toolkit);

}  // namespace guardbit::emulator
