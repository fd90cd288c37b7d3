// Recipes applied piece by piece, and to parts of a tensor, against recipes applied to the whole.

#include "experiments/scaling/recipe_pass.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "experiments/scaling/recipe_statistics.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

using formats::StreamedTensor;

std::vector<float> gradients(std::size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-24, 0);
  std::vector<float> values(count);
  for (float& x : values) x = normal(random) * std::exp2(exponent(random));
  return values;
}

formats::Tensor tensor_of(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  std::vector<std::byte> bytes(4 * values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return formats::owning_tensor("x", formats::fp32, formats::Packing::container, std::move(shape),
                                std::move(bytes));
}

/// The tensor, read a window of so many elements at a time.
StreamedTensor in_windows(const formats::Tensor& tensor, std::size_t window) {
  StreamedTensor stream{tensor, {}};
  stream.read = [tensor, window](const formats::WindowVisitor& visit) {
    const std::size_t count = tensor.bytes.size() / 4;
    for (std::size_t first = 0; first < count; first += window)
      visit(tensor.bytes.subspan(4 * first, 4 * std::min(window, count - first)), first);
  };
  return stream;
}

std::vector<RecipeOutcome> whole(const std::vector<Recipe>& recipes,
                                 const std::vector<float>& values, std::size_t columns,
                                 Layout layout) {
  std::vector<RecipeOutcome> outcomes;
  outcomes.reserve(recipes.size());
  for (const Recipe& recipe : recipes) {
    RecipeState state;
    outcomes.push_back(apply(recipe, {values, columns}, layout, state));
  }
  return outcomes;
}

}  // namespace

TEST_CASE("recipes: a tensor read in windows of any size fares as the whole") {
  const std::vector<Recipe> recipes = known_recipes({});
  struct Case {
    std::vector<std::int64_t> shape;
    std::size_t columns;
  };
  for (const Case& c : {Case{{2600}, 2600}, Case{{13, 200}, 200}, Case{{2, 130, 10}, 10},
                        Case{{2600, 1}, 1}, Case{{1, 2600}, 2600}}) {
    const std::vector<float> values = gradients(2600);
    const formats::Tensor tensor = tensor_of(values, c.shape);
    for (const Layout layout : {Layout::flat, Layout::rows}) {
      const std::vector<RecipeOutcome> expected = whole(recipes, values, c.columns, layout);
      for (const std::size_t window : {1UL, 7UL, 129UL, 1000UL, 5000UL}) {
        std::vector<RecipeState> states;
        const StoredTensor got =
            store_tensor(recipes, in_windows(tensor, window), layout, states, 1);
        CAPTURE(c.columns, window, layout == Layout::flat);
        CHECK(got.outcomes == expected);
        CHECK(got.signal == signal_of(values));
      }
    }
  }
}

TEST_CASE("recipes: tensors without elements, scalars, other formats") {
  const std::vector<Recipe> recipes = known_recipes({});
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{0}, {0, 5}, {5, 0}, std::vector<std::int64_t>{}}) {
    const std::vector<float> values(shape.empty() ? 1 : 0, 3.0F);
    for (const Layout layout : {Layout::flat, Layout::rows}) {
      std::vector<RecipeState> states;
      const StoredTensor got =
          store_tensor(recipes, formats::streamed(tensor_of(values, shape)), layout, states, 1);
      CHECK(got.outcomes == whole(recipes, values, 1, layout));
      CHECK(got.signal.elements == values.size());
    }
  }
  // 2^-30 in FP64, and 1.
  std::vector<std::byte> bytes(16);
  const std::array<double, 2> numbers = {0x1p-30, 1};
  std::memcpy(bytes.data(), numbers.data(), 16);
  const formats::Tensor wide = formats::owning_tensor(
      "x", formats::fp64, formats::Packing::container, {2}, std::move(bytes));
  std::vector<RecipeState> states;
  CHECK(store_tensor(recipes, formats::streamed(wide), Layout::flat, states, 2).outcomes ==
        whole(recipes, {0x1p-30F, 1}, 2, Layout::flat));
}

