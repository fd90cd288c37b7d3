#pragma once

// The probe infers the arithmetic of an unknown matrix unit, or of a program, from results alone
// (NUMERICS 7). The unit is a black box: it takes K elements of A and of B and an addend, and
// returns one result. The report gives the order of additions, the fields of the arithmetic with
// evidence, and the instructions of the catalogue that compute so. To probe a function of your own,
// link guardbit::emulator:
//
//   BlackBox box{.a = fp32, .b = fp32, .c = fp32, .d = fp32, .k = 32, .answer = my_dot_products};
//   const ProbeReport report = probe(box);

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/engines.hpp"
#include "emulator/model/instruction.hpp"
#include "emulator/probe/black_box.hpp"
#include "emulator/probe/findings.hpp"
#include "emulator/probe/sum_tree.hpp"

namespace guardbit::emulator {

struct ProbeReport {
  /// the formats of what was asked, which are narrower than the unit's own where `narrowed` says so
  Format a{}, b{}, c{}, d{};
  /// why; empty where the formats are the unit's own
  std::string narrowed;
  SumTree tree;
  bool tree_observable = false;
  /// what could not be observed of the tree
  std::string tree_note;
  /// scalar arithmetic of the nodes, if it gives every ordinary answer
  std::string tree_arithmetic;
  /// answers that it does not give; all NaNs count as equal
  std::size_t tree_mismatches = 0;
  /// some list of the model's steps adds in the order of the tree
  bool has_structure = false;
  /// `instruction` gives every answer
  bool explained = false;
  /// except signs and payloads of NaNs, which no NanPolicy gives
  bool nans_alike = false;
  /// the arithmetic that gives the most answers
  MatrixInstruction instruction;
  /// answers that `instruction` does not give
  std::size_t mismatches = 0;
  /// the fields of `instruction`
  std::vector<Finding> findings;
  /// other structures that also give every answer
  std::vector<std::string> alike;
  std::vector<CatalogueMatch> catalogue;
  /// all questions except those for the tree
  std::vector<Answered> answers;
};

/// An instruction executed by an engine, as a black box; of a sparse instruction, its stored
/// products. The engine and the instruction must outlive the box.
BlackBox black_box(const Engine& engine, const MatrixInstruction& instruction, int threads = 0);

/// The largest K of a probe. Above max_k only the tree is found, and no instruction.
inline constexpr int most_leaves = 4096;

/// Asks until one arithmetic is left, and confirms it with held-out questions. `seed` chooses the
/// random questions. A unit that no arithmetic explains is asked again in narrower formats, if its
/// answers are of one or only these bits of its operands count. Throws formats::Error if K or the
/// formats cannot be probed, if the number of answers is wrong, if 1 * 1 is not 1, or if one
/// question gets two different answers.
ProbeReport probe(const BlackBox& box, std::uint64_t seed = 1);

}  // namespace guardbit::emulator
