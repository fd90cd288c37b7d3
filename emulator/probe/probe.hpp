#pragma once

// Infers the arithmetic of an unknown unit from outside (NUMERICS 7). The unit is a black box that
// answers questions: K factors of A and of B, an addend, one result. Include this header and link
// guardbit::emulator to question a function of your own:
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

/// An unknown unit. `answer` gives one code of `d` for each question, which must depend on that
/// question alone; what it throws ends the probe.
struct BlackBox {
  Format a{}, b{}, c{}, d{};
  BlockScale scale{};
  int k = 0;
  bool has_addend = true;   ///< false: C is not passed on, and questions leave it +0
  bool nans_alike = false;  ///< answers that are NaN count as any NaN
  std::function<std::vector<std::uint64_t>(std::span<const Question>)> answer;
};

/// A question with the unit's answer.
struct Answered {
  Question question;
  std::uint64_t d = 0;
  bool any_nan = false;  ///< d is a NaN that stands for every NaN
};

/// What was found out about one field of the arithmetic.
struct Finding {
  std::string field;   ///< "kept_fraction_bits"
  std::string value;   ///< "25"
  std::string others;  ///< values that no answer rules out: "-999..-20"; empty: told apart
  std::string reason;  ///< why they could not be told apart
  std::string nearest_rejected;  ///< the nearest value that an answer rules out
  std::size_t proof = 0;         ///< index in `answers` of that answer, when there is such a value
  std::uint64_t otherwise = 0;   ///< what the unit would have answered with the rejected value
};

/// Rows of the catalogue that compute alike.
struct CatalogueMatch {
  std::vector<const MatrixInstruction*> rows;
};

struct ProbeReport {
  SumTree tree;
  bool tree_observable = false;
  std::string tree_note;        ///< what the tree does not show
  std::string tree_arithmetic;  ///< how two-way nodes add, when that gives every ordinary answer
  std::size_t tree_mismatches = 0;  ///< answers that it does not give, NaNs compared as NaN
  bool has_structure = false;       ///< the model has rows that add in the order of the tree
  bool explained = false;           ///< `row` gives every answer
  bool nans_alike = false;          ///< but for signs and payloads of NaNs, which no policy gives
  MatrixInstruction row;            ///< the arithmetic that gives the most answers
  std::size_t mismatches = 0;       ///< answers that `row` does not give
  std::vector<Finding> findings;    ///< fields of the accumulations of `row`
  std::vector<std::string> alike;   ///< other structures that give every answer
  std::vector<CatalogueMatch> catalogue;
  std::vector<Answered> answers;  ///< everything asked, but the tree's questions
};

/// A row as an engine executes it, from outside; of a sparse row, its stored products. The engine
/// and the row must live as long as the box.
BlackBox black_box(const Engine& engine, const MatrixInstruction& row, int threads = 0);

/// The largest K whose tree can be revealed. Arithmetics are looked for up to max_k.
inline constexpr int most_leaves = 4096;

/// Questions the unit until one arithmetic is left, and confirms it on fresh data. `seed` chooses
/// the random questions. formats::Error when the unit cannot be questioned: a K or formats that are
/// not for it, another number of answers than questions, 1 * 1 that is not 1, two answers to one
/// question.
ProbeReport probe(const BlackBox& box, std::uint64_t seed = 1);

}  // namespace guardbit::emulator
