#include "emulator/gemm/gemm.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "emulator/gemm/slice.hpp"

namespace guardbit::emulator {

std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& x,
                               const GemmProblem& problem, int threads) {
  const std::int64_t k = x.k();
  if (!plan.stream_k.none()) return {stream_k_sums(plan, x, problem, threads)};
  const SliceSum slice_sum(plan, x, problem, threads);
  std::vector<Sums> parts;
  for (const KRanges& slice : divide(plan.split, {{0, k}}))
    parts.push_back(slice_sum(slice, parts.empty()));
  return parts;
}

Sums add_up(const Partition& partition, const Format& compute, std::vector<Sums> parts) {
  if (parts.size() <= 1) return parts.empty() ? Sums{} : std::move(parts.front());
  if (partition.sums != formats::fp32 && partition.sums != compute) {
    for (Sums& part : parts)
      for (double& x : part) x = scalar::rounded(partition.sums, x);
  }
  const auto add = [&](Sums& to, const Sums& other) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = scalar::add(compute, to[i], other[i]);
  };
  switch (partition.order) {
    case SumOrder::descending: std::reverse(parts.begin(), parts.end()); [[fallthrough]];
    case SumOrder::ascending:
      for (std::size_t p = 1; p < parts.size(); ++p) add(parts[0], parts[p]);
      break;
    case SumOrder::adjacent_last: std::reverse(parts.begin(), parts.end()); [[fallthrough]];
    case SumOrder::adjacent:
      for (std::size_t step = 1; step < parts.size(); step *= 2)
        for (std::size_t p = 0; p + step < parts.size(); p += 2 * step)
          add(parts[p], parts[p + step]);
      break;
    case SumOrder::halves:
      for (auto count =
               std::max<std::size_t>(parts.size(), static_cast<std::size_t>(partition.parts));
           count > 1;) {
        const std::size_t half = (count + 1) / 2;
        for (std::size_t p = 0; p + half < std::min(count, parts.size()); ++p)
          add(parts[p], parts[p + half]);
        count = half;
      }
      break;
    case SumOrder::by_four:
      for (std::size_t p = 4; p < parts.size(); ++p) add(parts[p % 4], parts[p]);
      for (std::size_t p = 1; p < std::min<std::size_t>(4, parts.size()); ++p)
        add(parts[0], parts[p]);
      break;
    case SumOrder::buffers: {
      const std::size_t buffers = parts.size() / 2 + parts.size() % 2;
      for (std::size_t p = buffers; p + 1 < parts.size(); ++p) add(parts[p % buffers], parts[p]);
      std::rotate(parts.begin(), parts.end() - 1, parts.end());
      for (std::size_t p = 1; p <= buffers; ++p)
        if (p < parts.size()) add(parts[0], parts[p]);
      break;
    }
    case SumOrder::in_place: break;  // in the epilogue
  }
  return std::move(parts.front());
}

