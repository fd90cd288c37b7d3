#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/gemm/plan_fit.hpp"
#include "formats/files/array_file.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;
using formats::fp32;

const std::string hopper = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";

GemmPlan plan_of(const std::string& text) { return emulator::parse_plan(text, "test"); }

/// The same matrix inside a larger one, perhaps stored column by column.
CodeMatrix view_of(const CodeMatrix& matrix, Random& random) {
  const bool turned = random.one_in(2);
  const CodeMatrix from = turned ? matrix.transposed().contiguous() : matrix;
  const std::int64_t above = random.between(0, 3), left = random.between(0, 3);
  CodeMatrix large = emulator::make_matrix(from.format, from.batch + 2, from.rows + above + 2,
                                           from.columns + left + 1);
  for (std::int64_t i = 0; i < large.size(); ++i) large.set(i, 1);
  emulator::copy_matrix(from, large, 1, above, left);
  const CodeMatrix view = large.entries(1, from.batch).part(above, from.rows, left, from.columns);
  return turned ? view.transposed() : view;
}

TEST_CASE("Views read what they view, and a write takes memory of its own") {
  Random random(901);
  const CodeMatrix matrix = random_matrix(formats::fp16, 3, 5, 7, random);
  for (int round = 0; round < 8; ++round) {
    const CodeMatrix view = view_of(matrix, random);
    REQUIRE(view.size() == matrix.size());
    for (std::int64_t g = 0; g < 3; ++g)
      for (std::int64_t i = 0; i < 5; ++i)
        for (std::int64_t j = 0; j < 7; ++j) {
          CHECK(view(g, i, j) == matrix(g, i, j));
          CHECK(view[view.index(g, i, j)] == matrix(g, i, j));
          CHECK(view.matrix(g)(i, j) == matrix(g, i, j));
        }
    CHECK(view.contiguous().bytes == matrix.bytes);
    CodeMatrix changed = view;
    CHECK(changed.bytes.data() == view.bytes.data());
    changed.set(3, matrix[3] ^ 1U);
    CHECK(changed[3] == (matrix[3] ^ 1U));
    CHECK(changed[4] == matrix[4]);
    CHECK(view.contiguous().bytes == matrix.bytes);
  }
  CodeMatrix copy = matrix;
  CHECK(copy.bytes.data() == matrix.bytes.data());
  copy.set(0, matrix[0] ^ 1U);
  CHECK(copy[0] != matrix[0]);
}

TEST_CASE("Whatever outputs are taken, each keeps the scales of its row and its column") {
  // Blocks of 4 give 2 and 3 scales, where 3 rows and 3 columns for each scale would as well.
  constexpr std::int64_t m = 6, n = 9, k = 8, block = 4;
  Random random(907);
  GemmProblem all;
  all.a = random_matrix(formats::e4m3, 1, m, k, random);
  all.b = random_matrix(formats::e4m3, 1, k, n, random);
  all.scale_a = emulator::make_matrix(fp32, 1, 2, 2);
  all.scale_b = emulator::make_matrix(fp32, 1, 2, 3);
  all.scale_k = block;
  std::uint64_t scale = 0x3F800000;
  for (CodeMatrix* const scales : {&all.scale_a, &all.scale_b})
    for (std::int64_t i = 0; i < scales->size(); ++i) scales->set(i, scale += 0x1000);
  const auto of_a = [](const GemmProblem& x, std::int64_t g, std::int64_t i, std::int64_t at) {
    return emulator::scale_at(x.scale_a, g, i, at, x.m(), x.scale_a.columns, block);
  };
  const auto of_b = [](const GemmProblem& x, std::int64_t g, std::int64_t j, std::int64_t at) {
    return emulator::scale_at(x.scale_b, g, at, j, x.scale_b.rows, x.n(), block);
  };
  const auto check = [&](const GemmProblem& x, const std::vector<std::int64_t>& rows,
                         const std::vector<std::int64_t>& columns) {
    REQUIRE(x.m() == std::ssize(rows));
    REQUIRE(x.n() == std::ssize(columns));
    for (std::int64_t at = 0; at < k / block; ++at) {
      for (std::int64_t i = 0; i < x.m(); ++i)
        CHECK(of_a(x, 0, i, at) == of_a(all, 0, rows[static_cast<std::size_t>(i)], at));
      for (std::int64_t j = 0; j < x.n(); ++j)
        CHECK(of_b(x, 0, j, at) == of_b(all, 0, columns[static_cast<std::size_t>(j)], at));
    }
  };
  CHECK(of_a(all, 0, 3, 0) == of_a(all, 0, 0, 0));
  CHECK(of_b(all, 0, 3, 0) == of_b(all, 0, 0, 0));
  check(emulator::select(all, emulator::Selection2d{{3}, {3}}), {3}, {3});
  check(emulator::select(all, emulator::Selection2d{{5, 0, 3}, {8, 3, 2, 6, 7}}), {5, 0, 3},
        {8, 3, 2, 6, 7});
  check(emulator::part(all, {0, 1, 3, 3, 3, 5}), {3, 4, 5}, {3, 4, 5, 6, 7});
  const std::vector<emulator::Output> outputs = {{0, 3, 3}, {0, 5, 7}, {0, 2, 8}, {0, 3, 0}};
  const GemmProblem scattered = emulator::select(all, outputs);
  for (std::int64_t t = 0; t < std::ssize(outputs); ++t) {
    const emulator::Output& output = outputs[static_cast<std::size_t>(t)];
    for (std::int64_t at = 0; at < k / block; ++at) {
      CHECK(of_a(scattered, t, 0, at) == of_a(all, 0, output.row, at));
      CHECK(of_b(scattered, t, 0, at) == of_b(all, 0, output.column, at));
    }
  }
}

