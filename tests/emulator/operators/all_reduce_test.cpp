#include "emulator/operators/collectives/all_reduce.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/operator_search/operator_search.hpp"
#include "emulator/operators/operator_tensor.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

// What NCCL gave for 2, 3, 4 and 8 ranks (tests/golden/nccl), computed again.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using ops::Reduction;
using ops::ReductionOrder;
using Codes = std::vector<std::uint64_t>;

/// Bits of SplitMix64 of seed and index.
std::uint64_t hashed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (index + seed * 0x100000001B3) * 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// As tools/scripts/record_collectives.py makes them: numbers of eight neighbouring binades.
Codes values(const formats::Format& f, int rank, std::int64_t count) {
  Codes codes;
  const std::uint64_t first = f.bias == 15 ? 11 : 123;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t h =
        hashed(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(i));
    codes.push_back((h & 1) << (f.exponent_bits + f.fraction_bits) |
                    ((h >> 1) % 8 + first) << f.fraction_bits |
                    (h >> 20 & ((std::uint64_t{1} << f.fraction_bits) - 1)));
  }
  return codes;
}

/// All pairs of codes of interest for two ranks; others have some of them.
Codes special(const formats::Format& f, int rank) {
  const int bits = f.fraction_bits, bias = f.bias;
  const std::uint64_t ones = (std::uint64_t{1} << bits) - 1, most = 2 * static_cast<unsigned>(bias);
  Codes magnitudes = {0, 1, 2, 3, ones - 1, ones};
  for (const std::uint64_t e :
       {std::uint64_t{1}, std::uint64_t{2}, static_cast<std::uint64_t>(bias - bits - 1),
        static_cast<std::uint64_t>(bias - 1), static_cast<std::uint64_t>(bias),
        static_cast<std::uint64_t>(bias + 1), most - 1, most})
    for (const std::uint64_t fraction : {std::uint64_t{0}, std::uint64_t{1}, (ones >> 1) + 1, ones})
      magnitudes.push_back((e << bits) + fraction);
  const std::uint64_t infinity = (most + 1) << bits, quiet = std::uint64_t{1} << (bits - 1);
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{1}, quiet, quiet + 5, ones})
    magnitudes.push_back(infinity + more);
  Codes codes;
  for (const std::uint64_t m : magnitudes)
    for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1}})
      codes.push_back(m | sign << (f.exponent_bits + f.fraction_bits));
  const std::size_t n = codes.size();
  Codes chosen;
  for (std::size_t i = 0; i < n * n; ++i) {
    const std::size_t at =
        rank == 0 ? i / n
        : rank == 1
            ? i % n
            : static_cast<std::size_t>(hashed(1000 + static_cast<std::uint64_t>(rank), i) % n);
    chosen.push_back(codes[at]);
  }
  return chosen;
}

/// A line of the recording.
struct Recorded {
  int ranks = 0;
  std::string what, algorithm, protocol;
  int channels = 0, all_channels = 0;
  std::string type, op, elements, digest;
};

std::vector<Recorded> recorded() {
  std::ifstream file(in_source("tests/golden/nccl/all_reduce.txt"));
  std::vector<Recorded> list;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Recorded x;
    words >> x.ranks >> x.what >> x.algorithm >> x.protocol >> x.channels >> x.all_channels >>
        x.type >> x.op >> x.elements >> x.digest;
    list.push_back(x);
  }
  return list;
}

std::vector<Codes> inputs_of(const Recorded& x, const formats::Format& f) {
  std::vector<Codes> inputs;
  for (int rank = 0; rank < x.ranks; ++rank) {
    if (x.elements == "special") {
      inputs.push_back(special(f, rank));
    } else if (x.elements == "pairs") {
      Codes& codes = inputs.emplace_back();
      for (std::uint64_t i = 0; i < 65536; ++i) codes.push_back(rank == 0 ? i / 256 : i % 256);
    } else {
      const std::int64_t count = std::stoll(x.elements);
      inputs.push_back(values(f, rank, x.what == "all_reduce" ? count : count * x.ranks));
    }
  }
  return inputs;
}

ops::AllReducePlan plan_of(const Recorded& x, std::int64_t elements, int bytes) {
  ops::AllReducePlan plan;
  plan.ranks = x.ranks;
  plan.element_bytes = bytes;
  const bool low_latency = x.protocol == "ll";
  plan.kind = x.algorithm == "ring" ? ReductionOrder::Kind::ring : ReductionOrder::Kind::tree;
  plan.channels = ops::channel_elements(elements, bytes, low_latency, x.channels);
  plan.longest_chunk = ops::longest_chunk(bytes, low_latency);
  plan.first_tree_channels = x.all_channels / 2;
  return plan;
}

