#include "emulator/gemm/atlas/usual_shapes.hpp"

#include <array>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/atlas/bit_encoder.hpp"
#include "emulator/gemm/atlas/coded_box.hpp"
#include "emulator/gemm/atlas/one_position.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using namespace emulator::atlas;

/// A line of the golden file: a call, and what its launches tell.
struct Line {
  ProductCall call;
  /// form, unit, tile and rule of a label; or one number: -1, what the trees say; -3, nothing
  std::array<int, 4> label{};
};

Line line_of(const std::string& text) {
  std::istringstream in(text);
  int op = 0, numbers = 0;
  Line line;
  ProductCall& call = line.call;
  in >> op >> numbers >> call.a_transposed >> call.b_transposed >> call.m >> call.n >> call.k >>
      call.batch;
  call.op = static_cast<Operator>(op);
  call.numbers = static_cast<Numbers>(numbers);
  call.a_leading = call.a_transposed ? call.m : call.k;
  call.b_leading = call.b_transposed ? call.k : call.n;
  for (int& field : line.label) in >> field;
  return line;
}

TEST_CASE("a call of a usual shape has the plan that was recorded of it") {
  // Drawn by fit_shapes.py from what was recorded on an H200.
  std::ifstream file("tests/golden/atlas/usual_shapes.txt");
  int labels = 0, right = 0, untold = 0;
  for (std::string text; std::getline(file, text);) {
    INFO(text);
    const Line line = line_of(text);
    const Leaf guess = leaf_of(line.call);
    const std::optional<Leaf> recorded = recorded_leaf(line.call, guess);
    if (line.label[0] == -3) {
      CHECK(!recorded);
      ++untold;
      continue;
    }
    REQUIRE(recorded);
    if (line.label[0] == -1) {
      CHECK(recorded->form == guess.form);
      CHECK(recorded->parts == guess.parts);
      CHECK(recorded->agree == guess.agree);
      ++right;
      continue;
    }
    ++labels;
    CHECK(static_cast<int>(recorded->form) == line.label[0]);
    if (recorded->form == Form::unknown) continue;
    if (recorded->form != Form::split_chains) CHECK(recorded->tile == line.label[2]);
    const bool cuts = recorded->form == Form::parts || recorded->form == Form::in_place ||
                      recorded->form == Form::rounded_parts ||
                      recorded->form == Form::round_robin || recorded->form == Form::runs_of_8;
    if (cuts) CHECK(recorded->parts == line.label[3]);
  }
  CHECK(labels > 40);
  CHECK(right > 40);
  CHECK(untold > 10);
}

TEST_CASE("a call beside the usual shapes, or with gaps, was not recorded") {
  ProductCall call{Operator::mm, Numbers::f32, 512, 512, 384, 1, false, true, 384, 384};
  CHECK(recorded_leaf(call, leaf_of(call)));
  call.n = 1031;
  CHECK(!recorded_leaf(call, leaf_of(call)));
  call.n = 512;
  call.a_leading = 385;
  CHECK(!recorded_leaf(call, leaf_of(call)));
  ProductCall scores{Operator::bmm, Numbers::f32, 64, 64, 32, 48, false, true, 32, 32};
  CHECK(recorded_leaf(scores, leaf_of(scores)));
  scores.whole_batches = false;
  CHECK(!recorded_leaf(scores, leaf_of(scores)));
}

TEST_CASE("a batch of one entry, repeated, is taken as one without gaps") {
  const auto is_whole = [](std::int64_t a, std::int64_t b) {
    const StridedCall call{"bmm", "fp32", 64, 64, 32, 48, {a, 32, 1}, {b, 1, 32}};
    return call_of(call, "test").whole_batches;
  };
  CHECK(is_whole(64 * 32, 64 * 32));
  CHECK(is_whole(0, 64 * 32));
  CHECK(is_whole(64 * 32, 0));
  CHECK(!is_whole(0, 0));
  CHECK(!is_whole(64 * 32, 64 * 40));
  CHECK(!is_whole(64 * 40, 0));
}

TEST_CASE("rows of A that lie apart are taken as without gaps where they begin as evenly") {
  const auto leading = [](const char* numbers, std::int64_t k, std::int64_t apart,
                          std::string_view op = "mm") {
    const StridedCall call{std::string(op), numbers, 2, 1500, k, 1, {apart, 1}, {1, k}};
    return call_of(call, "test").leading_of_a();
  };
  CHECK(leading("fp32", 128, 1536) == 128);
  CHECK(leading("fp32", 128, 1537) == 128);
  CHECK(leading("tf32", 128, 1536, "addmm") == 128);
  CHECK(leading("tf32", 128, 1537) == 1537);
  CHECK(leading("bf16", 100, 1600) == 100);
  CHECK(leading("bf16", 128, 132) == 132);
  // What was not tried: gaps in B, or in an A that is transposed, many rows, few elements, N = 1.
  CHECK(call_of({"mm", "fp32", 257, 8, 64, 1, {128, 1}, {1, 64}}, "test").leading_of_a() == 128);
  CHECK(call_of({"mm", "fp32", 2, 8, 1, 1, {128, 1}, {1, 1}}, "test").leading_of_a() == 128);
  CHECK(call_of({"mm", "fp32", 2, 1, 64, 1, {128, 1}, {1, 64}}, "test").leading_of_a() == 128);
  CHECK(call_of({"mm", "fp32", 2, 8, 64, 1, {128, 1}, {1, 128}}, "test").leading_of_a() == 128);
  CHECK(call_of({"mm", "fp32", 32, 8, 64, 1, {1, 128}, {1, 64}}, "test").leading_of_a() == 128);
}

