#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/plot/drawing.hpp"

namespace guardbit::tools {

/// Numbers of rows and columns of tiles: darker where they are larger. Zero is white, NaN grey,
/// infinity red.
struct MapOfTiles {
  std::string title, x_label, y_label, unit;
  /// what NaN says
  std::string nan_words = "not compared";
  /// whole numbers from 1 on: shades go by the logarithm, and few of them are named one by one
  bool counts = false;
  /// rows and columns are of different kinds: the map fills its area, tiles need not be square
  bool fills = false;
  std::size_t rows = 0, columns = 0;
  /// what a tile stands for, in the units of the axes, and where the axes begin and end
  double tile_rows = 1, tile_columns = 1, first_row = 0, first_column = 0, last_row = 0,
         last_column = 0;
  std::vector<double> numbers;
};

void draw_map(Drawing& drawing, const Box& area, const MapOfTiles& map);

}  // namespace guardbit::tools