TEST_CASE("D may be memory of the caller") {
  Random random(908);
  GemmProblem problem;
  problem.a = random_matrix(formats::fp16, 2, 70, 32, random);
  problem.b = random_matrix(formats::fp16, 2, 32, 50, random);
  for (const char* const rest : {"", " d=fp16", " split=2x16"}) {
    CAPTURE(rest);
    const GemmPlan plan = plan_of(hopper + rest);
    const CodeMatrix expected = emulator::execute(plan, problem, 2);
    std::vector<std::byte> memory(expected.bytes.size(), std::byte{0xAA});
    emulator::ExecuteOptions options;
    options.threads = 2;
    options.most_outputs = 1000;
    options.memory = memory;
    const CodeMatrix d = emulator::execute(plan, problem, options);
    CHECK(d.bytes.data() == memory.data());
    CHECK(d.bytes == expected.bytes);
  }
}

TEST_CASE("Operands may be views") {
  Random random(902);
  const std::vector<std::pair<emulator::GemmUnit, Format>> units = {
      {{"simt", "fma.fp32"}, fp32},
      {{"simt", "fma.fp16"}, formats::fp16},
      {{"simt", "mad.int32"}, formats::int8},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}, formats::fp16},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"}, fp32},
      {{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"}, formats::int8}};
  int refused = 0;
  for (int round = 0; round < 70; ++round) {
    const auto& [unit, format] = units[random.below(units.size())];
    GemmPlan plan = random_plan(random);
    plan.unit = unit;
    plan.convolution = {};
    if (unit.arch == "simt" || format != fp32 || plan.input.has_integer_slices()) plan.input = {};
    if (unit.arch != "simt" && plan.epilogue.scales_operand())
      plan.epilogue.alpha_on = emulator::Epilogue::AlphaOn::sum;
    if (plan.promotion.interval != 0) plan.residue_first = 0;
    GemmProblem x;
    const int m = random.between(1, 40), n = random.between(1, 40), k = random.between(1, 200);
    const int batch = random.between(1, 3);
    x.a = random_matrix(format, batch, m, k, random);
    x.b = random_matrix(format, batch, k, n, random);
    const Format& addend = formats::is_integer(format) ? formats::int32 : fp32;
    const bool has_c = !random.one_in(4);
    if (has_c) x.c = random_matrix(addend, random.one_in(2) ? 1 : batch, m, n, random);
    if (!has_c || random.one_in(2)) x.bias = random_matrix(fp32, 1, 1, n, random);
    INFO(to_text(plan) << ", " << batch << " of " << m << " x " << n << " x " << k);
    GemmProblem views = x;
    views.a = view_of(x.a, random);
    views.b = view_of(x.b, random);
    if (has_c) views.c = view_of(x.c, random);
    emulator::ExecuteOptions small;
    small.threads = 1;
    small.most_outputs = random.between(1, 300);
    const emulator::GemmOperands operands = emulator::prepare_factors(plan, x, "test");
    if (emulator::misfit(plan, x, operands, "test")) {  // it cuts runs of pieces
      CHECK_THROWS_AS(execute(plan, x, 1), formats::Error);
      CHECK_THROWS_AS(execute(plan, views, small), formats::Error);
      ++refused;
      continue;
    }
    const CodeMatrix expected = execute(plan, x, 1);
    CHECK(execute(plan, views, 2).bytes == expected.bytes);
    CHECK(execute(plan, views, small).bytes == expected.bytes);
  }
  CHECK(refused < 20);
}

TEST_CASE("One matrix may serve every entry of a batch, and one row every row of C") {
  Random random(903);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 4, 9, 40, random);
  const CodeMatrix b = random_matrix(formats::fp16, 1, 40, 11, random);
  const CodeMatrix row = random_matrix(fp32, 1, 1, 11, random);
  x.b = b;
  x.b.batch = 4;
  x.b.strides = {0, 11, 1};
  x.c = row;
  x.c.rows = 9;
  x.c.strides = {0, 0, 1};
  GemmProblem copies = x;
  copies.b = x.b.contiguous();
  copies.c = x.c.contiguous();
  REQUIRE(copies.b.bytes.size() == 4 * b.bytes.size());
  const GemmPlan plan = plan_of(hopper + " beta=1 d=fp16");
  CHECK(execute(plan, x, 1).bytes == execute(plan, copies, 1).bytes);
}

