#include "emulator/faults/code_numbers.hpp"

#include <cmath>

#include "emulator/gemm/scalar.hpp"

namespace guardbit::emulator {

namespace {

std::shared_ptr<const std::vector<double>> table_of(const Format& format) {
  if (formats::bits(format) > 16) return nullptr;
  const std::uint64_t count = std::uint64_t{1} << formats::bits(format);
  auto table = std::make_shared<std::vector<double>>();
  for (std::uint64_t code = 0; code < count; ++code)
    table->push_back(scalar::decoded(format, code));
  return table;
}

}  // namespace

CodeNumbers::CodeNumbers(const CodeMatrix& matrix, std::int64_t g)
    : matrix_(matrix), entry_(matrix.batch == 1 ? 0 : g) {
  if (!matrix.empty()) table_ = table_of(matrix.format);
}

double CodeNumbers::decoded(std::uint64_t code) const {
  return table_ ? (*table_)[static_cast<std::size_t>(code & (table_->size() - 1))]
                : scalar::decoded(matrix_.format, code);
}

void CodeNumbers::read_row(std::int64_t i, std::vector<double>& line) const {
  for (std::int64_t j = 0; j < matrix_.columns; ++j)
    line[static_cast<std::size_t>(j)] = (*this)(i, j);
}

bool CodeNumbers::is_finite_row(std::int64_t i) const {
  for (std::int64_t j = 0; j < matrix_.columns; ++j)
    if (!std::isfinite((*this)(i, j))) return false;
  return true;
}

}  // namespace guardbit::emulator
