#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "tests/mutation/functions/function_survey.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/mutant_programs.hpp"

namespace guardbit::tests {

namespace {

using emulator::Function;
using emulator::OperandCodes;
using emulator::ResultCodes;
using Kind = FunctionMutant::Kind;

/// Inputs and results of a part of a sweep.
class Part {
 public:
  static constexpr std::size_t size = 1024;

  explicit Part(const Function& function)
      : function_(function), kernel_(find_mutant_kernel(function.name)) {}

  void take(std::uint64_t begin) {
    for (std::size_t i = 0; i < size; ++i) {
      const OperandCodes codes = input_of(function_, begin + i);
      for (std::size_t k = 0; k < function_.operands; ++k)
        operands_.at(k)[i] = static_cast<std::uint32_t>(codes.at(k));
    }
    run({}, expected_);
  }
  /// The place of the first input that notices.
  std::optional<std::size_t> first_notice(const std::vector<FunctionMutant>& mutants) {
    run(mutants, found_);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t k = 0; k < function_.results; ++k)
        if (found_.at(k)[i] != expected_.at(k)[i] && is_confirmed(i, mutants)) return i;
    return std::nullopt;
  }

 private:
  using Codes = std::array<std::uint32_t, size>;

  /// A CPU's NaNs have other codes than the device's, which changed programs may show.
  bool is_confirmed(std::size_t i, const std::vector<FunctionMutant>& mutants) const {
    const OperandCodes codes = {operands_[0][i], operands_[1][i], operands_[2][i], operands_[3][i]};
    return results_by(function_, codes, mutants) != results_by(function_, codes, {});
  }

  void run(const std::vector<FunctionMutant>& mutants, std::array<Codes, 2>& results) {
    const Mutated mutated(mutants);
    if (kernel_ != nullptr) {
      kernel_->run(
          {operands_[0].data(), operands_[1].data(), operands_[2].data(), operands_[3].data()},
          {results[0].data(), results[1].data()}, size);
      return;
    }
    const MutantProgram& program = *find_mutant_program(function_.name);
    for (std::size_t i = 0; i < size; ++i) {
      const ResultCodes codes =
          program.results({operands_[0][i], operands_[1][i], operands_[2][i], operands_[3][i]});
      for (std::size_t k = 0; k < function_.results; ++k)
        results.at(k)[i] = static_cast<std::uint32_t>(codes.at(k));
    }
  }

  const Function& function_;
  const MutantKernel* kernel_;
  std::array<Codes, 4> operands_{};
  std::array<Codes, 2> expected_{}, found_{};
};

/// Operands that programs may treat apart, constants and what is next to them, then drawn ones.
std::vector<OperandCodes> candidates(const Function& function, const ProgramParts& parts,
                                     std::size_t count) {
  std::vector<OperandCodes> all;
  const auto add_with = [&](std::uint32_t x) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      for (std::size_t i = 0; i < function.operands; ++i) {
        OperandCodes codes = input_of(function, all.size());
        if (function.formats.operands.at(i) == formats::fp32) codes.at(i) = x ^ sign;
        all.push_back(codes);
      }
    }
  };
  for (std::uint64_t i = 0; i < emulator::special_argument_count; ++i)
    add_with(emulator::special_argument(i));
  for (const auto* const constants : {&parts.numbers, &parts.words})
    for (const std::uint32_t c : *constants)
      for (std::uint32_t near = 0; near < 5; ++near) add_with(c + near - 2);
  for (std::uint64_t i = 0; all.size() < count; ++i) {
    OperandCodes codes = input_of(function, i);
    // every other one about 1
    if (i % 2 == 0 && function.operands == 1)
      codes[0] = emulator::argument_of_exponents(emulator::inputs::mixed(i), -12, 4);
    all.push_back(codes);
  }
  return all;
}

/// What notices a mutant: operands, or nothing.
using Notice = std::optional<OperandCodes>;

class Search {
 public:
  Search(const Function& function, std::uint64_t inputs)
      : function_(function), inputs_(std::min(inputs, settling_inputs(function))) {
    ProgramParts first;
    for (const OperandCodes& codes : candidates(function, {}, 800))
      add_parts(function, codes, first);
    candidates_ = candidates(function, first, 3000);
    for (const OperandCodes& codes : candidates_) {
      add_parts(function, codes, parts_);
      results_.push_back(results_by(function, codes, {}));
    }
  }

