#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/replay/handler.hpp"
#include "emulator/replay/recording.hpp"

// Computes every call of a recording again and compares bits.
namespace guardbit::emulator::replay {

/// The first element of a call's results that is not the recorded one.
struct FirstDifference {
  /// which of the call's tensors, lists flattened
  std::size_t result = 0;
  /// of the element in row-major order
  std::int64_t index = 0;
  /// codes
  std::uint64_t expected = 0, got = 0;
  formats::Format type;
};

struct CallResult {
  Status status = Status::unmodelled;
  /// Elements of results that are not data; those of them that were computed and are not the
  /// recorded ones; and those that are.
  std::int64_t outputs = 0, mismatches = 0, outputs_exact = 0;
  std::optional<FirstDifference> first;
  /// how it was computed, or why not
  std::string plan;
  /// of exact ones: computed before the result was looked at
  bool is_predicted = true;
};

struct Summary {
  std::int64_t calls = 0, exact = 0, differs = 0, unmodelled = 0, data = 0, unordered = 0;
  std::int64_t outputs = 0, outputs_exact = 0;
  /// outputs that came out right by what was known before, and by plans found by the result
  std::int64_t predicted = 0, explained = 0;

  void add(const CallResult& result);
};

struct Replay {
  std::vector<CallResult> calls;
  Summary summary;
  /// it was interrupted: the calls from here on were not replayed
  bool stopped = false;
};

struct ReplaySettings {
  /// 0: all
  int threads = 0;
  operators::Machine machine = {};
  PlanBook* plans = nullptr;
  /// asked now and then; true ends the replay
  std::function<bool()> interrupted = [] { return false; };
  /// told of the calls done
  std::function<void(std::size_t done)> progress = [](std::size_t) {};
};

/// formats::Error for a recording whose library has no measured models.
void require_measured_library(const Recording& recording);

Replay replay(const Recording& recording, const ReplaySettings& settings);

/// The one call, computed and compared with its recorded results.
CallResult replay_call(const Call& call, Context& context);

}  // namespace guardbit::emulator::replay
