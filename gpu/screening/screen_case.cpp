#include "gpu/screening/screen_case.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "formats/text.hpp"
#include "gpu/inputs/inputs.hpp"
#include "gpu/model/host_model.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

/// Rows of A that hold every family of rows, and columns of B that hold every kind.
constexpr int least_rows = 64, covered_columns = 8;

/// Columns from which on other sizes of the same arithmetic have the generated families.
constexpr int wide_columns = 64;

int rounded_up(int executions, const ImageLayout& layout) {
  const int each = layout.executions_per_image;
  return (executions + each - 1) / each * each;
}

void append(Batch& batch, const Batch& more) {
  const auto add = [](auto& list, const auto& other) {
    list.insert(list.end(), other.begin(), other.end());
  };
  batch.executions += more.executions;
  add(batch.a, more.a);
  add(batch.b, more.b);
  add(batch.c, more.c);
  add(batch.d, more.d);
  add(batch.e, more.e);
  add(batch.a_scale, more.a_scale);
  add(batch.b_scale, more.b_scale);
}

Batch make_operands(const TensorCoreInstruction& instruction, const ImageLayout& layout,
                    std::uint64_t seed) {
  const int rows = std::max(2, least_rows / instruction.m);
  Batch batch = make_mixed_rows(instruction, rounded_up(rows, layout), seed);
  if (instruction.n >= wide_columns) return batch;
  const int count =
      std::max(least_rows / instruction.m, 1) * static_cast<int>(families(instruction).size());
  append(batch, make_inputs(instruction, rounded_up(count, layout), seed));
  return batch;
}

/// The same rows of A and columns of B elsewhere, and so the same results: other registers hold
/// them.
Batch rotated(const TensorCoreInstruction& instruction, const Batch& batch, int by) {
  Batch out(instruction, batch.executions);
  const auto rotate = [&](auto& to, const auto& from, int rows, int columns, int down, int right) {
    for (int t = 0; t < batch.executions && !from.empty(); ++t)
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          to[element_index(rows, columns, t, (i + down) % rows, (j + right) % columns)] =
              from[element_index(rows, columns, t, i, j)];
  };
  const int m = instruction.m, n = instruction.n, scales = instruction.scale.count;
  rotate(out.a, batch.a, m, instruction.stored_k(), by, 0);
  rotate(out.e, batch.e, m, instruction.stored_k(), by, 0);
  rotate(out.b, batch.b, instruction.k, n, 0, by);
  rotate(out.c, batch.c, m, n, by, by);
  rotate(out.d, batch.d, m, n, by, by);
  rotate(out.a_scale, batch.a_scale, m, scales, by, 0);
  rotate(out.b_scale, batch.b_scale, scales, n, 0, by);
  return out;
}

/// The codes of one output's stored products.
struct OutputOperands {
  std::vector<std::uint64_t> a, b, a_scale, b_scale;
  std::uint64_t c = 0;
};

OutputOperands operands_of(const ScreenCase& x, const OutputPlace& at) {
  const TensorCoreInstruction& instruction = *x.instruction;
  const auto code = [](const Format& f, std::uint64_t word) { return word >> ignored_bits(f); };
  OutputOperands out;
  for (int s = 0; s < instruction.stored_k(); ++s) {
    const std::size_t place =
        element_index(instruction.m, instruction.stored_k(), at.execution, at.row, s);
    const int k = instruction.sparse ? dense_column(instruction, s, x.batch.e[place]) : s;
    out.a.push_back(code(instruction.a, x.batch.a[place]));
    out.b.push_back(
        code(instruction.b,
             x.batch.b[element_index(instruction.k, instruction.n, at.execution, k, at.column)]));
  }
  if (!instruction.ignore_c)
    out.c = code(
        instruction.c,
        x.batch.c[element_index(instruction.m, instruction.n, at.execution, at.row, at.column)]);
  const int scales = instruction.scale.count;
  for (int s = 0; s < scales; ++s) {
    out.a_scale.push_back(
        x.batch.a_scale[element_index(instruction.m, scales, at.execution, at.row, s)]);
    out.b_scale.push_back(
        x.batch.b_scale[element_index(scales, instruction.n, at.execution, s, at.column)]);
  }
  return out;
}