TEST_CASE("heads that lie beside each other are taken as without gaps") {
  constexpr std::int64_t heads = 4, width = 32, apart = 3 * heads * width;
  const StridedCall scores{
      "bmm", "fp32", 9, 11, width, heads, {width, apart, 1}, {width, 1, apart}};
  const ProductCall call = call_of(scores, "test");
  CHECK(call.whole_batches);
  CHECK(call.leading_of_a() == width);
  CHECK(call.leading_of_b() == width);
  StridedCall values{"bmm", "fp32", 9, width, 11, heads, {99, 11, 1}, {width, apart, 1}};
  CHECK(call_of(values, "test").whole_batches);
  // Of many positions; windows that overlap; not beside each other, or in A alone.
  StridedCall many = scores;
  many.m = 513;
  CHECK(!call_of(many, "test").whole_batches);
  const StridedCall windows{
      "bmm", "fp32", 9, 11, width, heads, {9 * width, width, 1}, {width, 1, width}};
  CHECK(!call_of(windows, "test").whole_batches);
  values.b_stride[0] = 2 * width;
  CHECK(!call_of(values, "test").whole_batches);
  const StridedCall first{
      "bmm", "fp32", 9, 11, width, heads, {width, apart, 1}, {11 * width, 1, width}};
  CHECK(!call_of(first, "test").whole_batches);
}

TEST_CASE("scores of one query have the lanes that results told") {
  const auto scores = [](Numbers numbers, std::int64_t heads, std::int64_t keys,
                         std::int64_t features) {
    return ProductCall{Operator::bmm, numbers, 1, keys, features, heads, false, true, 0, 0};
  };
  const auto leaf = leaf_of_one_position(scores(Numbers::f32, 4, 13, 32));
  REQUIRE(leaf);
  CHECK(leaf->form == Form::lanes_halves);
  CHECK(leaf->lanes == 8);
  CHECK(leaf->tile == 0);
  CHECK(leaf->agree == 1000);
  // One head of as many features has two lanes; five and six heads what four and eight have.
  CHECK(leaf_of_one_position(scores(Numbers::f32, 1, 13, 32))->lanes == 2);
  const auto between = leaf_of_one_position(scores(Numbers::f32, 6, 13, 32));
  REQUIRE(between);
  CHECK(between->lanes == 8);
  CHECK(between->agree == rule_agrees);
  // In 16 bits 8 keys more or fewer go to tensor cores.
  const auto chain = leaf_of_one_position(scores(Numbers::bf16, 4, 64, 64));
  REQUIRE(chain);
  CHECK(chain->form == Form::chain);
  CHECK(leaf_of_one_position(scores(Numbers::bf16, 4, 63, 64))->lanes == 16);
  CHECK(!leaf_of_one_position(scores(Numbers::bf16, 4, 390, 64)));
  CHECK(leaf_of_one_position(scores(Numbers::f32, 4, 390, 64)));
  // Outside of what was recorded.
  CHECK(!leaf_of_one_position(scores(Numbers::f32, 33, 13, 32)));
  CHECK(!leaf_of_one_position(scores(Numbers::f32, 4, 1025, 32)));
  CHECK(!leaf_of_one_position(scores(Numbers::f32, 4, 13, 40)));
  CHECK(!leaf_of_one_position(scores(Numbers::tf32, 4, 13, 32)));
  ProductCall two = scores(Numbers::f32, 4, 13, 32);
  two.m = 2;
  CHECK(!leaf_of_one_position(two));
}

TEST_CASE("no rule speaks where results of one query refuted it") {
  const auto known = [](std::int64_t positions) {
    return plan_of({Operator::bmm, Numbers::f32, 1, 64, positions, 4, false, false, 0, 0}).known;
  };
  CHECK(known(640) == Known::nearest);
  CHECK(known(768) == Known::nearest);
  CHECK(known(1000) == Known::rule);
  CHECK(known(128) != Known::nearest);
}

TEST_CASE("a coded box is read as it was written") {
  // Planes with edges, some noise, and cells that may become any number.
  std::mt19937 random(3);
  constexpr std::array<std::size_t, 3> size = {4, 9, 31};
  const auto each = [&](auto&& use) {
    for (std::size_t slab = 0; slab < size[0]; ++slab)
      for (std::size_t row = 0; row < size[1]; ++row)
        for (std::size_t column = 0; column < size[2]; ++column) use(slab, row, column);
  };
  for (const unsigned noise : {0u, 3u, 60u, 100u}) {
    CodedBox written(size[0], size[1], size[2]), read(size[0], size[1], size[2]);
    std::vector<std::uint16_t> wanted;
    each([&](std::size_t slab, std::size_t row, std::size_t column) {
      const unsigned plane = column > 7 * (row + slab) ? 700 : row > 4 ? 3 : 0;
      const unsigned long number = random() % 100 < noise ? random() % 2000 : plane;
      wanted.push_back(random() % 10 == 0 ? CodedBox::any : static_cast<std::uint16_t>(number));
      written.cell(slab, row, column) = wanted.back();
    });
    BitEncoder encoder;
    written.code(encoder);
    const std::vector<std::uint8_t> bytes = encoder.bytes();
    BitDecoder decoder(bytes);
    read.code(decoder);
    auto next = wanted.begin();
    int wrong = 0;
    each([&](std::size_t slab, std::size_t row, std::size_t column) {
      const std::uint16_t number = *next++;
      wrong += number != CodedBox::any && read.cell(slab, row, column) != number;
    });
    INFO(noise);
    CHECK(wrong == 0);
    CHECK((noise > 0 || bytes.size() < 120));
  }
}

}  // namespace
}  // namespace guardbit::tests
