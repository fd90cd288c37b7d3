#include "emulator/engine/kernels/portable/factors.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "emulator/model/dot.hpp"
#include "emulator/model/mma.hpp"

namespace guardbit::emulator::portable {

namespace {

/// Decodes the codes of one operand. Its values are exact in FP32: at most 19 bits wide, with an
/// FP32's exponents at most.
class Decoder {
 public:
  Decoder(const Step& step, const Format& stored) : format_(stored) {
    if (formats::bits(stored) > 16) return;
    table_.resize(std::size_t{1} << formats::bits(stored));
    for (std::uint64_t code = 0; code < table_.size(); ++code) {
      const Value v = decode_operand(step, stored, code);
      Factor& factor = table_[code];
      factor.value =
          std::bit_cast<float>(static_cast<std::uint32_t>(formats::encode(formats::fp32, v)));
      if (v.kind == Kind::infinity || v.kind == Kind::nan) factor.exponent = special_exponent;
      if (v.kind == Kind::finite)
        factor.exponent =
            static_cast<std::int16_t>(aligned_exponent(v, operand_format(step, stored)));
    }
  }

  Factor operator()(std::uint64_t code) const {
    if (!table_.empty()) return table_[code & (table_.size() - 1)];
    // TF32: the leading bits of an FP32 (checked in `is_fused_step`).
    const std::uint64_t magnitude = code & formats::magnitude_mask(format_);
    if (magnitude == 0) return {};
    const auto biased = static_cast<int>(magnitude >> format_.fraction_bits);
    const bool special = magnitude >= formats::infinity_code(format_);
    return {
        std::bit_cast<float>(static_cast<std::uint32_t>(code << formats::container_shift(format_))),
        special ? special_exponent : static_cast<std::int16_t>(std::max(biased, 1) - format_.bias)};
  }

 private:
  Format format_;
  std::vector<Factor> table_;
};

/// Tables of 16-bit formats take longer to build than a small batch to run: they are kept.
const Decoder& decoder_for(const Step& step, const Format& stored) {
  static std::mutex mutex;
  static std::vector<std::pair<std::pair<Format, std::optional<Format>>, std::unique_ptr<Decoder>>>
      known;
  const std::pair key{stored, step.widened};
  const std::lock_guard lock(mutex);
  for (const auto& [format, decoder] : known) {
    if (format == key) return *decoder;
  }
  return *known.emplace_back(key, std::make_unique<Decoder>(step, stored)).second;
}

}  // namespace

Layout layout_of(const MatrixInstruction& instruction, int stored) {
  Layout layout;
  for (const Step& step : instruction.steps) {
    Segment segment;
    if (step.operation == Operation::dot) {
      if (layout.first_dot == nullptr) layout.first_dot = &step;
      std::vector<int> selected;
      for (int k = 0; k < stored; ++k) {
        if (step.selection.contains(k)) selected.push_back(k);
      }
      const std::size_t length = std::max<std::size_t>(
          1, std::min(static_cast<std::size_t>(step.spec.terms), selected.size()));
      segment.addend =
          AccumulatorFormat(source_format(instruction, step.addend, step.result), step.spec);
      segment.result = AccumulatorFormat(step.result, step.spec);
      segment.begin = layout.order.size();
      segment.blocks = (selected.size() + length - 1) / length;
      segment.stride = (length + lanes - 1) / lanes * lanes;
      for (std::size_t block = 0; block < segment.blocks; ++block) {
        for (std::size_t i = 0; i < segment.stride; ++i) {
          const std::size_t at = block * length + i;
          layout.order.push_back(i < length && at < selected.size() ? selected[at] : padding);
        }
      }
    }
    layout.segments.push_back(segment);
  }
  return layout;
}

void decode_a_lines(const MatrixInstruction& instruction, const Layout& layout,
                    const MatrixBatch& batch, std::int64_t t, Panel& a) {
  const Decoder& decode = decoder_for(*layout.first_dot, instruction.a);
  const std::uint64_t flip = negated(instruction.a, 0, batch.modifiers.negate_a);
  const int stored = stored_k(instruction, batch.shape.k);
  for (int m = 0; m < batch.shape.m; ++m) {
    const std::int64_t a_row = (t * batch.shape.m + m) * stored;
    for (std::size_t i = 0; i < a.width; ++i) {
      if (layout.order[i] != padding) a.set(m, i, decode(batch.a[a_row + layout.order[i]] ^ flip));
    }
  }
}

void decode_b_lines(const MatrixInstruction& instruction, const Layout& layout,
                    const MatrixBatch& batch, std::int64_t t, std::span<const int> order,
                    Panel& b) {
  const Decoder& decode = decoder_for(*layout.first_dot, instruction.b);
  const std::uint64_t flip = negated(instruction.b, 0, batch.modifiers.negate_b);
  const Shape& shape = batch.shape;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == padding) continue;
    const std::int64_t b_row = (t * shape.k + order[i]) * shape.n;
    for (int n = 0; n < shape.n; ++n) b.set(n, i, decode(batch.b[b_row + n] ^ flip));
  }
}

void pick_b_lines(const MatrixInstruction& instruction, const Layout& layout,
                  const MatrixBatch& batch, std::int64_t a_row, const Panel& dense, Panel& picked) {
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    const int s = layout.order[i];
    if (s == padding) continue;
    const auto k = static_cast<std::size_t>(
        dense_k(instruction.sparsity, s, static_cast<int>(batch.e[a_row + s])));
    for (int n = 0; n < batch.shape.n; ++n) picked.set(n, i, dense.get(n, k));
  }
}

}  // namespace guardbit::emulator::portable
