#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/plot/drawing.hpp"

namespace guardbit::tools {

/// Numbers of rows and columns of tiles: darker where they are larger. Zero is white, NaN crossed
/// out in grey, infinity red.
struct MapOfTiles {
  std::string title, x_label, y_label, unit;
  std::size_t rows = 0, columns = 0;
  /// what a tile stands for, in the units of the axes, and where the axes end
  double tile_rows = 1, tile_columns = 1, last_row = 0, last_column = 0;
  std::vector<double> numbers;
};

void draw_map(Drawing& drawing, const Box& area, const MapOfTiles& map);

}  // namespace guardbit::tools
