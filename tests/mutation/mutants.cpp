#include "tests/mutation/mutants.hpp"

#include <utility>

#include "formats/format_catalogue.hpp"

namespace guardbit::tests {

namespace {

using emulator::Operation;
using emulator::Source;
using emulator::Step;
using formats::Format;

std::string name(Operation x) {
  switch (x) {
    case Operation::dot: return "dot";
    case Operation::add: return "add";
    case Operation::convert: return "convert";
  }
  return "";
}

std::string name(Source x) {
  switch (x) {
    case Source::positive_zero: return "+0";
    case Source::negative_zero: return "-0";
    case Source::c: return "c";
    default: return "step " + std::to_string(static_cast<int>(x));
  }
}

std::string name(const std::optional<Format>& f) { return f ? formats::name_of(*f) : "no"; }

/// Writes down the mutants of one instruction.
class Collector {
 public:
  explicit Collector(const MatrixInstruction& instruction) : instruction_(instruction) {}

  /// A mutant of the instruction as `change` leaves it.
  template <class Change>
  void add(Place place, int step, std::string field, std::string from, std::string to,
           Change change) {
    Mutant mutant{instruction_,    place,        step, prefix(step) + std::move(field),
                  std::move(from), std::move(to)};
    change(mutant.instruction);
    list_.push_back(std::move(mutant));
  }

  template <class Change>
  void add_to_step(Place place, int index, std::string field, std::string from, std::string to,
                   Change change) {
    add(place, index, std::move(field), std::move(from), std::move(to),
        [&](MatrixInstruction& instruction) { change(step(instruction, index)); });
  }

  static Step& step(MatrixInstruction& instruction, int index) {
    return instruction.steps.list.at(static_cast<std::size_t>(index));
  }

  std::vector<Mutant> take() { return std::move(list_); }

 private:
  /// Only what belongs to a step of several names it.
  std::string prefix(int step) const {
    return step < 0 || instruction_.steps.count < 2 ? "" : "step " + std::to_string(step) + " ";
  }

  const MatrixInstruction& instruction_;
  std::vector<Mutant> list_;
};

void add_spec(Collector& collector, const MatrixInstruction& instruction, int index,
              const Step& step) {
  for (const SpecField& field : spec_fields()) {
    if (!field.read(instruction, step)) continue;
    const long value = field.get(step.spec);
    for (const long other : field.neighbours(value, step)) {
      collector.add_to_step(Place::spec, index, std::string(field.name), field.text(value),
                            field.text(other), [&](Step& s) { field.set(s.spec, other); });
    }
  }
}

/// Where a step may read: constants, C and the steps before it.
std::vector<Source> sources_before(int index) {
  std::vector<Source> sources = {Source::positive_zero, Source::negative_zero, Source::c};
  for (int earlier = 0; earlier < index; ++earlier) {
    sources.push_back(static_cast<Source>(earlier));
  }
  return sources;
}

void add_sources(Collector& collector, int index, const Step& step) {
  for (const Source source : sources_before(index)) {
    if (source != step.addend) {
      collector.add_to_step(Place::addend, index, "addend", name(step.addend), name(source),
                            [&](Step& s) { s.addend = source; });
    }
    if (step.operation == Operation::add && source != step.other) {
      collector.add_to_step(Place::other, index, "other", name(step.other), name(source),
                            [&](Step& s) { s.other = source; });
    }
  }
  if (step.operation == Operation::add) {
    collector.add_to_step(Place::swapped_operands, index, "operands", "in order", "swapped",
                          [](Step& s) { std::swap(s.addend, s.other); });
  }
}

void add_selection(Collector& collector, int index, const Step& step) {
  const auto text = [](std::uint32_t residues) {
    std::string list;
    for (int k = 0; k < 32; ++k) {
      if ((residues >> k & 1U) != 0) list += (list.empty() ? "k" : ",") + std::to_string(k);
    }
    return list.empty() ? std::string("none") : list;
  };
  const auto& [modulus, residues] = step.selection;
  for (int k = 0; k < modulus; ++k) {
    const std::uint32_t other = residues ^ (1U << k);
    collector.add_to_step(Place::residues, index, "residues", text(residues), text(other),
                          [&](Step& s) { s.selection.residues = other; });
  }
  for (const int other : {modulus - 1, modulus + 1}) {
    if (other < 1) continue;
    collector.add_to_step(Place::modulus, index, "modulus", std::to_string(modulus),
                          std::to_string(other), [&](Step& s) { s.selection.modulus = other; });
  }
}

/// Widening to FP32 where there is none, and none or FP32 where the instruction widens to FP16.
void add_widening(Collector& collector, const MatrixInstruction& instruction, int index,
                  const Step& step) {
  const bool narrow = instruction.a.encoding == formats::Encoding::floating &&
                      formats::bits(instruction.a) < formats::bits(formats::fp32);
  // Groups are summed on the grid of the operands' own format, in 64 bits.
  if (!narrow || step.spec.exact_group > 1) return;
  for (const std::optional<Format>& other : {std::optional<Format>{}, {formats::fp32}}) {
    if (other == step.widened) continue;
    collector.add_to_step(Place::widened, index, "widened", name(step.widened), name(other),
                          [&](Step& s) { s.widened = other; });
  }
}

void add_structure(Collector& collector, const MatrixInstruction& instruction, int index,
                   const Step& step) {
  for (const Operation other : {Operation::dot, Operation::add, Operation::convert}) {
    if (other == step.operation) continue;
    collector.add_to_step(Place::operation, index, "operation", name(step.operation), name(other),
                          [&](Step& s) { s.operation = other; });
  }
  add_sources(collector, index, step);
  if (step.operation == Operation::dot) {
    add_selection(collector, index, step);
    add_widening(collector, instruction, index, step);
  }
  const int fraction_bits = step.result.fraction_bits;
  for (const int other : {fraction_bits - 1, fraction_bits + 1}) {
    if (step.result == formats::fp64 && other > fraction_bits) continue;  // codes have 64 bits
    collector.add_to_step(Place::result_format, index, "result format's fraction",
                          std::to_string(fraction_bits), std::to_string(other),
                          [&](Step& s) { s.result.fraction_bits = other; });
  }
}

void add_order(Collector& collector, const MatrixInstruction& instruction) {
  const int count = instruction.steps.count;
  if (count < 2) return;
  collector.add(Place::last_step, -1, "last step", "done", "left out",
                [](MatrixInstruction& r) { --r.steps.count; });
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      MatrixInstruction swapped = instruction;
      Step& first = Collector::step(swapped, i);
      Step& second = Collector::step(swapped, j);
      if (first.operation != Operation::dot || second.operation != Operation::dot) continue;
      std::swap(first.selection, second.selection);
      collector.add(Place::swapped_selections, -1, "order of the accumulations", "as is", "swapped",
                    [&](MatrixInstruction& r) { r = swapped; });
    }
  }
}

