#include "emulator/engine/kernels/integer/integer_gemm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <vector>

#include "emulator/engine/executions.hpp"
#include "emulator/engine/kernels/integer/integer_tiles.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/portable/portable_integer.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/byte_panels.hpp"
#include "emulator/model/mma.hpp"

// x86's instructions multiply unsigned by signed bytes and add four products to 32 bits, modulo
// 2^32. Other pairs of operands become such bytes u and s, and what is lacking is added for a whole
// line:
//   both signed             u = a + 128, s = b:          a b = u s - 128 s
//   both unsigned, 8 bits   u = a, s = b - 128:          a b = u s + 128 u
//   exclusive or of bits    u = a, s = 1 - 2b:         a ^ b = u s + b,  b = (1 - s) / 2
// All of it holds modulo 2^32, so instructions that wrap are done; of those that saturate, see
// `tile`. ARM's multiply signed bytes, which u = a is then as well. Elements that are not there
// have code 0 and give a product of 0 by the same formulas.
namespace guardbit::emulator::integer_gemm {

namespace {

/// A code's signed value plus an offset, or 1 minus twice the value, as a byte.
struct ByteOfCode {
  std::uint8_t mask = 0xFF, flip = 0, add = 0;
  bool is_sign_of_bit = false;

  std::uint8_t operator()(std::uint8_t code) const {
    const auto byte = static_cast<std::uint8_t>(((code & mask) ^ flip) + add);
    return is_sign_of_bit ? static_cast<std::uint8_t>(1 - 2 * byte) : byte;
  }
  bool changes_nothing() const { return mask == 0xFF && flip == 0 && add == 0 && !is_sign_of_bit; }
};

/// ((code & mask) ^ sign) - sign is the value in two's complement.
ByteOfCode byte_of_code(const Format& f, int offset, bool negate) {
  const auto sign = static_cast<std::uint8_t>(f.has_sign ? formats::sign_mask(f) : 0);
  ByteOfCode x;
  x.mask = static_cast<std::uint8_t>(formats::code_mask(f));
  x.flip = static_cast<std::uint8_t>(negate ? sign ^ formats::sign_mask(f) : sign);
  x.add = static_cast<std::uint8_t>(offset - sign);
  return x;
}

/// What the sums of a line of s (or of u) lack.
enum class Lack { nothing, minus_128_sums, plus_128_sums, ones };

/// How an instruction's operands become bytes.
struct Form {
  ByteOfCode a, b;
  Lack a_lack = Lack::nothing, b_lack = Lack::nothing;
  bool b_is_unsigned = false;
};

Form form_of(const MatrixInstruction& instruction, const Modifiers& modifiers, Factors factors) {
  const bool takes_unsigned = factors == Factors::unsigned_and_signed;
  const bool is_xor = instruction.steps.list[0].spec.product == Product::bit_xor;
  int a_offset = 0, b_offset = 0;
  Form form;
  if (is_xor) {
    form.b_lack = Lack::ones;
  } else if (takes_unsigned && instruction.a.has_sign && instruction.b.has_sign) {
    a_offset = 128;
    form.b_lack = Lack::minus_128_sums;
  } else if (takes_unsigned && !instruction.a.has_sign && !instruction.b.has_sign &&
             formats::bits(instruction.b) == 8) {
    b_offset = -128;
    form.a_lack = Lack::plus_128_sums;
  } else {
    form.b_is_unsigned = instruction.a.has_sign;
  }
  form.a = byte_of_code(instruction.a, a_offset, modifiers.negate_a);
  form.b = byte_of_code(instruction.b, b_offset, modifiers.negate_b);
  form.b.is_sign_of_bit = is_xor;
  return form;
}

/// Every byte of a panel through the formula; panels are whole vectors of 16 bytes.
void convert(const ByteOfCode& x, std::byte* bytes, std::int64_t count) {
  if (x.changes_nothing()) return;
  const auto all = [](int value) { return Bytes16{} + static_cast<std::uint8_t>(value); };
  const Bytes16 mask = all(x.mask), flip = all(x.flip), add = all(x.add);
  for (std::byte* const end = bytes + count; bytes != end; bytes += 16) {
    Bytes16 codes;
    std::memcpy(&codes, bytes, 16);
    codes = ((codes & mask) ^ flip) + add;
    if (x.is_sign_of_bit) codes = all(1) - codes - codes;
    std::memcpy(bytes, &codes, 16);
  }
}

/// Two k's of every line as words.
void pack_words(const Lines& x, const ByteOfCode& byte_of, bool has_sign, std::int64_t groups,
                std::int64_t width, std::byte* to) {
  std::array<std::int16_t, 256> values{};
  for (std::size_t code = 0; code < values.size(); ++code) {
    const std::uint8_t byte = byte_of(static_cast<std::uint8_t>(code));
    values[code] = has_sign ? static_cast<std::int8_t>(byte) : byte;
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t line = 0; line < width; ++line) {
      for (std::int64_t i = 0; i < 2; ++i, to += 2) {
        const std::int64_t k = g * 2 + i;
        const bool there = line < x.lines && k < x.length;
        const std::int16_t value = values[there ? x.code(line, k) : 0];
        std::memcpy(to, &value, 2);
      }
    }
  }
}

/// Adds the unsigned bytes of groups [begin, end) of each line to its sum.
void add_up_unsigned(const std::byte* groups, std::int64_t begin, std::int64_t end,
                     std::int64_t width, std::int32_t* sums) {
  for (std::int64_t g = begin; g < end; ++g) {
    for (std::int64_t line = 0; line < width; ++line) {
      for (std::int64_t i = 0; i < lane_bytes; ++i)
        sums[line] += std::to_integer<std::int32_t>(groups[(g * width + line) * lane_bytes + i]);
    }
  }
}

class Kernel {
 public:
  struct Environment {
    explicit Environment(const Kernel&) {}
  };

