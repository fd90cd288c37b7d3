#include "emulator/replay/replay.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "emulator/replay/answer.hpp"
#include "emulator/replay/changed_contents.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::emulator::replay {
namespace {

/// Adds what comparing one of the call's tensors gives.
void compare(const Tensor& expected, const Tensor& computed, std::size_t number,
             CallResult& result) {
  const std::int64_t count = expected.count();
  result.outputs += count;
  if (std::ranges::equal(computed.bytes, expected.bytes)) {
    result.outputs_exact += count;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t wanted = operators::code_at(expected, i),
                        got = operators::code_at(computed, i);
    if (wanted == got) {
      ++result.outputs_exact;
      continue;
    }
    ++result.mismatches;
    if (!result.first) result.first = {number, i, wanted, got, expected.type};
  }
}

bool has_type_and_shape_of(const Tensor& computed, const Tensor& expected) {
  return computed.type == expected.type && computed.shape == expected.shape;
}

/// The recorded tensors that a call's results are to be compared with: its own, or what later
/// calls say of its changed arguments.
using Recorded = std::vector<const Tensor*>;

/// Of what was not compared: the elements, and for unordered results what is known of them.
void count_others(const Answer& answer, const Recorded& recorded, CallResult& result) {
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const std::int64_t count = recorded[i]->count();
    result.outputs += count;
    if (i >= answer.impossible.size() || !answer.impossible[i]) continue;
    result.mismatches += *answer.impossible[i];
    result.outputs_exact += count - *answer.impossible[i];
  }
  if (result.mismatches > 0) result.status = Status::differs;
}

CallResult judged(const Answer& answer, const Recorded& recorded, bool is_likely_of_cpu) {
  CallResult result;
  result.status = answer.status;
  result.plan = answer.plan;
  result.is_predicted = answer.is_predicted;
  if (answer.status == Status::data) return result;
  if (answer.status != Status::exact) {
    count_others(answer, recorded, result);
    return result;
  }
  std::size_t missing = 0, compared = 0;
  for (std::size_t i = 0; i < std::min(recorded.size(), answer.data_from); ++i) {
    if (recorded[i] == nullptr) continue;
    if (i >= answer.results.size() || !answer.results[i]) {
      result.outputs += recorded[i]->count();
      ++missing;
      continue;
    }
    if (!has_type_and_shape_of(*answer.results[i], *recorded[i])) {
      result = {};
      result.plan = "the model's result has another type or shape; " + answer.plan;
      count_others(unmodelled(""), recorded, result);
      return result;
    }
    compare(*recorded[i], *answer.results[i], i, result);
    ++compared;
  }
  if (result.first && is_likely_of_cpu) {
    result = {};
    result.status = Status::data;
    result.plan = "computed by the CPU, otherwise than the GPU computes it";
  } else if (result.first) {
    result.status = Status::differs;
  } else if (missing > 0) {
    result.status = Status::unmodelled;
    result.plan = std::to_string(missing) + " of its results have no model; " + answer.plan;
  } else if (compared == 0) {
    result.status = Status::data;
    result.plan = "its result is not recorded; " + answer.plan;
  }
  return result;
}

/// What the recording says of the results: those that the call gave, or the arguments that it
/// changed.
Recorded given_or_changed(const Answer& answer, const Call& call) {
  Recorded recorded = tensors_of(call.out);
  if (!recorded.empty()) return recorded;
  for (const std::string& name : answer.changed) {
    const auto found = call.written.find(name);
    if (found == call.written.end()) return {};
    const auto tensors = tensors_of(found->second);
    recorded.insert(recorded.end(), tensors.begin(), tensors.end());
  }
  return recorded;
}

