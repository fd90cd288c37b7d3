#include <fstream>
#include <iterator>
#include <sstream>

#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/mutation/survey.hpp"

// Every field of every instruction, changed by one step, is noticed by a committed vector or
// provably cannot be. guardbit_update_mutation writes the vectors and the page.
namespace {

using namespace guardbit::tests;

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text_of(const std::vector<InstructionVectors>& vectors) {
  std::ostringstream text;
  write_vectors(text, vectors);
  return text.str();
}

const std::vector<InstructionVectors>& committed_vectors() {
  static const std::vector<InstructionVectors> vectors = read_vectors(vectors_file());
  return vectors;
}

const std::vector<Survey>& surveys() {
  static const std::vector<Survey> all = survey_catalogue(committed_vectors());
  return all;
}

using guardbit::tests::text_of;

std::string text_of(const MatrixInstruction& instruction, const Mutant& mutant) {
  return text_of(instruction) + "\n" + mutant.field + ": " + mutant.from + " -> " + mutant.to;
}

/// Mutants that candidates [0, count) notice, with the operands; for each mutant the first.
std::vector<std::string> noticed_by_search(const MatrixInstruction& instruction,
                                           std::vector<Mutant> mutants, std::uint64_t count) {
  std::vector<std::string> noticed;
  const bool any_nan = judge_of(instruction).nan_is_any_nan;
  for (std::uint64_t i = 0; i < count && !mutants.empty(); ++i) {
    TestVector v = candidate(instruction, i);
    const auto answer = computed(instruction, v);
    if (!answer) continue;
    v.d = *answer;
    std::erase_if(mutants, [&](const Mutant& mutant) {
      const bool seen = notices(v, mutant, any_nan);
      if (seen) noticed.push_back(text_of(instruction, mutant) + "\n" + text_of(v.x));
      return seen;
    });
  }
  return noticed;
}

/// Fails for every mutant of `mutants(instruction)` that candidates [0, count) notice.
template <class Mutants>
void expect_unnoticed(std::uint64_t count, std::string_view claim, Mutants mutants) {
  std::vector<std::vector<std::string>> noticed(arithmetics().size());
  guardbit::formats::parallel_for(noticed.size(), 1, 0, [&](std::size_t begin, std::size_t) {
    const MatrixInstruction& instruction = arithmetics()[begin].instruction;
    noticed[begin] = noticed_by_search(instruction, mutants(instruction), count);
  });
  for (const auto& list : noticed) {
    for (const std::string& text : list) FAIL_CHECK(claim << ", but noticed: " << text);
  }
  CHECK(noticed.size() > 100);
}

std::vector<Mutant> unobservable_mutants_of(const MatrixInstruction& instruction) {
  std::vector<Mutant> list = mutants_of(instruction);
  std::erase_if(list, [&](const Mutant& mutant) { return !unobservable(instruction, mutant); });
  return list;
}

/// Changes of fields that the table says no step of the instruction reads.
std::vector<Mutant> unread_mutants_of(const MatrixInstruction& instruction) {
  std::vector<Mutant> list;
  for (int i = 0; i < instruction.steps.count; ++i) {
    for (const SpecField& field : spec_fields()) {
      const guardbit::emulator::Step& step = instruction.steps.list.at(static_cast<std::size_t>(i));
      // Groups exist only with scales: an instruction without them cannot have any.
      if (field.read(instruction, step) || field.name == "exact_group") continue;
      const long value = field.get(step.spec);
      for (const long other : field.neighbours(value, step)) {
        Mutant mutant{instruction,       Place::spec,      i, std::string(field.name),
                      field.text(value), field.text(other)};
        field.set(mutant.instruction.steps.list.at(static_cast<std::size_t>(i)).spec, other);
        list.push_back(std::move(mutant));
      }
    }
  }
  return list;
}

}  // namespace

TEST_CASE("the committed vectors are what the oracle says, and the model agrees") {
  std::size_t count = 0;
  for (const InstructionVectors& vectors : committed_vectors()) {
    const Judge oracle = judge_of(vectors.instruction);
    for (const TestVector& v : vectors.list) {
      INFO(text_of(vectors.instruction) << "\n" << text_of(v.x));
      CHECK(oracle.answer(gathered(vectors.instruction, v)) == v.d);
      const auto answer = computed(vectors.instruction, v);
      REQUIRE(answer);
      CHECK(agree(vectors.instruction, oracle, *answer, v.d));
      ++count;
    }
  }
  CHECK(count > 500);
  CHECK(text_of(committed_vectors()) == read_text(vectors_file()));
}

TEST_CASE("the instructions of an arithmetic are judged alike") {
  for (const SharedArithmetic& shared : arithmetics()) {
    const std::string rule = judge_of(shared.instruction).rule;
    for (const MatrixInstruction* instruction : shared.instructions) {
      INFO(text_of(*instruction));
      CHECK(judge_of(*instruction).rule == rule);
    }
  }
}

TEST_CASE("every change of a field is noticed or provably unobservable") {
  for (const Survey& survey : surveys()) {
    for (const Finding& f : survey.findings) {
      if (!f.noticed() && !f.unobservable) {
        FAIL_CHECK(text_of(survey.instruction, f.mutant) << "\nis noticed by no committed vector");
      }
      const bool contradicted =
          f.by_vector || (f.by_recording && !f.unobservable.recording_may_tell);
      if (f.unobservable && contradicted) {
        FAIL_CHECK(text_of(survey.instruction, f.mutant)
                   << "\nis noticed, although " << f.unobservable.reason);
      }
    }
  }
  CHECK(surveys().size() > 100);
}

TEST_CASE("what is called unobservable survives random inputs") {
  expect_unnoticed(150, "called unobservable", unobservable_mutants_of);
}

TEST_CASE("what is called unobservable survives many random inputs", "[sweep]") {
  expect_unnoticed(20'000, "called unobservable", unobservable_mutants_of);
}

TEST_CASE("fields that the table calls unread decide nothing") {
  expect_unnoticed(60, "called unread", unread_mutants_of);
}

TEST_CASE("docs/OBSERVABILITY.md is what the mutation test finds", "[long]") {
  CHECK(observability_page(surveys()) == read_text(observability_file()));
}