  Kernel(const MatrixInstruction& instruction, const MatrixProduct& product,
         const IntegerTiles& tiles)
      : instruction_(instruction),
        product_(product),
        tiles_(tiles),
        form_(form_of(instruction, product.modifiers, tiles.factors)),
        saturates_(instruction.steps.list[0].spec.integer_overflow == IntegerOverflow::saturate) {}

  /// A panel of B and what of A meets it stay in the first cache, a block of A in the second.
  PanelBlocking blocking() const {
    const std::int64_t most = 2048 / tiles_.group();
    const std::int64_t depth =
        round_up(std::min(product_.k,
                          std::max<std::int64_t>(instruction_.shape.k, most / instruction_.shape.k *
                                                                           instruction_.shape.k)),
                 instruction_.shape.k);
    return {{tiles_.rows, tiles_.columns, depth, 512, round_up(4096, tiles_.columns)},
            panel_bytes(tiles_.rows, depth),
            panel_bytes(tiles_.columns, depth)};
  }

  void pack_a(std::byte* to, std::int64_t i, std::int64_t k, std::int64_t length) const {
    const RowsOfA rows(instruction_, product_, tiles_.rows, i, k, length);
    pack(rows.lines(), form_.a, instruction_.a.has_sign, form_.a_lack, tiles_.rows, to);
  }

  void pack_b(std::byte* to, std::int64_t j, std::int64_t k, std::int64_t length) const {
    const Lines columns = columns_of_b(product_, tiles_.columns, j, k, length);
    pack(columns, form_.b, instruction_.b.has_sign || form_.b.is_sign_of_bit, form_.b_lack,
         tiles_.columns, to);
  }

  void tile(const std::byte* a, const std::byte* b, std::int64_t i, std::int64_t j, std::int64_t k,
            std::int64_t length) const {
    IntegerPanels x;
    x.a = a;
    x.b = b;
    x.groups = groups_of(length);
    x.a_lacks = a + x.groups * tiles_.rows * lane_bytes;
    x.b_lacks = b + x.groups * tiles_.columns * lane_bytes;
    x.chunk_groups = instruction_.shape.k / tiles_.group();
    x.a_chunk_lacks = x.a_lacks + tiles_.rows * lane_bytes;
    x.b_chunk_lacks = x.b_lacks + tiles_.columns * lane_bytes;
    const auto body = [&](const std::byte* from, std::int64_t from_stride, std::byte* to,
                          std::int64_t to_stride) {
      const bool careful = saturates_ && from != nullptr && can_saturate(from, from_stride, length);
      (careful ? tiles_.saturating : tiles_.wrapping)[form_.b_is_unsigned ? 1 : 0](
          x, from, from_stride, to, to_stride);
    };
    if (tiles_.rows == 8) {
      visit_tile<std::int32_t, 8, 48>(product_, i, j, k == 0, body);
    } else {
      visit_tile<std::int32_t, 4, 24>(product_, i, j, k == 0, body);
    }
  }

 private:
  std::int64_t groups_of(std::int64_t length) const {
    return round_up(length, instruction_.shape.k) / tiles_.group();
  }

  std::size_t panel_bytes(std::int64_t width, std::int64_t depth) const {
    const std::int64_t chunks = saturates_ ? depth / instruction_.shape.k : 0;
    return static_cast<std::size_t>(
        round_up((depth / tiles_.group() + 1 + chunks) * width * lane_bytes, 64));
  }

