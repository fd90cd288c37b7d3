#include "emulator/probe/probe.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using emulator::BlackBox;
using emulator::ProbeReport;
using emulator::Question;

using Floats = std::vector<float>;

/// A function on floats as a black box.
BlackBox fp32_box(int k, std::function<float(const Floats&, const Floats&, float)> dot) {
  BlackBox box;
  box.a = box.b = box.c = box.d = formats::fp32;
  box.k = k;
  box.answer = [dot](std::span<const Question> questions) {
    std::vector<std::uint64_t> d;
    for (const Question& q : questions) {
      const auto number = [](std::uint64_t code) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(code));
      };
      Floats a, b;
      for (const std::uint64_t code : q.a) a.push_back(number(code));
      for (const std::uint64_t code : q.b) b.push_back(number(code));
      d.push_back(std::bit_cast<std::uint32_t>(dot(a, b, number(q.c))));
    }
    return d;
  };
  return box;
}

/// The same with FP16 operands and no addend; what `dot` gives is rounded to nothing more.
BlackBox fp16_box(int k, std::function<float(const Floats&, const Floats&)> dot) {
  BlackBox box = fp32_box(k, [](const Floats&, const Floats&, float) { return 0.0F; });
  box.a = box.b = formats::fp16;
  box.has_addend = false;
  box.answer = [dot](std::span<const Question> questions) {
    std::vector<std::uint64_t> d;
    for (const Question& q : questions) {
      const auto numbers = [](const std::vector<std::uint64_t>& codes) {
        Floats list;
        for (const std::uint64_t code : codes)
          list.push_back(std::bit_cast<float>(
              static_cast<std::uint32_t>(formats::convert(formats::fp16, code, formats::fp32))));
        return list;
      };
      d.push_back(std::bit_cast<std::uint32_t>(dot(numbers(q.a), numbers(q.b))));
    }
    return d;
  };
  return box;
}

float pairwise(const Floats& a, const Floats& b, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return a[begin] * b[begin];
  const std::size_t middle = begin + (end - begin) / 2;
  return pairwise(a, b, begin, middle) + pairwise(a, b, middle, end);
}

std::string text(const ProbeReport& report, int k) { return emulator::tree_text(report.tree, k); }

TEST_CASE("probe: a plain loop, with and without fused multiply-adds") {
  const ProbeReport loop =
      emulator::probe(fp32_box(6, [](const Floats& a, const Floats& b, float c) {
        for (std::size_t i = 0; i < a.size(); ++i) c += a[i] * b[i];
        return c;
      }));
  CHECK(text(loop, 6) == "((((((c 0) 1) 2) 3) 4) 5)");
  CHECK(loop.tree_arithmetic == "products rounded, then added, rounded nearest even");
  // The host takes the first NaN of each operation, which no policy of the model says.
  CHECK(loop.explained);
  CHECK(loop.nans_alike);

  const ProbeReport fused =
      emulator::probe(fp32_box(6, [](const Floats& a, const Floats& b, float c) {
        for (std::size_t i = 0; i < a.size(); ++i) c = std::fma(a[i], b[i], c);
        return c;
      }));
  CHECK(text(fused, 6) == "((((((c 0) 1) 2) 3) 4) 5)");
  CHECK(fused.tree_arithmetic == "fused multiply-adds, rounded nearest even");
}

TEST_CASE("probe: an instruction of a shorter K is one only where a chain of executions is") {
  const ProbeReport report = emulator::probe(fp16_box(8, [](const Floats& a, const Floats& b) {
    float sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum = std::fma(a[i], b[i], sum);
    return sum;
  }));
  CHECK(report.explained);
  // Those of K = 4 sum four products before they add C.
  CHECK(report.catalogue.empty());
  for (const std::string& other : report.alike)
    CHECK(std::count(report.alike.begin(), report.alike.end(), other) == 1);
}