  FunctionSurvey survey() {
    add_constants();
    add_steps();
    choose_vectors();
    return survey_;
  }

 private:
  Notice by_candidates(const FunctionMutant& mutant) const {
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (results_by(function_, candidates_[i], {mutant}) != results_[i]) return candidates_[i];
    return std::nullopt;
  }
  Notice by_inputs(const std::vector<FunctionMutant>& mutants, std::uint64_t begin,
                   std::uint64_t end) const {
    const auto number = first_notice(function_, mutants, begin, end);
    return number ? Notice(input_of(function_, *number)) : std::nullopt;
  }
  std::uint64_t few_inputs() const { return std::min<std::uint64_t>(inputs_, 1 << 22); }

  using Mutants = std::vector<FunctionMutant>;

  /// Changes of one place, and where nothing notices them the fewest more that are.
  void add_constants() {
    Mutants all;
    for (const std::uint32_t c : parts_.numbers)
      for (const int direction : {1, -1}) all.push_back({Kind::number, c, direction});
    for (const std::uint32_t c : parts_.words)
      for (const int direction : {1, -1}) all.push_back({Kind::word, c, direction});
    std::erase_if(all, [](const FunctionMutant& mutant) { return !constant_change(mutant); });
    std::vector<std::uint32_t> places;
    std::vector<Mutants> groups;
    for (const FunctionMutant& mutant : all) {
      const Notice notice = by_candidates(mutant);
      places.push_back(notice ? keep(mutant, *notice) : 0);
      if (!notice) groups.push_back({mutant});
    }
    const auto found = first_notices(function_, groups, 0, few_inputs());
    Mutants up, down;
    for (std::size_t i = 0, g = 0; i < all.size(); ++i) {
      if (places[i] != 0) continue;
      const auto& number = found[g++];
      if (number) {
        places[i] = keep(all[i], input_of(function_, *number));
      } else {
        (all[i].places > 0 ? up : down).push_back(all[i]);
      }
    }
    settle(up);
    settle(down);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (places[i] == 0) places[i] = is_kept(all[i]) ? 1 : places_noticed(all[i]);
    for (std::size_t i = 0; i < all.size(); ++i) add_fact(all[i], places[i]);
  }
  void add_fact(const FunctionMutant& mutant, std::uint32_t places) {
    const bool is_word = mutant.kind == Kind::word;
    auto& facts = survey_.constants;
    if (facts.empty() || facts.back().is_word != is_word || facts.back().constant != mutant.at)
      facts.push_back({std::string(function_.name), is_word, mutant.at});
    (mutant.places > 0 ? facts.back().up : facts.back().down) = places;
  }

  /// More than one, or 0 if none are noticed.
  std::uint32_t places_noticed(const FunctionMutant& one) {
    const auto mutant = [&](int power) {
      return FunctionMutant{one.kind, one.at, one.places * (std::int64_t{1} << power)};
    };
    for (int power = 1; power < 32 && constant_change(mutant(power)); ++power)
      if (const Notice far = by_candidates(mutant(power))) return keep(mutant(power), *far);
    std::vector<Mutants> groups;
    for (int power = 1; power < 32 && constant_change(mutant(power)); ++power)
      groups.push_back({mutant(power)});
    const auto found = first_notices(function_, groups, 0, few_inputs());
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (found[i]) return keep(groups[i][0], input_of(function_, *found[i]));
    std::fprintf(stderr, "%s: nothing notices %s\n", std::string(function_.name).c_str(),
                 text_of(one).c_str());
    return 0;
  }

