#include <fstream>
#include <iomanip>

#include "tests/mutation/constant_mutants.hpp"
#include "tests/mutation/unit_mutants.hpp"
#include "tests/places.hpp"

/// Writes tests/mutation/unit_vectors.txt and tests/mutation/function_vectors.txt anew.
int main() {
  using namespace guardbit::tests;
  std::ofstream file(in_source("tests/mutation/unit_vectors.txt"));
  file
      << "# Forms of the special function unit: argument and result, which notice every mutant that "
         "unit_mutants.hpp has.\n"
      << std::hex << std::setfill('0');
  for (const UnitVector& v : search_unit_vectors())
    file << v.form << ' ' << std::setw(8) << v.argument << ' ' << std::setw(8) << v.result << '\n';
  write_function_survey(search_function_survey());
}
