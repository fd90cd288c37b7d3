#include <exception>
#include <fstream>
#include <iostream>

#include "formats/support/parallel.hpp"
#include "tests/mutation/survey.hpp"

// guardbit_update_mutation: searches the vectors of the mutation test again and writes them, and
// then docs/OBSERVABILITY.md. To be run after a change to the catalogue, the recordings or the
// search.
namespace {

using namespace guardbit;
using namespace guardbit::tests;

/// Candidates tried before the search gives up on a mutant.
constexpr std::uint64_t search_limit = 400'000;

std::vector<InstructionVectors> searched_vectors() {
  std::vector<InstructionVectors> vectors(arithmetics().size());
  guardbit::formats::parallel_for(vectors.size(), 1, 0, [&](std::size_t begin, std::size_t) {
    const MatrixInstruction& instruction = arithmetics()[begin].instruction;
    vectors[begin] = {instruction, search_vectors(instruction, search_limit)};
  });
  for (const SharedSparsity& shared : sparsities()) {
    vectors.push_back({shared.instruction, search_sparsity_vectors(shared.instruction)});
  }
  return vectors;
}

/// The file, opened to be written anew; a failed write throws.
std::ofstream written(const std::filesystem::path& file) {
  std::ofstream out;
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out.open(file, std::ios::binary);
  std::cout << file.string() << std::endl;
  return out;
}

}  // namespace

int main() {
  try {
    const std::vector<InstructionVectors> vectors = searched_vectors();
    std::ofstream text = written(vectors_file());
    write_vectors(text, vectors);
    text.close();
    std::ofstream page = written(observability_file());
    page << observability_page(survey_catalogue(read_vectors(vectors_file())));
    page.close();
  } catch (const std::exception& error) {
    std::cerr << "guardbit_update_mutation: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
