#include "emulator/gemm/atlas/convolutions/convolution_order.hpp"

#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::atlas {

bool Wave::is_in_last(std::int64_t row, std::int64_t column, std::int64_t of_rows,
                      std::int64_t of_columns) const {
  using formats::divided_up;
  // Clusters follow each other along the columns, from the last one on, then along the rows.
  const std::int64_t across = divided_up(of_columns, columns);
  const std::int64_t all = divided_up(of_rows, rows * cluster) * across;
  const std::int64_t at = row / (rows * cluster) * across + across - 1 - column / columns;
  return at >= all / clusters * clusters;
}

}  // namespace guardbit::emulator::atlas