TEST_CASE("Tensors of mapped files are operands where they lie") {
  Random random(904);
  const CodeMatrix a = random_matrix(formats::fp16, 1, 33, 50, random);
  const CodeMatrix b = random_matrix(formats::fp16, 1, 50, 20, random);
  const formats::Scratch scratch;
  for (const std::string name : {"x.npz", "x.safetensors"}) {
    const std::string path = scratch / name;
    formats::write_tensors(path, {},
                           std::vector{tensor_of(a, "a", {33, 50}), tensor_of(b, "b", {50, 20})});
    GemmProblem x;
    {
      const formats::TensorFile file = formats::read_tensors(path);
      x.a = emulator::matrix_of(*file.find("a"));
      x.b = emulator::matrix_of(*file.find("b"));
      CHECK(x.a.bytes.data() == file.find("a")->bytes.data());
      CHECK(x.b.bytes.data() == file.find("b")->bytes.data());
    }
    GemmProblem own;
    own.a = a, own.b = b;
    for (const char* const words : {" d=fp32", " split=2x16:ceil d=fp16"})
      CHECK(execute(plan_of(hopper + words), x, 1).bytes ==
            execute(plan_of(hopper + words), own, 1).bytes);
    // Writing does not reach the file.
    CodeMatrix changed = x.a;
    changed.set(0, a[0] ^ 1U);
    CHECK(x.a[0] == a[0]);
  }
}

TEST_CASE("Numbers at odd addresses are operands, too") {
  Random random(905);
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 7, 30, random);
  x.b = random_matrix(fp32, 1, 30, 9, random);
  GemmProblem odd = x;
  for (CodeMatrix* const matrix : {&odd.a, &odd.b}) {
    emulator::SharedBytes bytes(matrix->bytes.size() + 1);
    std::memcpy(bytes.writable() + 1, matrix->bytes.data(), matrix->bytes.size());
    matrix->bytes = bytes.from(1);
  }
  for (const char* const unit :
       {"simt/fma.fp32", "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"})
    CHECK(execute(plan_of(unit), odd, 1).bytes == execute(plan_of(unit), x, 1).bytes);
}

/// Every engine of the plan's unit but "cpu", which is no model.
std::vector<std::string> engines_of(const GemmPlan& plan) {
  const emulator::MatrixInstruction instruction =
      emulator::require_instruction(plan.unit.arch, plan.unit.instruction, "test");
  std::vector<std::string> names;
  for (const emulator::Engine& engine : emulator::engines())
    if (engine.accepts(instruction) && engine.device == nullptr) names.emplace_back(engine.name);
  return names;
}

TEST_CASE("Every engine gives the bits of every plan") {
  Random random(906);
  const std::string fp8 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3";
  const std::string int8 = "sm_90/mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
  struct Of {
    std::string plan;
    Format format;
  };
  for (const Of& of : {Of{hopper + " d=fp32", formats::fp16},
                       {hopper + " split=3x16:ceil lanes=2x16:round_robin d=fp16", formats::fp16},
                       {hopper + " stream_k=5x16x16x16 d=fp32", formats::fp16},
                       {hopper + " add=separate beta=0.5 d=fp16", formats::fp16},
                       {fp8 + " promote=64 d=fp32", formats::e4m3},
                       {int8 + " d=fp32", formats::int8}}) {
    const GemmPlan plan = plan_of(of.plan);
    GemmProblem x;
    x.a = random_matrix(of.format, 2, 37, 130, random);
    x.b = random_matrix(of.format, 2, 130, 35, random);
    if (plan.epilogue.beta != 0) x.c = random_matrix(formats::fp16, 2, 37, 35, random);
    const std::vector<std::string> names = engines_of(plan);
    REQUIRE(names.back() == "reference");
    emulator::ExecuteOptions options;
    options.engine = "reference";
    const CodeMatrix expected = execute(plan, x, options);
    for (const std::string& name : names) {
      INFO(of.plan << " by " << name);
      options.engine = name;
      CHECK(execute(plan, x, options).bytes == expected.bytes);
    }
    options.engine = "auto";
    CHECK(execute(plan, x, options).bytes == expected.bytes);
  }
}

