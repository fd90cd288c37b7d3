#include "emulator/gemm/atlas/convolutions/listed_convolutions.hpp"

#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/atlas/convolutions/convolution_leaf.hpp"
#include "emulator/gemm/atlas/convolutions/convolution_segments.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using namespace emulator::atlas;

/// A line of the golden file: a call, and the order that its launches on an H200 tell.
struct Recorded {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionForm form = ConvolutionForm::unknown;
  /// 0: tensor cores, 1: CUDA cores, 2: tensor cores that take 8 elements of K at once
  int unit = 0;
  int tile = 0;
  std::int64_t parts = 1;
  TensorCoreInput input = TensorCoreInput::as_stored;
};

Recorded recorded_of(const std::string& text) {
  std::istringstream in(text);
  Recorded line;
  ConvolutionShape& x = line.shape;
  int numbers = 0, pass = 0, form = 0, input = 0;
  in >> numbers >> x.channels_last >> x.deterministic >> pass >> x.images >> x.channels >> x.rows >>
      x.outputs >> x.filter >> x.stride >> x.padding >> form >> line.unit >> line.tile >>
      line.parts >> input;
  REQUIRE(in);
  x.columns = x.rows;
  x.numbers = static_cast<Numbers>(numbers);
  line.pass = static_cast<ConvolutionPass>(pass);
  line.form = static_cast<ConvolutionForm>(form);
  line.input = static_cast<TensorCoreInput>(input);
  return line;
}

bool has_order(const ConvolutionLeaf& leaf, const Recorded& line) {
  // cuDNN's names do not say that parts of a kernel which stores channel by channel may be added
  // from the last one on; results do.
  const bool is_either =
      line.form == ConvolutionForm::split && leaf.form == ConvolutionForm::split_last_first;
  return (leaf.form == line.form || is_either) &&
         (leaf.fma      ? 1
          : leaf.eights ? 2
                        : 0) == line.unit &&
         leaf.tile == line.tile;
}

TEST_CASE("a listed convolution has the order that was recorded of it") {
  std::ifstream file("tests/golden/atlas/listed_convolutions.txt");
  std::map<ConvolutionForm, int> told;
  int untold = 0;
  for (std::string text; std::getline(file, text);) {
    INFO(text);
    const Recorded line = recorded_of(text);
    const std::optional<ConvolutionLeaf> leaf = listed_leaf(line.shape, line.pass);
    if (!leaf) {
      ++untold;
      continue;
    }
    ++told[line.form];
    CHECK(leaf->agree == 1000);
    CHECK(has_order(*leaf, line));
    CHECK(leaf->parts == line.parts);
    CHECK(leaf->input == line.input);
  }
  CHECK(told.size() == 22);
  CHECK(untold < 60);
}

TEST_CASE("recorded calls around a drawn convolution tell its order") {
  std::ifstream file("tests/golden/atlas/drawn_convolutions.txt");
  struct Count {
    int told = 0, wrong = 0;
  };
  Count rules, guesses, listed;
  for (std::string text; std::getline(file, text);) {
    const Recorded line = recorded_of(text);
    const bool is_between = leaf_between_listed(line.shape, line.pass).has_value();
    const ConvolutionLeaf leaf = leaf_of(line.shape, line.pass);
    Count& count = leaf.agree == 1000 ? listed : leaf.agree >= rule_agrees ? rules : guesses;
    if (!is_between && &count != &listed) continue;
    ++count.told;
    count.wrong += has_order(leaf, line) ? 0 : 1;
  }
  CHECK(listed.told > 600);
  CHECK(rules.told > 400);
  CHECK(guesses.told > 400);
  CHECK(listed.wrong * 200 <= listed.told);
  CHECK(rules.wrong * 200 <= rules.told);
  // Guesses are what they are called.
  CHECK(guesses.wrong * 8 <= guesses.told);
  CHECK(guesses.wrong * 100 > guesses.told);
}

ConvolutionShape shape_of(std::int64_t images, std::int64_t channels, std::int64_t side,
                          std::int64_t outputs, std::int64_t filter, std::int64_t padding) {
  ConvolutionShape x;
  x.images = images;
  x.channels = channels;
  x.rows = x.columns = side;
  x.outputs = outputs;
  x.filter = filter;
  x.padding = padding;
  x.numbers = Numbers::tf32;
  x.deterministic = true;
  return x;
}

TEST_CASE("what no list has is not told") {
  const ConvolutionShape listed = shape_of(32, 64, 16, 64, 3, 1);
  REQUIRE(listed_leaf(listed, ConvolutionPass::forward));
  ConvolutionShape x = listed;
  x.images = 33;
  CHECK(!listed_leaf(x, ConvolutionPass::forward));
  x = listed;
  x.columns = 17;
  CHECK(!listed_leaf(x, ConvolutionPass::forward));
  x = listed;
  x.outputs = 65;
  CHECK(!listed_leaf(x, ConvolutionPass::forward));
  x = listed;
  x.numbers = Numbers::f32;
  x.channels_last = true;
  CHECK(!listed_leaf(x, ConvolutionPass::forward));
  x = listed;
  x.images = std::int64_t{1} << 40;
  CHECK(!listed_leaf(x, ConvolutionPass::forward));
}

TEST_CASE("calls around make no rule in FP32, of which none was tried") {
  int told = 0;
  for (std::int64_t images = 1; images < 300; ++images) {
    for (const std::int64_t side : {8, 14, 17, 28, 30}) {
      ConvolutionShape x = shape_of(images, 3, side, 16, 3, 1);
      x.numbers = Numbers::f32;
      if (!leaf_between_listed(x, ConvolutionPass::forward)) continue;
      ++told;
      CHECK(leaf_of(x, ConvolutionPass::forward).agree < rule_agrees);
    }
  }
  CHECK(told > 0);
}

