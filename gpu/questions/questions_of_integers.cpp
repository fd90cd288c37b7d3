// Integers: where a sum saturates, and what happens to one that does not.

#include <algorithm>
#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::Selection;
using emulator::Source;

constexpr std::int64_t highest = 0x7FFFFFFF, lowest = -highest - 1;

bool saturates(const TensorCoreInstruction& row) {
  return row.name.find("satfinite") != std::string_view::npos;
}

/// The sign of the product at each place: +1, -1 or 0.
using Signs = std::vector<int>;

/// Signs that balance in total but not within some pieces of K: alternating in runs of every power
/// of two, and single pairs at the ends. Empty where both operands are unsigned.
std::vector<Signs> sign_patterns(const TensorCoreInstruction& row) {
  const int k = row.stored_k();
  std::vector<Signs> patterns;
  if (!row.a.has_sign && !row.b.has_sign) return patterns;
  for (const int first : {1, -1}) {
    for (int run = 1; run < k; run *= 2) {
      Signs signs(static_cast<std::size_t>(k));
      for (int i = 0; i < k; ++i)
        signs[static_cast<std::size_t>(i)] = i / run % 2 == 0 ? first : -first;
      patterns.push_back(signs);
    }
    Signs ends(static_cast<std::size_t>(k));
    ends.front() = first, ends.back() = -first;
    patterns.push_back(ends);
  }
  return patterns;
}

std::int64_t top_of(const Format& f) {
  return f.has_sign ? (1 << (bits(f) - 1)) - 1 : (1 << bits(f)) - 1;
}

/// The sum when the places of each piece are added exactly and the running total saturates after
/// every piece. `piece(k)` numbers them from 0.
template <class Piece>
std::uint64_t in_pieces(const Signs& signs, std::int64_t product, std::int64_t c, int pieces,
                        Piece piece) {
  std::int64_t total = c;
  for (int p = 0; p < pieces; ++p) {
    for (std::size_t k = 0; k < signs.size(); ++k)
      if (piece(static_cast<int>(k)) == p) total += signs[k] * product;
    total = std::clamp(total, lowest, highest);
  }
  return static_cast<std::uint32_t>(total);
}

void put_saturation(Inquiry& x) {
  const TensorCoreInstruction& row = x.row;
  const int k = row.stored_k();
  const std::int64_t a = top_of(row.a), b = top_of(row.b), product = a * b;
  struct Posed {
    Signs signs;
    std::int64_t c;
  };
  std::vector<Posed> posed;
  for (const std::int64_t c : {highest, lowest})
    for (const Signs& signs : sign_patterns(row)) posed.push_back({signs, c});
  posed.push_back({Signs(static_cast<std::size_t>(k), 1), highest});
  posed.push_back({Signs(static_cast<std::size_t>(k), 1), highest - 1});
  for (const auto& [signs, c] : posed) {
    x.probe_value(static_cast<long double>(c));
    for (int i = 0; i < k; ++i) {
      const int sign = signs[static_cast<std::size_t>(i)];
      const auto signed_a = static_cast<long double>(row.a.has_sign ? sign * a : a),
                 signed_b = static_cast<long double>(row.a.has_sign ? b : sign * b);
      if (sign != 0) x.term(i, signed_a, signed_b);
    }
  }
  const auto words = [&](int pieces, auto piece) {
    std::vector<std::uint64_t> list;
    for (const auto& [signs, c] : posed)
      list.push_back(in_pieces(signs, product, c, pieces, piece));
    return list;
  };
  const auto blocks_of = [](int terms) {
    return [terms](AccumulatorSpec& spec) { spec.terms = terms; };
  };
  x.outcome("once: the exact total with C", words(1, [](int) { return 0; }),
            x.if_spec(blocks_of(0)));
  std::vector<std::uint64_t> wrapped;
  for (const auto& [signs, c] : posed) {
    std::int64_t total = c;
    for (const int sign : signs) total += sign * product;
    wrapped.push_back(static_cast<std::uint32_t>(total));
  }
  x.outcome("never: the total wraps", wrapped, x.if_spec([](AccumulatorSpec& spec) {
    spec.integer_overflow = emulator::IntegerOverflow::wrap;
  }));
  if (sign_patterns(row).empty()) return;  // sums of one sign saturate wherever they do
  x.outcome("after every product", words(k, [](int i) { return i; }), x.if_spec(blocks_of(1)));
  x.outcome("after each half of K", words(2, [k](int i) { return i / (k / 2); }),
            x.if_spec(blocks_of(k / 2)));
  for (int run = 1; run <= 8 && 2 * run < k; run *= 2) {
    const AccumulatorSpec spec = x.believed.steps.list[0].spec;
    const std::uint32_t residues = (1U << run) - 1;
    x.outcome("in two steps: k % " + std::to_string(2 * run) + " < " + std::to_string(run) +
                  ", then the rest",
              words(2, [run](int i) { return i / run % 2; }),
              x.if_steps({emulator::dot_step(spec, Selection{2 * run, residues}, Source::c, row.d),
                          emulator::dot_step(spec, Selection{2 * run, residues << run},
                                             Source::step_0, row.d)}));
  }
}

void put_wrapping(Inquiry& x) {
  const bool exclusive = x.row.name.find("xor") != std::string_view::npos;
  x.probe_value(highest).codes(0, 1, exclusive ? 0 : 1);
  x.probe_value(highest).codes(0, 1, exclusive ? 0 : 1).codes(1, 1, exclusive ? 0 : 1);
  x.keep_together(2);
  x.outcome("wraps", {0x80000000, 0x80000001});
  x.outcome("saturates", {0x7FFFFFFF, 0x7FFFFFFF}, x.if_spec([](AccumulatorSpec& spec) {
    spec.integer_overflow = emulator::IntegerOverflow::saturate;
  }));
}

}  // namespace

std::vector<Question> questions_of_integers() {
  return {{"Q16", ".satfinite on integers: where does the sum saturate?",
           [](const TensorCoreInstruction& row) {
             return is_plain(row) && is_integer(row.a) && saturates(row);
           },
           put_saturation},
          {"Q16b", "Integers without .satfinite: what does a sum past 2^31 do?",
           [](const TensorCoreInstruction& row) {
             return is_plain(row) && is_integer(row.a) && !saturates(row);
           },
           put_wrapping}};
}

}  // namespace guardbit::gpu