TEST_CASE("probe: sums and operands of a narrower format than the files have", "[long]") {
  const auto rounded = [](const formats::Format& f, float x) {
    const std::uint64_t code = formats::convert(formats::fp32, std::bit_cast<std::uint32_t>(x), f,
                                                formats::Rounding::nearest_even);
    return std::bit_cast<float>(
        static_cast<std::uint32_t>(formats::convert(f, code, formats::fp32)));
  };
  const ProbeReport sums = emulator::probe(fp16_box(4, [&](const Floats& a, const Floats& b) {
    float sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum = rounded(formats::fp16, sum + rounded(formats::fp16, a[i] * b[i]));
    return sum;
  }));
  CHECK(sums.d == formats::fp16);
  CHECK(sums.narrowed.starts_with("every answer is a number of fp16"));
  CHECK(sums.tree_arithmetic.starts_with("products rounded, then added"));

  const ProbeReport operands =
      emulator::probe(fp32_box(4, [](const Floats& a, const Floats& b, float c) {
        const auto cut = [](float x) {
          return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFFE000U);
        };
        for (std::size_t i = 0; i < a.size(); ++i) c = std::fma(cut(a[i]), cut(b[i]), c);
        return c;
      }));
  CHECK(operands.a == formats::tf32);
  CHECK(operands.narrowed.find("tf32 holds counts, rounded toward zero") != std::string::npos);
  CHECK(operands.tree_arithmetic == "fused multiply-adds, rounded nearest even");
}

TEST_CASE("probe: the order of other loops", "[long]") {
  const auto tree_of = [](int k, auto dot) {
    const ProbeReport report = emulator::probe(fp32_box(k, dot));
    CHECK(report.tree_observable);
    // Halves and lanes begin with +0, which shows where all products are -0.
    CHECK(report.tree_arithmetic.starts_with("products rounded, then added"));
    CHECK(report.tree_arithmetic.ends_with(", rounded nearest even"));
    return text(report, k);
  };
  CHECK(tree_of(4, [](const Floats& a, const Floats& b, float c) {
          for (std::size_t i = a.size(); i-- > 0;) c += a[i] * b[i];
          return c;
        }) == "((((c 3) 2) 1) 0)");
  CHECK(tree_of(8, [](const Floats& a, const Floats& b, float c) {
          return c + pairwise(a, b, 0, 8);
        }) == "((((0 1) (2 3)) ((4 5) (6 7))) c)");
  // Two halves of K, added at the end.
  CHECK(tree_of(6, [](const Floats& a, const Floats& b, float c) {
          float low = 0, high = 0;
          for (std::size_t i = 0; i < 3; ++i) low += a[i] * b[i];
          for (std::size_t i = 3; i < 6; ++i) high += a[i] * b[i];
          return (low + high) + c;
        }) == "((((0 1) 2) ((3 4) 5)) c)");
  // Accumulators of a vector register, folded in halves.
  CHECK(tree_of(8, [](const Floats& a, const Floats& b, float c) {
          Floats lanes(4);
          for (std::size_t i = 0; i < 8; ++i) lanes[i % 4] += a[i] * b[i];
          return c + ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
        }) == "((((0 4) (2 6)) ((1 5) (3 7))) c)");
}

TEST_CASE("probe: long sums are asked no more pairs than the tree needs") {
  constexpr int k = 512;
  std::size_t tree_questions = 0;
  BlackBox box = fp32_box(k, [](const Floats& a, const Floats& b, float c) {
    Floats lanes(8);
    for (std::size_t i = 0; i < a.size(); ++i) lanes[i % 8] += a[i] * b[i];
    float sum = 0;
    for (const float x : lanes) sum += x;
    return sum + c;
  });
  box.answer = [&, inner = box.answer](std::span<const Question> questions) {
    tree_questions += questions.size();
    return inner(questions);
  };
  const emulator::TreeAnswer answer = emulator::reveal_tree(box);
  CHECK(answer.observable);
  CHECK(answer.tree.children.size() == 2);
  CHECK(emulator::leaves(answer.tree).size() == k + 1);
  CHECK(tree_questions < std::size_t{4} * k * k / 8);
}