  void add_steps() {
    std::vector<FunctionMutant> group;
    std::vector<Mutants> groups;
    for (const FunctionMutant& mutant : step_mutants(parts_)) {
      if (const Notice notice = by_candidates(mutant)) {
        keep(mutant, *notice);
      } else {
        groups.push_back({mutant});
      }
    }
    const auto found = first_notices(function_, groups, 0, few_inputs() / 4);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (found[i]) {
        keep(groups[i][0], input_of(function_, *found[i]));
      } else {
        group.push_back(groups[i][0]);
      }
    }
    settle(group);
    for (const FunctionMutant& mutant : group)
      survey_.steps.push_back(
          {std::string(function_.name), static_cast<StepPlace>(mutant.at), mutant.change});
  }
  /// Takes out what an input notices.
  void settle(Mutants& group) {
    for (const MutantNotice& notice : notices_of_group(function_, group, inputs_)) {
      keep(notice.mutant, notice.input);
      std::erase(group, notice.mutant);
    }
  }

  bool is_kept(const FunctionMutant& mutant) const {
    return std::ranges::any_of(noticed_, [&](const MutantNotice& n) { return n.mutant == mutant; });
  }
  std::uint32_t keep(const FunctionMutant& mutant, const OperandCodes& input) {
    noticed_.push_back({mutant, input});
    return static_cast<std::uint32_t>(mutant.places < 0 ? -mutant.places : mutant.places);
  }

  /// Every input in turn that notices what those before do not; last ones first, which are rare.
  void choose_vectors() {
    std::vector<std::pair<OperandCodes, ResultCodes>> chosen;
    for (auto n = noticed_.rbegin(); n != noticed_.rend(); ++n) {
      const bool is_noticed = std::ranges::any_of(chosen, [&](const auto& each) {
        return results_by(function_, each.first, {n->mutant}) != each.second;
      });
      if (is_noticed) continue;
      const ResultCodes right = results_by(function_, n->input, {});
      if (results_by(function_, n->input, {n->mutant}) == right)
        std::fprintf(stderr, "%s: the kernel alone notices %s\n",
                     std::string(function_.name).c_str(), text_of(n->mutant).c_str());
      chosen.emplace_back(n->input, right);
    }
    for (const auto& [operands, results] : chosen) {
      FunctionVector v = {std::string(function_.name), {}, results};
      std::copy_n(operands.begin(), function_.operands, v.operands.begin());
      survey_.vectors.push_back(v);
    }
  }

  const Function& function_;
  std::uint64_t inputs_;
  std::vector<OperandCodes> candidates_;
  std::vector<ResultCodes> results_;
  ProgramParts parts_;
  std::vector<MutantNotice> noticed_;
  FunctionSurvey survey_;
};

}  // namespace

std::vector<std::optional<std::uint64_t>> first_notices(
    const Function& function, const std::vector<std::vector<FunctionMutant>>& groups,
    std::uint64_t begin, std::uint64_t end) {
  std::vector<std::optional<std::uint64_t>> notices(groups.size());
  std::size_t open = groups.size();
  Part part(function);
  for (std::uint64_t at = begin; at < end && open > 0; at += Part::size) {
    part.take(at);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (notices[i]) continue;
      const auto place = part.first_notice(groups[i]);
      if (!place) continue;
      notices[i] = at + *place;
      --open;
    }
  }
  return notices;
}

std::optional<std::uint64_t> first_notice(const Function& function,
                                          const std::vector<FunctionMutant>& mutants,
                                          std::uint64_t begin, std::uint64_t end) {
  return first_notices(function, {mutants}, begin, end).front();
}

std::vector<MutantNotice> notices_of_group(const Function& function,
                                           std::vector<FunctionMutant> group, std::uint64_t inputs,
                                           std::uint64_t begin) {
  std::vector<MutantNotice> notices;
  std::vector<FunctionMutant> alone;
  const auto is_noticed = [&](const OperandCodes& input, const std::vector<FunctionMutant>& m) {
    return results_by(function, input, m) != results_by(function, input, {});
  };
  const auto take_out = [&](const OperandCodes& input) {
    const std::size_t before = group.size();
    std::erase_if(group, [&](const FunctionMutant& mutant) {
      if (!is_noticed(input, {mutant})) return false;
      notices.push_back({mutant, input});
      return true;
    });
    if (group.size() != before) return;
    // Only several together are noticed: the first one goes without which the others are not.
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::vector<FunctionMutant> others = group;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (i + 1 < group.size() && is_noticed(input, others)) continue;
      alone.push_back(group[i]);
      group = others;
      return;
    }
  };
  // Until all inputs in a row notice nothing of what is left.
  std::uint64_t at = begin, quiet = 0;
  while (!group.empty() && quiet < inputs) {
    const std::uint64_t end = std::min(inputs, at + (inputs - quiet));
    const auto number = first_notice(function, group, at, end);
    if (!number) {
      quiet += end - at;
      at = end == inputs ? 0 : end;
      continue;
    }
    take_out(input_of(function, *number));
    at = *number / Part::size * Part::size;
    quiet = 0;
  }
  std::vector<std::vector<FunctionMutant>> each;
  for (const FunctionMutant& mutant : alone) each.push_back({mutant});
  const auto found = first_notices(function, each, 0, inputs);
  for (std::size_t i = 0; i < alone.size(); ++i)
    if (found[i]) notices.push_back({alone[i], input_of(function, *found[i])});
  return notices;
}