  /// While |sum| plus the largest magnitude of all products of the block is within 32 bits, every
  /// partial sum is, so nothing saturates and the exact total is what the chain gives.
  bool can_saturate(const std::byte* from, std::int64_t stride, std::int64_t length) const {
    const auto largest = [](const Format& f) {
      return std::int64_t{1} << (formats::bits(f) - (f.has_sign ? 1 : 0));
    };
    const std::int64_t products = largest(instruction_.a) * largest(instruction_.b) * length;
    const std::int64_t limit = std::int64_t{INT32_MAX} - products;
    if (limit < 0) return true;
    std::int32_t high = 0, low = 0;
    for (int r = 0; r < tiles_.rows; ++r) {
      for (int s = 0; s < tiles_.columns; ++s) {
        std::int32_t sum = 0;
        std::memcpy(&sum, from + r * stride + s * lane_bytes, sizeof(sum));
        high = std::max(high, sum);
        low = std::min(low, sum);
      }
    }
    return high > limit || low < -limit;
  }

  void pack(const Lines& lines, const ByteOfCode& byte_of, bool has_sign, Lack lack,
            std::int64_t width, std::byte* to) const {
    const std::int64_t groups = groups_of(lines.length);
    if (tiles_.factors == Factors::words) {
      pack_words(lines, byte_of, has_sign, groups, width, to);
    } else {
      for (std::int64_t g = gather_by_lines(lines, width, to); g < groups; ++g)
        gather_group(lines, g, width, to + g * width * lane_bytes);
      convert(byte_of, to, groups * width * lane_bytes);
    }
    std::byte* lacks = to + groups * width * lane_bytes;
    write_lacks(to, 0, groups, lack, width, lacks);
    if (!saturates_) return;
    const std::int64_t chunk = instruction_.shape.k / tiles_.group();
    for (std::int64_t g = 0; g < groups; g += chunk) {
      lacks += width * lane_bytes;
      write_lacks(to, g, g + chunk, lack, width, lacks);
    }
  }

  void write_lacks(const std::byte* panel, std::int64_t begin, std::int64_t end, Lack lack,
                   std::int64_t width, std::byte* to) const {
    std::array<std::int32_t, 64> sums{};
    assert(width <= static_cast<std::int64_t>(sums.size()));
    if (lack != Lack::nothing && width == tiles_.columns) {
      tiles_.add_up(panel + begin * width * lane_bytes, end - begin, sums.data());
    } else if (lack == Lack::plus_128_sums) {
      add_up_unsigned(panel, begin, end, width, sums.data());
    }
    const auto elements = static_cast<std::int32_t>((end - begin) * tiles_.group());
    for (std::int32_t& sum : sums) {
      switch (lack) {
        case Lack::nothing: break;
        case Lack::minus_128_sums: sum *= -128; break;
        case Lack::plus_128_sums: sum *= 128; break;
        case Lack::ones: sum = (elements - sum) / 2; break;
      }
    }
    std::memcpy(to, sums.data(), static_cast<std::size_t>(width * lane_bytes));
  }

  const MatrixInstruction& instruction_;
  const MatrixProduct& product_;
  const IntegerTiles& tiles_;
  Form form_;
  bool saturates_;
};

const IntegerTiles* tiles_for([[maybe_unused]] const MatrixInstruction& instruction,
                              [[maybe_unused]] VectorSet set) {
  const IntegerTiles* found = nullptr;
  if constexpr (compiles_x86) {
    if (set == VectorSet::neon) return nullptr;
    if (set == VectorSet::avx512) found = integer_tiles_avx512();
    if (found == nullptr) found = integer_tiles_avxvnni();
    if (found == nullptr) found = integer_tiles_avx2();
  }
  if constexpr (compiles_arm) {
    if (set != VectorSet::neon) return nullptr;
    const auto is_unsigned_byte = [](const Format& f) {
      return !f.has_sign && formats::bits(f) == 8;
    };
    if (!is_unsigned_byte(instruction.a) && !is_unsigned_byte(instruction.b))
      found = integer_tiles_neondots();
    if (found == nullptr) found = integer_tiles_neon();
  }
  return found;
}

}  // namespace

bool accepts(const MatrixInstruction& instruction, VectorSet set) {
  const AccumulatorSpec& spec = instruction.steps.list[0].spec;
  return portable::is_integer_instruction(instruction) && instruction.scale.count == 0 &&
         instruction.shape.k % 4 == 0 &&
         (spec.product == Product::multiply ||
          (instruction.a == formats::b1 && instruction.b == formats::b1 &&
           spec.integer_overflow == IntegerOverflow::wrap)) &&
         tiles_for(instruction, set) != nullptr;
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set) {
  if (has_shared_places(instruction, product))
    return multiply_by_executions(portable::run, instruction, product, threads);
  const IntegerTiles& tiles = *tiles_for(instruction, set);
  const Kernel kernel(instruction, product, tiles);
  multiply_by_panels(kernel, product, threads);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set) {
  for (std::int64_t t = begin; t < end; ++t)
    multiply(instruction, product_of(instruction, batch, t), 1, set);
}

}  // namespace guardbit::emulator::integer_gemm
