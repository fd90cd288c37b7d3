#include "emulator/catalogue/families.hpp"

#include <array>
#include <utility>

namespace guardbit::emulator {

namespace {

struct TypeName {
  Format format;
  std::string_view name;
};

constexpr std::array type_names = {
    TypeName{formats::fp64, "f64"},   TypeName{formats::fp32, "f32"},
    TypeName{formats::tf32, "tf32"},  TypeName{formats::bf16, "bf16"},
    TypeName{formats::fp16, "f16"},   TypeName{formats::e5m2, "e5m2"},
    TypeName{formats::e4m3, "e4m3"},  TypeName{formats::e3m2, "e3m2"},
    TypeName{formats::e2m3, "e2m3"},  TypeName{formats::e2m1, "e2m1"},
    TypeName{formats::e8m0, "ue8m0"}, TypeName{formats::ue4m3, "ue4m3"},
    TypeName{formats::int32, "s32"},  TypeName{formats::int8, "s8"},
    TypeName{formats::uint8, "u8"},   TypeName{formats::int4, "s4"},
    TypeName{formats::uint4, "u4"},   TypeName{formats::b1, "b1"},
};

std::string text(std::string_view s) { return std::string(s); }
std::string type(const Format& f) { return "." + text(ptx_type(f)); }

std::string shape_text(const Shape& s) {
  const auto size = [](int x, const char* any) {
    return x == 0 ? std::string(any) : std::to_string(x);
  };
  return "m" + size(s.m, "M") + "n" + size(s.n, "N") + "k" + std::to_string(s.k);
}

std::string bit_operation(Product product) {
  return product == Product::bit_xor ? ".xor.popc" : ".and.popc";
}

/// The metadata of A by operand type (NUMERICS 3.3): TF32 keeps one of two, 4-bit types pairs,
/// everything else two of four.
Sparsity sparsity_of(const Format& a, bool packed_pairs) {
  if (a == formats::tf32) return {.group_elements = 2, .stored_per_group = 1, .chunk = 1};
  if (packed_pairs) return {.group_elements = 8, .stored_per_group = 4, .chunk = 2};
  return {.group_elements = 4, .stored_per_group = 2, .chunk = 1};
}

bool is_four_bit_integer(const Format& f) { return f == formats::int4 || f == formats::uint4; }

Arithmetic integer_arithmetic(Product product, IntegerOverflow overflow, const Evidence& evidence) {
  AccumulatorSpec spec;
  spec.summation = Summation::integer;
  spec.product = product;
  spec.integer_overflow = overflow;
  return native(spec, to_int32, evidence);
}

struct IntegerForm {
  IntegerOverflow overflow;
  std::string_view qualifier;
};
constexpr std::array integer_forms = {IntegerForm{IntegerOverflow::wrap, ""},
                                      IntegerForm{IntegerOverflow::saturate, ".satfinite"}};

}  // namespace

std::string_view ptx_type(const Format& format) {
  for (const TypeName& t : type_names) {
    if (t.format == format) return t.name;
  }
  return "?";
}

Pairs every_pair(std::initializer_list<Format> types) {
  Pairs pairs;
  for (const Format& a : types) {
    for (const Format& b : types) pairs.push_back({a, b});
  }
  return pairs;
}

Arithmetic native(const AccumulatorSpec& spec, const AccumulatorPair& cd,
                  const Evidence& evidence) {
  Step step;
  step.spec = spec;
  step.result = cd.d;
  return {{step}, evidence, {}};
}

MatrixInstruction& Machine::add(const std::string& name, Family family, const Shape& shape,
                                const OperandPair& ab, const AccumulatorPair& cd,
                                const Arithmetic& arithmetic) {
  MatrixInstruction instruction;
  instruction.name = Name(std::string_view(name));
  instruction.arch = arch_;
  instruction.family = family;
  instruction.shape = shape;
  instruction.a = ab.a;
  instruction.b = ab.b;
  instruction.c = cd.c;
  instruction.d = cd.d;
  instruction.steps = arithmetic.steps;
  instruction.evidence = arithmetic.evidence;
  instruction.toolkit = arithmetic.toolkit;
  return instructions_.emplace_back(instruction);
}

void Machine::mma(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd,
                  const Arithmetic& arithmetic, std::string_view rounding) {
  for (const Shape& shape : shapes) {
    for (const OperandPair& pair : ab) {
      add("mma.sync.aligned." + shape_text(shape) + ".row.col" + text(rounding) + type(cd.d) +
              type(pair.a) + type(pair.b) + type(cd.c),
          Family::mma, shape, pair, cd, arithmetic);
    }
  }
}

void Machine::mma_integer(Shapes shapes, const Pairs& ab, const Evidence& evidence) {
  for (const auto& [overflow, qualifier] : integer_forms) {
    for (const Shape& shape : shapes) {
      for (const OperandPair& pair : ab) {
        add("mma.sync.aligned." + shape_text(shape) + ".row.col" + text(qualifier) + ".s32" +
                type(pair.a) + type(pair.b) + ".s32",
            Family::mma, shape, pair, to_int32,
            integer_arithmetic(Product::multiply, overflow, evidence));
      }
    }
  }
}

void Machine::mma_bits(Shapes shapes, Product product, const Evidence& evidence) {
  for (const Shape& shape : shapes) {
    add("mma.sync.aligned." + shape_text(shape) + ".row.col.s32.b1.b1.s32" + bit_operation(product),
        Family::mma, shape, {formats::b1, formats::b1}, to_int32,
        integer_arithmetic(product, IntegerOverflow::wrap, evidence));
  }
}

void Machine::mma_sparse(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd,
                         const Arithmetic& arithmetic, bool ordered_only) {
  for (const char* metadata : {"", "::ordered_metadata"}) {
    if (ordered_only && *metadata == '\0') continue;
    for (const Shape& shape : shapes) {
      for (const OperandPair& pair : ab) {
        add("mma.sp" + std::string(metadata) + ".sync.aligned." + shape_text(shape) + ".row.col" +
                type(cd.d) + type(pair.a) + type(pair.b) + type(cd.c),
            Family::mma_sp, shape, pair, cd, arithmetic)
            .sparsity = sparsity_of(pair.a, false);
      }
    }
  }
}

void Machine::mma_sparse_integer(Shapes shapes, const Pairs& ab, const Evidence& evidence) {
  for (const char* metadata : {"", "::ordered_metadata"}) {
    for (const auto& [overflow, qualifier] : integer_forms) {
      for (const Shape& shape : shapes) {
        for (const OperandPair& pair : ab) {
          add("mma.sp" + std::string(metadata) + ".sync.aligned." + shape_text(shape) + ".row.col" +
                  text(qualifier) + ".s32" + type(pair.a) + type(pair.b) + ".s32",
              Family::mma_sp, shape, pair, to_int32,
              integer_arithmetic(Product::multiply, overflow, evidence))
              .sparsity = sparsity_of(pair.a, is_four_bit_integer(pair.a));
        }
      }
    }
  }
}

void Machine::mma_kind(std::string_view kind, Shapes shapes, const Pairs& ab,
                       const AccumulatorPair& cd, const Arithmetic& arithmetic, bool sparse) {
  for (const Shape& shape : shapes) {
    for (const OperandPair& pair : ab) {
      MatrixInstruction& instruction =
          add((sparse ? "mma.sp::ordered_metadata" : "mma") + std::string(".sync.aligned.") +
                  shape_text(shape) + ".row.col.kind::" + text(kind) + type(cd.d) + type(pair.a) +
                  type(pair.b) + type(cd.c),
              sparse ? Family::mma_sp : Family::mma, shape, pair, cd, arithmetic);
      if (sparse) instruction.sparsity = sparsity_of(pair.a, false);
    }
  }
}

void Machine::mma_block_scaled(std::string_view kind, const Shape& shape, const Pairs& ab,
                               const BlockScale& scale, const Arithmetic& arithmetic, bool sparse) {
  for (const OperandPair& pair : ab) {
    MatrixInstruction& instruction =
        add((sparse ? "mma.sp::ordered_metadata" : "mma") + std::string(".sync.aligned.") +
                shape_text(shape) + ".row.col.kind::" + text(kind) +
                ".block_scale.scale_vec::" + std::to_string(scale.count) + "X.f32" + type(pair.a) +
                type(pair.b) + ".f32" + type(scale.format),
            sparse ? Family::mma_sp : Family::mma, shape, pair, to_fp32, arithmetic);
    instruction.scale = scale;
    if (sparse) instruction.sparsity = sparsity_of(pair.a, kind != "mxf8f6f4");
  }
}

void Machine::wmma(Shapes shapes, const Pairs& ab, const AccumulatorPair& cd,
                   const Arithmetic& arithmetic, std::string_view rounding) {
  for (const Shape& shape : shapes) {
    for (const OperandPair& pair : ab) {
      const std::string types = pair.a == formats::fp16
                                    ? type(cd.d) + type(cd.c)
                                    : type(cd.d) + type(pair.a) + type(pair.b) + type(cd.c);
      add("wmma.mma.sync.aligned.row.col." + shape_text(shape) + text(rounding) + types,
          Family::wmma, shape, pair, cd, arithmetic);
    }
  }
}

void Machine::wmma_integer(Shapes shapes, std::initializer_list<Format> types,
                           const Evidence& evidence) {
  for (const auto& [overflow, qualifier] : integer_forms) {
    for (const Shape& shape : shapes) {
      for (const Format& f : types) {
        add("wmma.mma.sync.aligned.row.col." + shape_text(shape) + ".s32" + type(f) + type(f) +
                ".s32" + text(qualifier),
            Family::wmma, shape, {f, f}, to_int32,
            integer_arithmetic(Product::multiply, overflow, evidence));
      }
    }
  }
}

void Machine::wmma_bits(Shapes shapes, Product product, const Evidence& evidence) {
  for (const Shape& shape : shapes) {
    add("wmma.mma" + bit_operation(product) + ".sync.aligned.row.col." + shape_text(shape) +
            ".s32.b1.b1.s32",
        Family::wmma, shape, {formats::b1, formats::b1}, to_int32,
        integer_arithmetic(product, IntegerOverflow::wrap, evidence));
  }
}

void Machine::wgmma(int k, const Pairs& ab, const AccumulatorPair& cd, const Arithmetic& arithmetic,
                    bool sparse) {
  const Shape shape{64, 0, k};
  for (const OperandPair& pair : ab) {
    MatrixInstruction& instruction =
        add("wgmma.mma_async" + std::string(sparse ? ".sp" : "") + ".sync.aligned." +
                shape_text(shape) + type(cd.d) + type(pair.a) + type(pair.b),
            sparse ? Family::wgmma_sp : Family::wgmma, shape, pair, cd, arithmetic);
    if (sparse) instruction.sparsity = sparsity_of(pair.a, false);
  }
}

void Machine::wgmma_integer(int k, const Pairs& ab, const Evidence& evidence, bool sparse) {
  const Shape shape{64, 0, k};
  for (const auto& [overflow, qualifier] : integer_forms) {
    for (const OperandPair& pair : ab) {
      MatrixInstruction& instruction =
          add("wgmma.mma_async" + std::string(sparse ? ".sp" : "") + ".sync.aligned." +
                  shape_text(shape) + ".s32" + type(pair.a) + type(pair.b) + text(qualifier),
              sparse ? Family::wgmma_sp : Family::wgmma, shape, pair, to_int32,
              integer_arithmetic(Product::multiply, overflow, evidence));
      if (sparse) instruction.sparsity = sparsity_of(pair.a, false);
    }
  }
}

void Machine::wgmma_bits(int k, const Evidence& evidence) {
  const Shape shape{64, 0, k};
  add("wgmma.mma_async.sync.aligned." + shape_text(shape) + ".s32.b1.b1.and.popc", Family::wgmma,
      shape, {formats::b1, formats::b1}, to_int32,
      integer_arithmetic(Product::bit_and, IntegerOverflow::wrap, evidence));
}

void Machine::tcgen05(std::string_view kind, int k, const Pairs& ab, const AccumulatorPair& cd,
                      const Arithmetic& arithmetic, bool sparse, const BlockScale& scale,
                      std::string_view suffix) {
  const Shape shape{0, 0, k};
  for (const OperandPair& pair : ab) {
    std::string name = "tcgen05.mma" + std::string(sparse ? ".sp" : "") + ".kind::" + text(kind) +
                       "." + shape_text(shape) + type(cd.d) + type(pair.a) + type(pair.b) +
                       text(suffix);
    if (scale.count != 0) {
      name += ".block_scale.scale_vec::" + std::to_string(scale.count) + "X" + type(scale.format);
    }
    MatrixInstruction& instruction =
        add(name, sparse ? Family::tcgen05_sp : Family::tcgen05, shape, pair, cd, arithmetic);
    instruction.scale = scale;
    if (sparse) instruction.sparsity = sparsity_of(pair.a, kind == "mxf4" || kind == "mxf4nvf4");
  }
}

void Machine::named(std::string_view name, Family family, const Shape& shape, const OperandPair& ab,
                    const AccumulatorPair& cd, const Arithmetic& arithmetic) {
  add(text(name), family, shape, ab, cd, arithmetic);
}

void Machine::named_sparse(std::string_view name, Family family, const Shape& shape,
                           const OperandPair& ab, const AccumulatorPair& cd,
                           const Arithmetic& arithmetic) {
  add(text(name), family, shape, ab, cd, arithmetic).sparsity = sparsity_of(ab.a, false);
}

}  // namespace guardbit::emulator