namespace {

/// What the epilogue adds to a sum.
struct Addends {
  const CodeMatrix& c;
  const CodeMatrix& bias;
  double beta;
};

CodeMatrix finish(const Epilogue& e, const GemmProblem& problem, const Addends& addends,
                  const Sums& sums) {
  const std::int64_t m = problem.m(), n = problem.n();
  const Format f = e.compute;
  const bool initial = e.addition == Epilogue::Addition::initial;
  const bool alpha_done = initial || e.alpha_on != Epilogue::AlphaOn::sum;
  const double alpha = alpha_done ? 1 : scalar::rounded(f, e.alpha),
               beta = scalar::rounded(f, addends.beta);
  const bool has_c = !initial && !addends.c.empty() && addends.beta != 0;
  const bool has_bias = !addends.bias.empty();
  const bool scaled = problem.scale_k == 0 && !(problem.scale_a.empty() && problem.scale_b.empty());
  const auto number = [&](const CodeMatrix& from, std::int64_t g, std::int64_t i, std::int64_t j) {
    return scalar::rounded(f, scalar::decoded(from.format, from(from.batch == 1 ? 0 : g, i, j)));
  };
  CodeMatrix d = make_matrix(e.output, problem.a.batch, m, n);
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const std::int64_t g = at / (m * n), i = at / n % m, j = at % n;
    double factor = alpha, x = sums[static_cast<std::size_t>(at)];
    if (scaled) {
      const double a = scale_at(problem.scale_a, g, i, 0, m, 1);
      const double b = scale_at(problem.scale_b, g, 0, j, 1, n);
      if (e.scales == Epilogue::Scales::joint) {
        factor = scalar::multiply(f, alpha, scalar::multiply(f, a, b));
      } else {
        const bool a_first = e.scales == Epilogue::Scales::a_then_b;
        x = scalar::multiply(f, scalar::multiply(f, x, a_first ? a : b), a_first ? b : a);
      }
    }
    if (has_c || has_bias) {
      const double c = has_c ? number(addends.c, g, i, j) : number(addends.bias, g, 0, j);
      const double weight = has_c ? beta : 1;
      switch (e.addition) {
        case Epilogue::Addition::fma_product:
          x = scalar::fma(f, factor, x, scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::fma_addend:
          x = scalar::fma(f, weight, c, scalar::multiply(f, factor, x));
          break;
        case Epilogue::Addition::separate:
          x = scalar::add(f, scalar::multiply(f, factor, x), scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::rounded:
          x = scalar::add(f, scalar::rounded(e.output, scalar::multiply(f, factor, x)),
                          scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::initial: break;  // a bias beside it is added below
      }
      if ((has_c || initial) && has_bias) x = scalar::add(f, x, number(addends.bias, g, 0, j));
    } else {
      x = scalar::multiply(f, factor, x);
    }
    d.set(at, scalar::encoded(e.output, x));
  }
  return d;
}

}  // namespace

CodeMatrix finish(const Epilogue& epilogue, const GemmProblem& problem, const Sums& sums) {
  return finish(epilogue, problem, {problem.c, problem.bias, epilogue.beta}, sums);
}

CodeMatrix finish(const GemmPlan& plan, const GemmProblem& problem, std::vector<Sums> parts) {
  const Epilogue& e = plan.epilogue;
  if (plan.split.order != SumOrder::in_place || parts.size() <= 1)
    return finish(e, problem, add_up(plan.split, e.compute, std::move(parts)));
  const CodeMatrix no_bias;
  // Without C, a bias is what the first part meets in D.
  const bool has_c = !problem.c.empty() && e.beta != 0;
  CodeMatrix d =
      finish(e, problem, {problem.c, has_c ? no_bias : problem.bias, e.beta}, parts.front());
  for (std::size_t p = 1; p < parts.size(); ++p)
    d = finish(e, problem, {d, has_c && p + 1 == parts.size() ? problem.bias : no_bias, 1},
               parts[p]);
  return d;
}

CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads,
                   const std::function<bool(std::int64_t)>& progress) {
  // Rows in blocks, so that accumulators of large products need little memory.
  constexpr std::int64_t outputs_at_once = std::int64_t{1} << 21;
  const std::int64_t m = problem.m();
  const std::int64_t rows = std::clamp<std::int64_t>(
      outputs_at_once / std::max<std::int64_t>(1, problem.n() * problem.a.batch), 1, m);
  CodeMatrix d = make_matrix(plan.epilogue.output, problem.a.batch, m, problem.n());
  for (std::int64_t begin = 0; begin < m; begin += rows) {
    const std::int64_t count = std::min(rows, m - begin);
    Selection2d block;
    for (std::int64_t i = begin; i < begin + count; ++i) block.rows.push_back(i);
    const GemmProblem part = count == m ? GemmProblem{} : select(problem, block);
    const GemmProblem& x = count == m ? problem : part;
    const GemmOperands operands = prepare(plan, x, "plan");
    const CodeMatrix result = finish(plan, x, partial_sums(plan, operands, x, threads));
    for (std::int64_t g = 0; g < result.batch; ++g)
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < result.columns; ++j)
          d.set(d.index(g, begin + i, j), result(g, i, j));
    if (progress && !progress(begin + count)) break;
  }
  return d;
}

}  // namespace guardbit::emulator