TEST_CASE("recipes: parts add up to the whole wherever that is not denied") {
  std::vector<Recipe> recipes = known_recipes({});
  std::erase_if(recipes, [](const Recipe& r) { return r.scaling == Scaling::te_delayed; });
  std::mt19937 random(3);
  std::set<std::string> added, denied;
  for (int round = 0; round < 36; ++round) {
    // Vectors and matrices, cut between elements and rows, now and then at multiples of blocks.
    const bool is_vector = round % 3 == 0;
    constexpr std::array widths = {1U, 10U, 32U, 48U, 128U, 160U};
    const std::size_t columns = is_vector ? 1 : widths[random() % widths.size()];
    const std::size_t rows = is_vector ? 300 + random() % 600 : 1 + random() % 400;
    const std::size_t step = std::array{1U, 16U, 32U, 128U}[random() % 4];
    std::vector<float> values = gradients(rows * columns);
    if (round % 2 == 0) std::fill(values.begin(), values.end(), 0x1p-11F);
    std::vector<std::size_t> cuts = {0, rows};
    for (int i = 0; i < 2; ++i) cuts.push_back(std::min(rows, random() % rows / step * step));
    std::sort(cuts.begin(), cuts.end());
    const Layout layout = round % 4 < 2 ? Layout::flat : Layout::rows;
    const std::size_t row = is_vector ? rows : columns;
    const std::vector<RecipeOutcome> expected = whole(recipes, values, row, layout);
    std::vector<TensorPart> parts;
    std::vector<RecipeOutcome> sums(recipes.size());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::vector<float> part(
          values.begin() + static_cast<std::ptrdiff_t>(cuts[i] * columns),
          values.begin() + static_cast<std::ptrdiff_t>(cuts[i + 1] * columns));
      if (part.empty()) continue;
      parts.push_back({part.size(), is_vector ? 0 : columns, amax_of(part.data(), part.size())});
      const auto outcomes = whole(recipes, part, is_vector ? part.size() : columns, layout);
      for (std::size_t r = 0; r < recipes.size(); ++r) sums[r].add(outcomes[r]);
    }
    // The odd one may come first: it is taken for the last.
    const bool is_last_odd = std::none_of(parts.begin(), parts.end() - 1, [&](const TensorPart& p) {
      return p.elements % (128 * (is_vector ? 1 : columns)) != 0;
    });
    for (std::size_t r = 0; r < recipes.size(); ++r) {
      CAPTURE(recipes[r].name, rows, columns, cuts, layout == Layout::flat);
      const auto why = why_not_additive(recipes[r], layout, parts);
      (why ? denied : added).insert(recipes[r].name);
      if (why) continue;
      const bool is_whole_number_of_groups =
          std::none_of(parts.begin(), parts.end() - 1, [&](const TensorPart& p) {
            const auto length = static_cast<std::size_t>(std::max(recipes[r].grouping.columns, 1));
            return p.elements % length != 0;
          });
      if (!is_last_odd && !is_whole_number_of_groups && layout == Layout::flat) continue;
      if (!is_last_odd && has_tiles(recipes[r])) continue;
      if (!is_last_odd && is_vector && !is_whole_number_of_groups) continue;
      settle(sums[r], recipes[r], values.size());
      CHECK(sums[r] == expected[r]);
    }
  }
  // Each kind has been added up and denied.
  for (const char* name :
       {"mxfp8_e4m3_rceil", "e4m3_1x128", "e4m3_128x128", "nvfp4", "e4m3_tensor"}) {
    CAPTURE(name);
    CHECK(added.count(name) == 1);
    CHECK(denied.count(name) == 1);
  }
}

TEST_CASE("recipes: columns of a tensor add up where runs do not cross them") {
  const auto recipe = [](const std::string& name) {
    for (const Recipe& r : known_recipes({})) {
      if (r.name == name) return r;
    }
    FAIL(name);
    return Recipe();
  };
  const std::vector<TensorPart> columns = {{640, 64, 1}, {960, 96, 2}};
  CHECK_FALSE(why_not_additive(recipe("mxfp4_floor"), Layout::rows, columns));
  CHECK(why_not_additive(recipe("e4m3_1x128"), Layout::rows, columns));
  CHECK(why_not_additive(recipe("e4m3_128x128"), Layout::rows, columns));
  CHECK(why_not_additive(recipe("nvfp4"), Layout::rows, columns));
  CHECK(why_not_additive(recipe("e4m3_tensor"), Layout::rows, columns));
  const std::vector<TensorPart> mixed = {{640, 0, 1}, {960, 96, 1}};
  CHECK(why_not_additive(recipe("mxfp4_floor"), Layout::rows, mixed));
  CHECK_FALSE(why_not_additive(recipe("e4m3_tensor"), Layout::rows, mixed));
}

}  // namespace guardbit::experiments
