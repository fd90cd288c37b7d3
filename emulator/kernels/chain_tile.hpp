// Tiles of chains of fused multiply-adds, for one instruction set: included inside an unnamed
// namespace after the `#pragma GCC target` of that set, so it has no includes of its own. Isa:
// Element, Vector, rows, vectors, zero, load, store, broadcast, fma, fma_unless_nan, quieted.

template <class Isa, bool keeps_nan>
void chain(const std::byte* a, const std::byte* b, std::int64_t length, const std::byte* from,
           std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  using Vector = typename Isa::Vector;
  constexpr std::int64_t bytes = sizeof(Vector);
  constexpr std::int64_t element = sizeof(typename Isa::Element);
  Vector sums[Isa::rows][Isa::vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Isa::rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) {
      sums[r][v] = from == nullptr ? Isa::zero() : Isa::load(from + r * from_stride + v * bytes);
      if (keeps_nan) sums[r][v] = Isa::quieted(sums[r][v]);
    }
  }
  for (std::int64_t k = 0; k < length; ++k) {
    Vector columns[Isa::vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) columns[v] = Isa::load(b + v * bytes);
#pragma GCC unroll 16
    for (int r = 0; r < Isa::rows; ++r) {
      const Vector row = Isa::broadcast(a + r * element);
#pragma GCC unroll 4
      for (int v = 0; v < Isa::vectors; ++v) {
        sums[r][v] = keeps_nan ? Isa::fma_unless_nan(row, columns[v], sums[r][v])
                               : Isa::fma(row, columns[v], sums[r][v]);
      }
    }
    a += Isa::rows * element;
    b += Isa::vectors * bytes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Isa::rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Isa::vectors; ++v) Isa::store(to + r * to_stride + v * bytes, sums[r][v]);
  }
}
