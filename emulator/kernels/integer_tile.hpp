// Tiles of integer sums, for one instruction set: included inside an unnamed namespace after the
// `#pragma GCC target` of that set, so it has no includes of its own. Isa: Vector, rows, vectors,
// lanes, load, store, broadcast (of one group of k's of a row), ones (a group of them), dot, add,
// saturated_add.

/// Adds `groups` groups of k's (4 bytes or 2 words of a line each) to the tile. `panel_a` and
/// `panel_b` hold the groups, then for each line what the sums of the whole panel lack.
template <class Isa>
void add_products(const IntegerPanels& x, const std::byte* from, std::int64_t from_stride,
                  std::byte* to, std::int64_t to_stride) {
  using Vector = typename Isa::Vector;
  constexpr std::int64_t bytes = sizeof(Vector);
  Vector sums[Isa::rows][Isa::vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Isa::rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) {
      sums[r][v] = Isa::add(Isa::broadcast(x.a_lacks + r * 4), Isa::load(x.b_lacks + v * bytes));
      if (from != nullptr)
        sums[r][v] = Isa::add(sums[r][v], Isa::load(from + r * from_stride + v * bytes));
    }
  }
  const std::byte* a = x.a;
  const std::byte* b = x.b;
  for (std::int64_t g = 0; g < x.groups; ++g) {
    Vector columns[Isa::vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) columns[v] = Isa::load(b + v * bytes);
#pragma GCC unroll 16
    for (int r = 0; r < Isa::rows; ++r) {
      const Vector row = Isa::broadcast(a + r * 4);
#pragma GCC unroll 4
      for (int v = 0; v < Isa::vectors; ++v) sums[r][v] = Isa::dot(sums[r][v], row, columns[v]);
    }
    a += Isa::rows * 4;
    b += Isa::vectors * bytes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Isa::rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) Isa::store(to + r * to_stride + v * bytes, sums[r][v]);
  }
}

/// The same with a saturation after every `x.chunk_groups` groups: an execution's own sum fits 32
/// bits, so that one saturating addition is what the row does. One row at a time, since few tiles
/// need it.
template <class Isa>
void add_products_saturating(const IntegerPanels& x, const std::byte* from,
                             std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  using Vector = typename Isa::Vector;
  constexpr std::int64_t bytes = sizeof(Vector);
  const std::int64_t chunks = x.groups / x.chunk_groups;
  constexpr int rows_at_once = 2;
  for (int first = 0; first < Isa::rows; first += rows_at_once) {
    Vector totals[rows_at_once][Isa::vectors];
    for (int r = 0; r < rows_at_once; ++r) {
      for (int v = 0; v < Isa::vectors; ++v)
        totals[r][v] =
            from == nullptr ? Isa::zero() : Isa::load(from + (first + r) * from_stride + v * bytes);
    }
    const std::byte* a = x.a + first * 4;
    const std::byte* b = x.b;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      Vector sums[rows_at_once][Isa::vectors];
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < Isa::vectors; ++v) {
          sums[r][v] =
              Isa::add(Isa::broadcast(x.a_chunk_lacks + (chunk * Isa::rows + first + r) * 4),
                       Isa::load(x.b_chunk_lacks + (chunk * Isa::vectors + v) * bytes));
        }
      }
      for (std::int64_t g = 0; g < x.chunk_groups; ++g) {
        for (int r = 0; r < rows_at_once; ++r) {
          const Vector row = Isa::broadcast(a + r * 4);
          for (int v = 0; v < Isa::vectors; ++v)
            sums[r][v] = Isa::dot(sums[r][v], row, Isa::load(b + v * bytes));
        }
        a += Isa::rows * 4;
        b += Isa::vectors * bytes;
      }
      for (int r = 0; r < rows_at_once; ++r) {
        for (int v = 0; v < Isa::vectors; ++v)
          totals[r][v] = Isa::saturated_add(totals[r][v], sums[r][v]);
      }
    }
    for (int r = 0; r < rows_at_once; ++r) {
      for (int v = 0; v < Isa::vectors; ++v)
        Isa::store(to + (first + r) * to_stride + v * bytes, totals[r][v]);
    }
  }
}

/// Adds the signed elements of `count` groups of every column to `sums`.
template <class Isa>
void add_up(const std::byte* groups, std::int64_t count, std::int32_t* sums) {
  using Vector = typename Isa::Vector;
  constexpr std::int64_t bytes = sizeof(Vector);
  auto* const to = reinterpret_cast<std::byte*>(sums);
  Vector totals[Isa::vectors];
  for (int v = 0; v < Isa::vectors; ++v) totals[v] = Isa::load(to + v * bytes);
  for (std::int64_t g = 0; g < count; ++g) {
    for (int v = 0; v < Isa::vectors; ++v)
      totals[v] =
          Isa::dot(totals[v], Isa::ones(), Isa::load(groups + (g * Isa::vectors + v) * bytes));
  }
  for (int v = 0; v < Isa::vectors; ++v) Isa::store(to + v * bytes, totals[v]);
}