/// The same width with the border of exponent and fraction moved, or the other signedness.
std::vector<Format> neighbours(const Format& f) {
  if (formats::is_integer(f)) return {formats::integer(formats::bits(f), !f.has_sign)};
  std::vector<Format> list;
  for (const int moved : {-1, 1}) {
    const int fraction_bits = f.fraction_bits - moved;
    if (f.exponent_bits + moved < 1 || fraction_bits < 1) continue;
    if (fraction_bits > formats::fp64.fraction_bits) continue;  // NaN payloads are held as FP64's
    list.push_back(formats::floating(f.exponent_bits + moved, fraction_bits, f.specials));
  }
  return list;
}

void add_formats(Collector& collector, const MatrixInstruction& instruction) {
  const auto operand = [&](const char* field, Format MatrixInstruction::*member) {
    for (const Format& other : neighbours(instruction.*member)) {
      collector.add(Place::operand_format, -1, field, formats::name_of(instruction.*member),
                    formats::name_of(other), [&](MatrixInstruction& r) { r.*member = other; });
    }
  };
  operand("a", &MatrixInstruction::a);
  operand("b", &MatrixInstruction::b);
  operand("c", &MatrixInstruction::c);
  const auto& [format, count] = instruction.scale;
  if (count == 0) return;
  for (const int other : {format.bias - 1, format.bias + 1}) {
    collector.add(Place::scale_format, -1, "scale format's bias", std::to_string(format.bias),
                  std::to_string(other),
                  [&](MatrixInstruction& r) { r.scale.format.bias = other; });
  }
  for (const int other : {count - 1, 2 * count}) {
    collector.add(Place::scale_count, -1, "scale count", std::to_string(count),
                  std::to_string(other), [&](MatrixInstruction& r) { r.scale.count = other; });
  }
}

}  // namespace

std::vector<Mutant> mutants_of(const MatrixInstruction& instruction) {
  Collector collector(instruction);
  int index = 0;
  for (const Step& step : instruction.steps) {
    add_spec(collector, instruction, index, step);
    add_structure(collector, instruction, index, step);
    ++index;
  }
  add_order(collector, instruction);
  add_formats(collector, instruction);
  return collector.take();
}

std::vector<Mutant> sparsity_mutants_of(const MatrixInstruction& instruction) {
  Collector collector(instruction);
  const auto vary = [&](const char* field, int emulator::Sparsity::*member) {
    const int value = instruction.sparsity.*member;
    for (const int other : {value - 1, value + 1, 2 * value}) {
      if (other < 1 || (other == 2 * value && other == value + 1)) continue;
      collector.add(Place::sparsity, -1, field, std::to_string(value), std::to_string(other),
                    [&](MatrixInstruction& r) { r.sparsity.*member = other; });
    }
  };
  vary("group_elements", &emulator::Sparsity::group_elements);
  vary("stored_per_group", &emulator::Sparsity::stored_per_group);
  vary("chunk", &emulator::Sparsity::chunk);
  return collector.take();
}

}  // namespace guardbit::tests