std::vector<ops::OrderedRun> runs_of(const Recorded& x, std::int64_t elements, int bytes) {
  if (x.what == "all_reduce") return ops::runs_of(plan_of(x, elements, bytes));
  std::vector<ops::OrderedRun> runs;
  const std::int64_t each = elements / x.ranks;
  for (int rank = 0; rank < x.ranks; ++rank)
    runs.push_back(
        {rank * each, (rank + 1) * each, {ReductionOrder::Kind::ring, (rank + 1) % x.ranks}});
  return runs;
}

std::string digest_of(const Codes& codes, int bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::uint64_t code : codes)
    for (int byte = 0; byte < bytes; ++byte)
      hash = (hash ^ (code >> (8 * byte) & 255)) * 0x100000001B3;
  std::ostringstream text;
  text.fill('0');
  text.width(16);
  text << std::hex << hash;
  return text.str();
}

/// The results; nothing where the order of an average is not known.
std::optional<Codes> computed(const Recorded& x, const formats::Format& f,
                              const std::vector<Codes>& inputs, int* rotated_by = nullptr) {
  const auto op = *formats::find_word<Reduction>(x.op);
  const int bytes = formats::container_bits(f) / 8;
  const auto elements = static_cast<std::int64_t>(inputs[0].size());
  Codes results(inputs[0].size());
  for (ops::OrderedRun run : runs_of(x, elements, bytes)) {
    if (!ops::knows_order(op, x.ranks, run.order)) return std::nullopt;
    if (rotated_by != nullptr) run.order.which = (run.order.which + *rotated_by) % x.ranks;
    const ops::OrderedReduction reduced(f, op, x.ranks, run.order);
    formats::parallel_for(static_cast<std::size_t>(run.end - run.begin), 4096, 0,
                          [&](std::size_t first, std::size_t last) {
                            Codes codes(inputs.size());
                            for (std::size_t i = first; i < last; ++i) {
                              const std::size_t at = static_cast<std::size_t>(run.begin) + i;
                              for (std::size_t rank = 0; rank < inputs.size(); ++rank)
                                codes[rank] = inputs[rank][at];
                              results[at] = reduced(codes);
                            }
                          });
  }
  return results;
}

void check(std::int64_t least, std::int64_t most) {
  int checked = 0, unknown = 0;
  for (const Recorded& x : recorded()) {
    const bool is_counted = x.elements != "special" && x.elements != "pairs";
    const std::int64_t count = is_counted ? std::stoll(x.elements) : 65536;
    if (count < least || count > most) continue;
    const formats::Format f = formats::require_format(x.type, "recording");
    const auto results = computed(x, f, inputs_of(x, f));
    if (!results) {
      ++unknown;
      continue;
    }
    INFO(x.ranks << " ranks, " << x.what << ", " << x.algorithm << ", " << x.protocol << ", "
                 << x.type << ", " << x.op << ", " << x.elements);
    CHECK(digest_of(*results, formats::container_bits(f) / 8) == x.digest);
    ++checked;
  }
  CHECK(checked > 50);
  CHECK(unknown < checked / 10);
}

}  // namespace

TEST_CASE("All-reduces of 2, 3, 4 and 8 ranks have NCCL's bits") { check(0, 70000); }
TEST_CASE("All-reduces of up to 300,007 elements have NCCL's bits", "[sweep]") {
  check(70001, 1 << 30);
}

TEST_CASE("Another first rank, tree or cut gives other bits than NCCL's") {
  int rotation = 1, seen = 0;
  for (const Recorded& x : recorded()) {
    if (x.ranks < 3 || x.elements != "1003" || x.what != "all_reduce" || x.algorithm != "ring")
      continue;
    const formats::Format f = formats::require_format(x.type, "recording");
    const auto results = computed(x, f, inputs_of(x, f), &rotation);
    REQUIRE(results);
    CHECK(digest_of(*results, formats::container_bits(f) / 8) != x.digest);
    ++seen;
  }
  CHECK(seen > 8);
}