TEST_CASE("probe: how the nodes of a tree add that no instruction has") {
  const auto flushed = [](float x) {
    return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
  };
  const auto arithmetic_of = [](int k, auto dot) {
    const ProbeReport report = emulator::probe(fp32_box(k, dot));
    CHECK(report.tree_mismatches == 0);
    return report.tree_arithmetic;
  };
  // Four lanes of fused multiply-adds.
  const auto lanes = [](const Floats& a, const Floats& b, float c, auto last) {
    Floats sums(4);
    for (std::size_t i = 0; i < 8; ++i) sums[i % 4] = last(std::fma(a[i], b[i], sums[i % 4]));
    return last(c + last(last(sums[0] + sums[2]) + last(sums[1] + sums[3])));
  };
  CHECK(arithmetic_of(8, [&](const Floats& a, const Floats& b, float c) {
          return lanes(a, b, c, [](float x) { return x; });
        }) == "fused multiply-adds from +0, rounded nearest even");
  CHECK(arithmetic_of(8, [&](const Floats& a, const Floats& b, float c) {
          return lanes(a, b, c, flushed);
        }) == "fused multiply-adds from +0, rounded nearest even, subnormal results flushed");
  CHECK(arithmetic_of(6, [](const Floats& a, const Floats& b, float c) {
          double sum = static_cast<double>(c);
          for (std::size_t i = 0; i < 6; ++i)
            sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
          return static_cast<float>(sum);
        }) == "fused multiply-adds, rounded nearest even to fp64, in the end to fp32");
}

TEST_CASE("probe: a compensated sum swallows nothing") {
  const emulator::TreeAnswer answer =
      emulator::reveal_tree(fp32_box(8, [](const Floats& a, const Floats& b, float c) {
        double sum = static_cast<double>(c);  // Neumaier's correction, kept apart
        double lost = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          const double x = static_cast<double>(a[i]) * static_cast<double>(b[i]);
          const double next = sum + x;
          lost += std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
          sum = next;
        }
        return static_cast<float>(sum + lost);
      }));
  CHECK(answer.observable == false);
  CHECK(answer.note == "no sum loses any bits that the formats can hold");
}

TEST_CASE("probe: drawings hold every leaf and node") {
  const emulator::TreeAnswer answer =
      emulator::reveal_tree(fp32_box(3, [](const Floats& a, const Floats& b, float c) {
        return ((a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]) + c;
      }));
  CHECK(emulator::tree_drawing(answer.tree, 3) == "+ c\n  + 2\n    + 0 1\n");
  const std::string dot = emulator::tree_dot(answer.tree, 3);
  CHECK(dot.starts_with("digraph"));
  for (const char* label : {"\"0\"", "\"1\"", "\"2\"", "\"c\"", "\"+\""})
    CHECK(dot.find(label) != std::string::npos);
}

TEST_CASE("probe: what is no product of matrices is refused") {
  const auto message = [](const BlackBox& box) {
    try {
      emulator::probe(box);
    } catch (const formats::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message(fp32_box(2, [](const Floats&, const Floats&, float) {
          return std::nanf("");
        })).find("1 * 1 at k = 0 gives") != std::string::npos);
  CHECK(message(fp32_box(0, [](const Floats&, const Floats&, float c) { return c; })) ==
        "probe: K is 0, not 1 to 4096");
  int calls = 0;
  CHECK(message(fp32_box(2, [&calls](const Floats& a, const Floats& b, float c) {
          return a[0] * b[0] + a[1] * b[1] + c * (c == 1 || ++calls % 3 == 0 ? 1.0F : 1.25F);
        })).find("probe: the unit answers the same question with ") == 0);
  BlackBox silent = fp32_box(2, [](const Floats&, const Floats&, float c) { return c; });
  silent.answer = [](std::span<const Question>) { return std::vector<std::uint64_t>{}; };
  CHECK(message(silent) == "probe: the unit gave 0 answers to 3 questions");
}

}  // namespace
