#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/operators/machine.hpp"
#include "emulator/replay/call.hpp"

// What is known about operators: for each a function that computes its results from a call's
// arguments. Comparing them with recorded ones is the replay's (replay.hpp), which lets a running
// program use the same functions.
namespace guardbit::emulator::replay {

class PlanBook;

/// What became of a call.
enum class Status : std::uint8_t {
  /// every modelled result is the recorded one, bit for bit
  exact,
  differs,
  /// no model, or none for these arguments
  unmodelled,
  /// it moves data, or draws numbers whose generator is not recorded
  data,
  /// the bits depend on timing (atomics, look-back scans); checked to be possible where that can be
  unordered,
};
constexpr auto words(Status) {
  return std::array{"exact", "differs", "unmodelled", "data", "unordered"};
}

/// What calls are computed with.
struct Context {
  operators::Machine machine = {};
  /// of the recording: names of flags and what they are set to, as in allow_tf32 and true
  const std::map<std::string, std::string>* flags = nullptr;
  /// plans of products; null: products are not modelled
  PlanBook* plans = nullptr;
  int threads = 1;
  /// `Call.out` holds what the call gave. Of a program that runs it does not: its tensors have the
  /// types, shapes and strides of the results, and elements that say nothing.
  bool has_results = true;

  bool flag(std::string_view name, bool absent) const;
};

/// Of 1000 calls like one whose plan is recorded, or follows from the operator, so many have it.
inline constexpr int sure = 1000;

/// The results of a call.
struct Answer {
  /// One for each tensor that the call gives, in order, lists flattened; nothing for those that are
  /// not computed. For calls that change their arguments and give nothing (aten._foreach_add_,
  /// aten._fused_adamw_), what becomes of the arguments named in `changed`.
  std::vector<std::optional<Tensor>> results;
  /// How it was computed, in words or as a plan: "512 threads, vectors of 4, two stages".
  std::string plan;
  /// exact means: compare. unmodelled, data and unordered stay what they are.
  Status status = Status::exact;
  /// For calls that give nothing: the names of the arguments that change, in the order of
  /// `results`, each with all of its tensors.
  std::vector<std::string> changed = {};
  /// Results from this one on are data, as the state of a generator is.
  std::size_t data_from = std::numeric_limits<std::size_t>::max();
  /// of products: the plan was known before the result was looked at
  bool is_predicted = true;
  /// Of products: of 1000 recorded calls like it at least so many got this plan; 0 where it is what
  /// such a call usually gets.
  int agree = sure;
  /// Arguments that the call changes and that are not among its results, as they are afterwards.
  std::vector<std::pair<std::string, Tensor>> also_changed = {};
  /// By how much the call moves the generator's offset on.
  std::uint64_t drawn = 0;
  /// Of unordered calls: for each result how many of its elements are no possible outcome; nothing
  /// for those that were not checked.
  std::vector<std::optional<std::int64_t>> impossible = {};
};

/// An answer for a call that has no model, with the reason.
Answer unmodelled(std::string reason);
/// An answer for a call that moves data.
Answer moves_data(std::string how = "moves data only");
/// The same, as a handler.
Answer moves(const Call& call, Context& context);
/// An answer that is to be compared.
Answer computed(std::vector<std::optional<Tensor>> results, std::string plan);

/// The tensor, which has a type of numbers that arithmetic is modelled in; UnknownArguments else.
const Tensor& floating(const Tensor& tensor);
/// The same, or one of FP64.
const Tensor& floating_or_double(const Tensor& tensor);

struct Handler {
  /// as in aten.add.Tensor; "aten.add" stands for every overload that has no entry of its own
  std::string_view op;
  /// Results by the arguments alone. Reads the elements of `call.out` only to check what is
  /// unordered and to find plans of products, and only where the context has results.
  Answer (*answer)(const Call&, Context&);
};

}  // namespace guardbit::emulator::replay