TEST_CASE("The trees of NCCL hold every rank once") {
  for (int ranks = 2; ranks <= 70; ++ranks)
    for (const int which : {0, 1}) {
      const ops::ReductionTree tree = ops::reduction_tree(ranks, which);
      std::vector<int> found{tree.root};
      for (std::size_t i = 0; i < found.size() && found.size() <= static_cast<std::size_t>(ranks);
           ++i)
        for (const int child : tree.children[static_cast<std::size_t>(found[i])])
          found.push_back(child);
      std::sort(found.begin(), found.end());
      std::vector<int> all(static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
      CHECK(found == all);
    }
  CHECK(ops::reduction_tree(8, 0).children ==
        std::vector<std::vector<int>>{{4}, {}, {1, 3}, {}, {2, 6}, {}, {5, 7}, {}});
}

namespace {

emulator::OperatorAnswer asked(const formats::Format& f, const std::vector<Codes>& inputs,
                               const Codes& output, bool averages = false) {
  Codes all;
  for (const Codes& codes : inputs) all.insert(all.end(), codes.begin(), codes.end());
  const auto tensor = [&](const Codes& codes, const ops::Dimensions& shape) {
    const auto width = static_cast<std::size_t>(formats::container_bits(f) / 8);
    std::vector<std::byte> bytes;
    for (const std::uint64_t code : codes)
      for (std::size_t byte = 0; byte < width; ++byte)
        bytes.push_back(static_cast<std::byte>(code >> (8 * byte) & 255));
    return ops::tensor_of_bytes(f, shape, ops::contiguous_stride(shape), bytes);
  };
  const auto count = static_cast<std::int64_t>(output.size());
  emulator::OperatorQuestion question;
  question.op = averages ? emulator::SearchedOperator::all_reduce_avg
                         : emulator::SearchedOperator::all_reduce;
  question.input = tensor(all, {static_cast<std::int64_t>(inputs.size()), count});
  question.output = tensor(output, {count});
  question.threads = 2;
  return emulator::search_operator(question);
}

}  // namespace

TEST_CASE("The search finds the ring or tree behind recorded all-reduces", "[long]") {
  int rings = 0, trees = 0;
  for (const Recorded& x : recorded()) {
    if (x.ranks < 4 || x.elements != "20011" || x.what != "all_reduce" || x.op != "sum") continue;
    const formats::Format f = formats::require_format(x.type, "recording");
    const std::vector<Codes> inputs = inputs_of(x, f);
    const auto results = computed(x, f, inputs);
    REQUIRE(digest_of(*results, formats::container_bits(f) / 8) == x.digest);
    const emulator::OperatorAnswer answer = asked(f, inputs, *results);
    REQUIRE(answer.explained());
    CHECK(answer.refuting > 5000);
    const std::string expected = ops::text_of(plan_of(x, 20011, formats::container_bits(f) / 8));
    // Of cuts that give the same bits the one of few channels comes first.
    CHECK(answer.exact.front().rule.substr(0, 30) == expected.substr(0, 30));
    (x.algorithm == "ring" ? rings : trees) += 1;
  }
  CHECK(rings > 8);
  CHECK(trees > 8);
}

TEST_CASE("The search says what no ring or tree gives, and what two ranks cannot tell") {
  const formats::Format f = formats::fp32;
  const std::vector<Codes> two = {values(f, 0, 500), values(f, 1, 500)},
                           four = {two[0], two[1], values(f, 2, 500), values(f, 3, 500)};
  Codes sums(500), backwards(500);
  for (std::size_t i = 0; i < 500; ++i) {
    const Codes pair = {two[0][i], two[1][i]};
    sums[i] = ops::OrderedReduction(f, Reduction::sum, 2, {})(pair);
    // A ring that runs the other way.
    const Codes turned = {four[3][i], four[2][i], four[1][i], four[0][i]};
    backwards[i] = ops::OrderedReduction(
        f, Reduction::sum, 4, {ReductionOrder::Kind::ring, static_cast<int>(i / 125)})(turned);
  }
  const emulator::OperatorAnswer of_two = asked(f, two, sums);
  CHECK(of_two.explained());
  CHECK(of_two.refuting == 0);
  CHECK_FALSE(asked(f, four, backwards).explained());
  CHECK_FALSE(asked(f, two, sums, true).explained());
  sums[77] ^= 1;
  const emulator::OperatorAnswer wrong = asked(f, two, sums);
  CHECK_FALSE(wrong.explained());
  REQUIRE(wrong.nearest);
  CHECK(wrong.nearest->mismatches == 1);
  CHECK_THROWS_AS(asked(f, {two[0]}, two[0]), formats::Error);
}

}  // namespace guardbit::tests