std::vector<MutantNotice> notices_of_unobservable(const Function& function,
                                                  const FunctionSurvey& survey,
                                                  std::uint64_t inputs) {
  std::vector<std::vector<FunctionMutant>> groups(3);
  for (const UnobservableStep& step : survey.steps)
    groups[0].push_back({Kind::step, step.place, 0, step.change});
  for (const ConstantFact& fact : survey.constants) {
    const Kind kind = fact.is_word ? Kind::word : Kind::number;
    if (fact.up != 1) groups[1].push_back({kind, fact.constant, 1});
    if (fact.down != 1) groups[2].push_back({kind, fact.constant, -1});
  }
  for (auto& group : groups)
    std::erase_if(group, [](const FunctionMutant& mutant) {
      return mutant.kind != Kind::step && !constant_change(mutant);
    });
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  const auto found = first_notices(function, groups, 0, inputs);
  std::vector<MutantNotice> notices;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (found[i])
      std::ranges::copy(
          notices_of_group(function, groups[i], inputs, *found[i] / Part::size * Part::size),
          std::back_inserter(notices));
  return notices;
}

FunctionSurvey settled(const Function& function, FunctionSurvey survey, std::uint64_t inputs) {
  const auto is_noticed = [&](const FunctionMutant& mutant) {
    return std::ranges::any_of(survey.vectors, [&](const FunctionVector& v) {
      return results_by(function, v.operands, {mutant}) != v.results;
    });
  };
  const auto add_vectors = [&](const std::vector<MutantNotice>& notices) {
    for (const MutantNotice& n : notices) {
      if (is_noticed(n.mutant)) continue;
      FunctionVector v = {std::string(function.name), {}, results_by(function, n.input, {})};
      std::copy_n(n.input.begin(), function.operands, v.operands.begin());
      survey.vectors.push_back(v);
    }
  };
  add_vectors(notices_of_unobservable(function, survey, inputs));
  // Vectors may take branches that none took before.
  ProgramParts parts;
  for (const FunctionVector& v : survey.vectors) add_parts(function, v.operands, parts);
  std::vector<FunctionMutant> unlisted = step_mutants(parts);
  std::erase_if(unlisted, [&](const FunctionMutant& mutant) {
    return is_noticed(mutant) || std::ranges::any_of(survey.steps, [&](const auto& step) {
             return step.place == mutant.at && step.change == mutant.change;
           });
  });
  add_vectors(notices_of_group(function, unlisted, inputs));
  for (const FunctionMutant& mutant : unlisted)
    survey.steps.push_back(
        {std::string(function.name), static_cast<StepPlace>(mutant.at), mutant.change});
  return tidied(function, survey);
}

FunctionSurvey search_function_survey(const Function& function, std::uint64_t inputs) {
  return Search(function, inputs).survey();
}

FunctionSurvey tidied(const Function& function, FunctionSurvey survey) {
  const auto is_noticed = [&](const FunctionMutant& mutant) {
    return std::ranges::any_of(survey.vectors, [&](const FunctionVector& v) {
      return results_by(function, v.operands, {mutant}) != v.results;
    });
  };
  std::erase_if(survey.steps, [&](const UnobservableStep& step) {
    return is_noticed({Kind::step, step.place, 0, step.change});
  });
  for (ConstantFact& fact : survey.constants) {
    const Kind kind = fact.is_word ? Kind::word : Kind::number;
    for (const int direction : {1, -1}) {
      const FunctionMutant mutant = {kind, fact.constant, direction};
      if (constant_change(mutant) && is_noticed(mutant)) (direction > 0 ? fact.up : fact.down) = 1;
    }
  }
  return survey;
}

}  // namespace guardbit::tests
