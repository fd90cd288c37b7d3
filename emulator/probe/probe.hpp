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
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emulator/engine/engines.hpp"
#include "emulator/model/instruction.hpp"
#include "emulator/probe/sum_tree.hpp"

namespace guardbit::emulator {

/// The operands of one dot product as codes: k of a and b, and `scale.count` scale factors of each.
struct Question {
  std::vector<std::uint64_t> a, b;
  std::uint64_t c = 0;
  std::vector<std::uint64_t> a_scale, b_scale;
};

/// An unknown unit. `answer` returns one code of format `d` for each question, which must depend on
/// that question alone. An exception from it ends the probe.
struct BlackBox {
  Format a{}, b{}, c{}, d{};
  BlockScale scale{};
  int k = 0;
  /// false: the unit has no C, and questions leave it +0
  bool has_addend = true;
  /// all NaN answers count as equal
  bool nans_alike = false;
  std::function<std::vector<std::uint64_t>(std::span<const Question>)> answer;
};

/// A question and the unit's answer.
struct Answered {
  Question question;
  std::uint64_t d = 0;
  /// d is a NaN, and any NaN counts as equal to it
  bool any_nan = false;
};

/// The value of one field of the arithmetic, and the evidence for it.
struct Finding {
  /// "kept_fraction_bits"
  std::string field;
  /// "25"
  std::string value;
  /// values that no answer excludes: "-999..-20"; empty if there are none
  std::string others;
  /// why these are not excluded
  std::string reason;
  /// the nearest value that an answer excludes
  std::string nearest_rejected;
  /// index in `answers` of that answer, if there is such a value
  std::size_t proof = 0;
  /// the answer that a unit with the rejected value would give
  std::uint64_t otherwise = 0;
};

/// Instructions of the catalogue that compute alike.
struct CatalogueMatch {
  std::vector<const MatrixInstruction*> instructions;
};

struct ProbeReport {
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
/// random questions. Throws formats::Error if K or the formats cannot be probed, if the number of
/// answers is wrong, if 1 * 1 is not 1, or if one question gets two different answers.
ProbeReport probe(const BlackBox& box, std::uint64_t seed = 1);

}  // namespace guardbit::emulator