TEST_CASE(
    "A plan's engine has a name, and a wrong one is refused with those that could stand there") {
  const auto message = [](std::string_view name, const std::string& plan) -> std::string {
    try {
      emulator::plan_engine(name, plan_of(plan));
    } catch (const formats::Error& error) {
      return error.what();
    }
    return "";
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  CHECK(emulator::plan_engine("auto", plan_of("simt/fma.fp32")).name == "host");
  CHECK(emulator::plan_engine("host", plan_of("simt/mad.int32")).engine == nullptr);
  CHECK(emulator::plan_engine("reference", plan_of(hopper)).name == "reference");
  CHECK(emulator::plan_engine("auto", plan_of(hopper)).name == engines_of(plan_of(hopper)).front());
  holds(message("host", hopper), "does not execute " + hopper);
  holds(message("host", hopper), "portable, reference");
  holds(message("portable", "simt/fma.fp32"), "auto, host");
  holds(message("fastest", hopper), "unknown engine 'fastest'");
}

TEST_CASE("Many outputs are finished as few are") {
  Random random(907);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 1, 60, 32, random, -14, 15);
  x.b = random_matrix(formats::fp16, 1, 32, 50, random, -14, 15);
  // Infinities and NaNs of every kind.
  for (const auto& [at, code] :
       {std::pair{5, 0x7c00}, {700, 0xfc00}, {1000, 0x7e01}, {1500, 0xfe00}})
    x.a.set(at, static_cast<std::uint64_t>(code));
  const std::vector<std::int64_t> rows = {0, 3, 21, 31, 46, 59}, columns = {0, 1, 17, 30, 49};
  int finished = 0;
  for (const Format& output : {fp32, formats::fp16, formats::bf16, formats::e4m3, formats::e5m2})
    for (const Format& addend : {fp32, formats::fp16, formats::fp64})
      for (int addition = 0; addition < 5; ++addition)
        for (int scales = 0; scales < 4; ++scales) {
          GemmPlan plan = plan_of(hopper);
          plan.epilogue.output = output;
          plan.epilogue.addition = static_cast<emulator::Epilogue::Addition>(addition);
          plan.epilogue.scales = static_cast<emulator::Epilogue::Scales>(scales % 3);
          plan.epilogue.alpha = random.one_in(2) ? 1 : 0.7;
          plan.epilogue.beta = random.one_in(3) ? 0 : -1.3;
          if (random.one_in(3)) {
            plan.split.parts = 3;
            plan.split.tile = 16;
            plan.split.sums = random.one_in(2) ? formats::fp16 : formats::bf16;
            if (random.one_in(3)) plan.split.order = emulator::SumOrder::in_place;
          }
          GemmProblem y = x;
          y.c = random_matrix(addend, 1, 60, 50, random);
          y.c.set(7, addend == fp32 ? 0xffc00001 : 0);
          if (random.one_in(2)) y.bias = random_matrix(addend, 1, 1, 50, random);
          if (scales != 3) {
            y.scale_a = random_matrix(fp32, 1, random.one_in(2) ? 1 : 60, 1, random);
            y.scale_b = random_matrix(fp32, 1, 1, random.one_in(2) ? 1 : 50, random);
          }
          INFO(to_text(plan));
          const CodeMatrix all = execute(plan, y, 2);
          REQUIRE(all.size() > 1024);
          CHECK(select(all, {rows, columns}).bytes ==
                execute(plan, select(y, {rows, columns}), 1).bytes);
          ++finished;
        }
  CHECK(finished == 300);
}

TEST_CASE("Work ends soon once its caller says so, on the caller's thread") {
  GemmProblem x;
  x.a = emulator::make_matrix(formats::fp16, 1, 4096, 4096);
  x.b = emulator::make_matrix(formats::fp16, 1, 4096, 4096);
  const std::thread::id caller = std::this_thread::get_id();
  for (const std::string& name : engines_of(plan_of(hopper))) {
    int told = 0;
    const auto start = std::chrono::steady_clock::now();
    emulator::ExecuteOptions options;
    options.engine = name;
    options.threads = 2;
    options.progress = [&](std::int64_t rows) {
      CHECK(std::this_thread::get_id() == caller);
      ++told;
      return rows != 0;
    };
    execute(plan_of(hopper), x, options);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    INFO(name);
    CHECK(told == 1);
    CHECK(taken.count() < 30);  // all of it takes minutes of the slow ones
  }
}

}  // namespace
}  // namespace guardbit::tests