std::string codes_text(const Format& format, const std::vector<std::uint64_t>& codes) {
  std::string text;
  for (const std::uint64_t code : codes)
    text += (text.empty() ? "" : ",") + formats::hex_text(format, code);
  return text;
}

}  // namespace

ScreenCase make_screen_case(const TensorCoreInstruction& instruction, std::uint64_t seed) {
  ScreenCase x;
  x.instruction = &instruction;
  x.layout = layout_images(instruction);
  x.batch = make_operands(instruction, x.layout, seed);
  run_on_host_model(catalogue_instruction(instruction), instruction, x.batch);
  // Of two inputs each register would have two values, and many a bit the same in both: a bit that
  // is stuck there would not be seen.
  const Batch made = x.batch;
  for (int turn = 1; turn <= 2 && instruction.n >= wide_columns; ++turn)
    append(x.batch, rotated(instruction, made, 5 * turn));
  x.operands = pack(instruction, x.layout, x.batch);
  x.expected = pack_results(instruction, x.layout, x.batch);
  return x;
}

CaseCoverage coverage_of(const ScreenCase& x) {
  const TensorCoreInstruction& instruction = *x.instruction;
  emulator::MatrixInstruction model = catalogue_instruction(instruction);
  CaseCoverage out;
  out.possible = emulator::possible_events(model);
  model.shape.k = instruction.stored_k();
  model.sparsity = {};
  const bool negates = instruction.negate_a != instruction.negate_b;
  for (int t = 0; t < x.batch.executions; ++t)
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < std::min(instruction.n, covered_columns); ++j) {
        OutputOperands operands = operands_of(x, {t, i, j});
        if (negates)
          for (std::uint64_t& code : operands.a) code ^= formats::sign_mask(instruction.a);
        emulator::EventSet events;
        emulator::observed_dot(
            model, {operands.a, operands.b, operands.c, operands.a_scale, operands.b_scale},
            events);
        out.coverage.add(events);
      }
  for (const emulator::EventEntry& entry : emulator::events)
    if (out.possible.contains(entry.event) && out.coverage.of(entry.event) == 0)
      out.never.push_back(entry.name);
  return out;
}

OutputPlace wrong_output_at(const ScreenCase& x, std::uint32_t image, std::uint32_t lane,
                            std::uint32_t word, std::uint32_t wrong_bits) {
  const TensorCoreInstruction& instruction = *x.instruction;
  // Registers lie lane by lane; a wrapper that stores the results itself counts words alone.
  const int lanes = instruction.unit == Unit::wmma ? 0 : instruction.unit == Unit::mma ? 32 : 128;
  const std::int64_t words_per_lane = lanes == 0 ? 0 : x.layout.d_bytes / 4 / lanes;
  const std::int64_t at = (std::int64_t{lane} * words_per_lane + word) * 32;
  const int width = word_bits(instruction.d);
  const int outputs = instruction.m * instruction.n;
  std::optional<OutputPlace> first;
  for (std::size_t i = 0; i < x.layout.d.size(); ++i) {
    const std::int64_t bit = x.layout.d[i] - at;
    if (bit >= 32 || bit + width <= 0) continue;
    const auto index = static_cast<int>(i);
    const OutputPlace place{
        static_cast<int>(image) * x.layout.executions_per_image + index / outputs,
        index % outputs / instruction.n, index % instruction.n};
    if (!first) first = place;
    const std::uint32_t mine =
        width >= 32 ? ~0U : static_cast<std::uint32_t>(formats::low_bits(width)) << bit;
    if ((wrong_bits & mine) != 0) return place;
  }
  return first.value_or(OutputPlace{});
}

std::string operands_text(const ScreenCase& x, const OutputPlace& place) {
  const OutputOperands operands = operands_of(x, place);
  std::string text = "a=" + codes_text(x.instruction->a, operands.a) +
                     " b=" + codes_text(x.instruction->b, operands.b) +
                     " c=" + codes_text(x.instruction->c, {operands.c});
  if (x.instruction->scale.count != 0)
    text += " a_scale=" + codes_text(x.instruction->scale.format, operands.a_scale) +
            " b_scale=" + codes_text(x.instruction->scale.format, operands.b_scale);
  return text;
}

}  // namespace guardbit::gpu
