#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/replay/comparison.hpp"
#include "emulator/replay/difference.hpp"
#include "emulator/replay/replay.hpp"

// What `guardbit replay` says of recordings.
namespace guardbit::tools {

/// A recording and what became of its calls.
struct ReplayedFile {
  std::string path;
  /// the operators' names, in the order of the calls
  std::vector<std::string> ops;
  emulator::replay::Replay replay;
};

/// A line for each call: its number, what became of it, the operator, how it was computed.
void print_calls(std::ostream& out, const ReplayedFile& file);
/// How many calls and outputs came out right.
void print_summary(std::ostream& out, const ReplayedFile& file);
nlohmann::ordered_json to_json(const ReplayedFile& file);
/// What the line of a call says after its outputs.
std::string words_of(const emulator::replay::CallResult& call);
/// "99.99 %", and never 100 % of what is not all.
std::string percent_text(std::int64_t part, std::int64_t whole);

/// Two recordings compared, and how each of the first calls with unequal results was computed.
struct ComparedFiles {
  std::string a, b;
  emulator::replay::Comparison comparison;
  emulator::replay::CallResult of_a, of_b;
  /// why they are unequal
  emulator::replay::Difference difference;
};
void print_comparison(std::ostream& out, const ComparedFiles& files);
nlohmann::ordered_json to_json(const ComparedFiles& files);

}  // namespace guardbit::tools