TEST_CASE("only calls between listed ones that agree are told by them") {
  const ConvolutionShape listed = shape_of(32, 64, 16, 64, 3, 1);
  CHECK(!leaf_between_listed(listed, ConvolutionPass::forward));
  ConvolutionShape x = listed;
  x.images = 34;
  const auto between_images = leaf_between_listed(x, ConvolutionPass::forward);
  REQUIRE(between_images);
  CHECK(between_images->is_between_images);
  CHECK(!between_images->is_between_sides);
  CHECK(between_images->leaf.form == listed_leaf(listed, ConvolutionPass::forward)->form);
  x.rows = x.columns = 17;
  const auto between_both = leaf_between_listed(x, ConvolutionPass::forward);
  CHECK((!between_both || between_both->is_between_sides));
  // Outside the lists, or of channels that they do not have.
  x = listed;
  x.images = 1001;
  CHECK(!leaf_between_listed(x, ConvolutionPass::forward));
  x = listed;
  x.images = 34;
  x.outputs = 65;
  CHECK(!leaf_between_listed(x, ConvolutionPass::forward));
  // Somewhere the kernel changes from one number of images to the next listed one.
  int changes = 0;
  for (std::int64_t count = 2; count < 250; ++count) {
    x = listed;
    x.images = count;
    if (listed_leaf(x, ConvolutionPass::weight)) continue;
    if (!leaf_between_listed(x, ConvolutionPass::weight)) ++changes;
  }
  CHECK(changes > 0);
}

TEST_CASE("a gradient that a GPU adds by atomics has no order") {
  // Else cudnn.deterministic asks for the next engine.
  int by_atomics = 0;
  for (const std::int64_t channels : {16, 32, 64, 128}) {
    ConvolutionShape x = shape_of(2, channels, 8, channels, 3, 1);
    x.deterministic = false;
    for (const auto pass : {ConvolutionPass::data, ConvolutionPass::weight}) {
      const auto leaf = listed_leaf(x, pass);
      if (leaf && leaf->form == ConvolutionForm::unknown) ++by_atomics;
    }
  }
  CHECK(by_atomics > 0);
}

TEST_CASE("atomics add once where filters have no pixel in common") {
  // Transposed, as a U-Net has it.
  ConvolutionShape x = shape_of(8, 64, 14, 64, 2, 0);
  x.stride = 2;
  x.deterministic = false;
  const auto leaf = listed_leaf(x, ConvolutionPass::data);
  REQUIRE(leaf);
  CHECK(leaf->form == ConvolutionForm::outermost);
  CHECK(leaf->fma);
  CHECK(leaf->agree == 1000);
}

TEST_CASE("filters of 1 x 1 that cuBLAS multiplies are told") {
  // A block of MobileNetV3, and its squeeze-and-excite.
  for (const auto& [channels, outputs, side] : {std::array{16, 72, 24},
                                                {72, 24, 12},
                                                {24, 88, 12},
                                                {40, 240, 6},
                                                {240, 40, 6},
                                                {24, 96, 1}}) {
    INFO(channels << " " << outputs << " " << side);
    CHECK(listed_leaf(shape_of(16, channels, side, outputs, 1, 0), ConvolutionPass::forward));
  }
}

TEST_CASE("K is cut while that gains enough") {
  const SegmentedKernel kernel{64, 64, 32, 1, 1};
  const auto count = [&](std::int64_t depth) {
    // One tile of D; K in so many tiles.
    ConvolutionShape x = shape_of(1, 32 * depth, 1, 64, 1, 0);
    return segments_of(kernel, x, ConvolutionPass::forward)->count;
  };
  // 25 tiles less in the longest segment pay.
  CHECK(count(49) == 1);
  CHECK(count(50) == 2);
  CHECK(count(98) == 2);
  CHECK(count(99) == 4);
  // From 9 segments of 33 tiles on a second kernel adds them.
  CHECK(count(296) == 8);
  CHECK(count(297) == 9);
  CHECK(segments_of(kernel, shape_of(1, 32 * 297, 1, 64, 1, 0), ConvolutionPass::forward)
            ->by_second_kernel);
  // Where 10 segments would be no longer than 11 of the longest one's length, TF32 is not told.
  CHECK(count(10 * 33) == 10);
  CHECK(!segments_of(kernel, shape_of(1, 32 * (47 * 33 + 12), 1, 64, 1, 0),
                     ConvolutionPass::forward));
  // In BF16 a cut costs eight times as much.
  ConvolutionShape x = shape_of(1, 64 * 199, 1, 64, 1, 0);
  x.numbers = Numbers::bf16;
  const SegmentedKernel of_16_bits{64, 64, 64, 2, 4};
  CHECK(segments_of(of_16_bits, shape_of(8, 64, 2, 64, 1, 0), ConvolutionPass::forward)->count ==
        1);
  CHECK(!segments_of({64, 64, 32, 3, 3}, x, ConvolutionPass::forward));
  // 150 tiles are more than run at once, and K is short; of 4 images two more segments would fit.
  const auto of_images = [&](std::int64_t images, std::int64_t channels) {
    return segments_of(kernel, shape_of(images, channels, 8, 64, 3, 1), ConvolutionPass::forward);
  };
  CHECK(of_images(150, 64)->count == 1);
  CHECK(!of_images(150, 512));
  CHECK(of_images(250, 512)->count == 1);
}

}  // namespace
}  // namespace guardbit::tests