/// What the results are to be compared with. Arguments that the call changed beside its results
/// become further results, where the recording says what became of them.
Recorded recorded_results(const Call& call, Answer& answer) {
  Recorded recorded = given_or_changed(answer, call);
  if (recorded.empty() || answer.status != Status::exact) return recorded;
  // Results that are data are not compared.
  recorded.resize(std::min(recorded.size(), answer.data_from));
  answer.data_from = std::numeric_limits<std::size_t>::max();
  for (auto& [name, tensor] : answer.also_changed) {
    const Tensor* written = call.written_tensor(name);
    if (written == nullptr) continue;
    answer.results.resize(recorded.size());
    answer.results.emplace_back(std::move(tensor));
    recorded.push_back(written);
  }
  return recorded;
}

/// Did the call change its arguments, and only later calls say to what?
bool is_seen_later(const Answer& answer, const Recorded& recorded) {
  return answer.status == Status::exact && !answer.changed.empty() && recorded.empty();
}

}  // namespace

CallResult replay_call(const Call& call, Context& context) {
  Answer answer = answer_of(call, context);
  const Recorded recorded = recorded_results(call, answer);
  return judged(answer, recorded, call.is_likely_of_cpu);
}

void Summary::add(const CallResult& result) {
  ++calls;
  switch (result.status) {
    case Status::exact: ++exact; break;
    case Status::differs: ++differs; break;
    case Status::unmodelled: ++unmodelled; break;
    case Status::data: ++data; break;
    case Status::unordered: ++unordered; break;
  }
  outputs += result.outputs;
  outputs_exact += result.outputs_exact;
  (result.is_predicted ? predicted : explained) += result.outputs_exact;
}

void require_measured_library(const Recording& recording) {
  constexpr std::string_view measured = "2.11.";
  if (recording.library.empty() || recording.library.starts_with(measured)) return;
  throw formats::Error(formats::printable(recording.path),
                       "made by PyTorch " + formats::printable(recording.library, 40) +
                           ", whose kernels were not measured",
                       "PyTorch 2.11");
}

Replay replay(const Recording& recording, const ReplaySettings& settings) {
  Replay replay;
  replay.calls.resize(recording.calls.size());
  std::map<std::string, std::string> flags = recording.metadata;
  Context context{.machine = settings.machine,
                  .flags = &flags,
                  .plans = settings.plans,
                  .threads = formats::thread_count(settings.threads)};
  std::unique_ptr<ChangedContents> contents;
  /// calls that changed arguments to something that no later call has
  std::vector<std::size_t> open;
  std::size_t touched = 0;
  constexpr std::size_t most_touched = std::size_t{256} << 20;
  for (std::size_t i = 0; i < recording.calls.size(); ++i) {
    settings.progress(i);
    if (settings.interrupted()) {
      replay.stopped = true;
      replay.calls.resize(i);
      break;
    }
    const Call& call = recording.calls[i];
    for (const auto& [name, value] : call.changed_flags) flags[name] = value;
    Answer answer = answer_of(call, context);
    Recorded recorded = recorded_results(call, answer);
    if (is_seen_later(answer, recorded)) {
      if (!contents) contents = std::make_unique<ChangedContents>(recording);
      for (const auto& result : answer.results)
        recorded.push_back(result ? contents->find_equal(i, *result) : nullptr);
      if (std::ranges::find(recorded, nullptr) != recorded.end()) open.push_back(i);
    }
    replay.calls[i] = judged(answer, recorded, call.is_likely_of_cpu);
    for (const Tensor* tensor : recorded) touched += tensor == nullptr ? 0 : tensor->bytes.size();
    for (const Value& value : call.args) {
      for (const Tensor* tensor : tensors_of(value)) touched += tensor->bytes.size();
    }
    if (touched > most_touched) {
      forget_pages(recording);
      touched = 0;
    }
  }
  for (const std::size_t i : open) {
    const Answer answer = answer_of(recording.calls[i], context);
    replay.calls[i] = judged(answer, contents->find_others(i, answer.results), false);
  }
  for (const CallResult& result : replay.calls) replay.summary.add(result);
  return replay;
}

}  // namespace guardbit::emulator::replay
