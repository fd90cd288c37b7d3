#include "emulator/gemm/gemm.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/part_sum.hpp"
#include "emulator/gemm/plan_engine.hpp"
#include "emulator/gemm/plan_fit.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::emulator {

std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& x,
                               const GemmProblem& problem, const Execution& execution) {
  const std::int64_t k = x.k();
  if (!plan.stream_k.none()) return {stream_k_sums(plan, x, problem, execution)};
  const PartSum part_sum(plan, x, problem, execution);
  std::vector<Sums> parts;
  for (const KRanges& part : divide(plan.split, {{0, k}}))
    parts.push_back(part_sum(part, parts.empty()));
  return parts;
}

namespace {

/// Tells the caller of execute() how far it is, and asks whether to go on.
class Progress {
 public:
  explicit Progress(const std::function<bool(std::int64_t)>& tell) : tell_(tell) {}

  void done(std::int64_t rows) {
    rows_ = rows;
    ask();
  }
  /// From any thread; the caller's asks now and then.
  bool is_stopped() {
    if (std::this_thread::get_id() == caller_ && Clock::now() - asked_ > interval) ask();
    return stopped_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{20};

  void ask() {
    if (tell_ && !stopped_ && !tell_(rows_)) stopped_ = true;
    asked_ = Clock::now();
  }

  const std::function<bool(std::int64_t)>& tell_;
  std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point asked_ = Clock::now();
  std::int64_t rows_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// One chain, whose sums are FP32 numbers.
bool is_fp32_chain(const GemmPlan& plan, const GemmOperands& x) {
  return x.instruction && x.instruction->d == formats::fp32 && plan.split.whole() &&
         plan.slices.whole() && plan.stream_k.none() && plan.promotion.interval == 0 &&
         x.apart.empty() && !x.few;
}

/// Does the epilogue leave FP32 sums as they are, but for NaNs?
bool keeps_sums(const Epilogue& e, const GemmProblem& x) {
  const bool initial = e.addition == Epilogue::Addition::initial;
  const bool scaled = x.scale_k == 0 && !(x.scale_a.empty() && x.scale_b.empty());
  const bool is_one = initial || e.scales_operand() || scalar::rounded(e.compute, e.alpha) == 1;
  return e.output == formats::fp32 && (e.compute == formats::fp32 || e.compute == formats::fp64) &&
         is_one && !scaled && !e.via && e.activation == Activation::none &&
         (x.bias.empty() || (initial && x.c.empty())) && (initial || x.c.empty() || e.beta == 0);
}

/// Writes NaNs of FP32 as scalar::encoded does.
void canonicalise(CodeMatrix& d, const OutputBlock& block, int threads) {
  constexpr std::uint32_t nan = 0x7fffffff, infinity = 0x7f800000;
  std::byte* const data = d.bytes.writable();
  const std::int64_t lines = block.batch * block.rows;
  formats::parallel_for(
      static_cast<std::size_t>(lines), 16, threads, [&](std::size_t begin, std::size_t end) {
        for (auto line = static_cast<std::int64_t>(begin); line < static_cast<std::int64_t>(end);
             ++line) {
          const std::int64_t g = block.g + line / block.rows, i = block.i + line % block.rows;
          std::byte* const row = data + d.index(g, i, block.j) * 4;
          std::uint32_t largest = 0;
          for (std::int64_t j = 0; j < block.columns; ++j)
            largest = std::max(largest, formats::load_word<std::uint32_t>(row + j * 4) & nan);
          for (std::int64_t j = 0; largest > infinity && j < block.columns; ++j)
            if ((formats::load_word<std::uint32_t>(row + j * 4) & nan) > infinity)
              formats::store_word(row + j * 4, nan);
        }
      });
}

/// D, block by block. B is prepared once for all blocks, A once for those beside each other.
class Executor {
 public:
  Executor(const GemmPlan& plan, const GemmProblem& problem, const ExecuteOptions& options)
      : plan_(plan),
        problem_(problem),
        engine_(plan_engine(options.engine, plan)),
        is_auto_(options.engine == "auto"),
        most_outputs_(options.most_outputs),
        memory_(options.memory),
        progress_(options.progress),
        stop_([this] { return progress_.is_stopped(); }),
        execution_{engine_.engine, options.threads, &stop_} {}

  CodeMatrix run() {
    const std::int64_t batch = problem_.a.batch, m = problem_.m(), n = problem_.n();
    if (memory_.empty()) {
      d_ = make_matrix(plan_.epilogue.output, batch, m, n);
    } else {
      d_ = {plan_.epilogue.output, batch, m, n, SharedBytes(memory_)};
    }
    const OutputBlock largest = largest_block();
    for (std::int64_t g = 0; g < batch; g += largest.batch) {
      OutputBlock block{g, std::min(largest.batch, batch - g), 0, 0, 0, n};
      const GemmOperands columns = factors({g, block.batch, 0, 0, 0, n});
      if (const auto error = misfit(plan_, problem_, columns, "plan")) throw *error;
      for (; block.i < m; block.i += largest.rows) {
        block.rows = std::min(largest.rows, m - block.i);
        const GemmOperands rows = factors({g, block.batch, block.i, block.rows, 0, 0});
        for (block.j = 0; block.j < n; block.j += largest.columns) {
          block.columns = std::min(largest.columns, n - block.j);
          run(block, rows, columns);
          done_ += block.batch * block.rows * block.columns;
          progress_.done(done_ / (batch * n));
          if (progress_.is_stopped()) return std::move(d_);
        }
      }
    }
    return std::move(d_);
  }

 private:
  GemmOperands factors(const OutputBlock& block) const {
    return prepare_factors(plan_, part(problem_, block), "plan");
  }

  /// Rows and columns that were prepared apart, as one product.
  static GemmOperands beside(const GemmOperands& rows, const GemmOperands& columns,
                             const OutputBlock& block) {
    GemmOperands x = part(columns, {0, block.batch, 0, 0, block.j, block.columns});
    x.a = rows.a;
    x.e = rows.e;
    x.a_exponents = rows.a_exponents;
    for (std::size_t i = 0; i < x.apart.size(); ++i) {
      x.apart[i].operands.a = rows.apart[i].operands.a;
      x.apart[i].operands.e = rows.apart[i].operands.e;
    }
    return x;
  }

  GemmProblem problem_of(const OutputBlock& block) const {
    GemmProblem x = part(problem_, block);
    if (plan_.stream_k.none()) return x;
    x.origin = problem_.whole();
    if (problem_.origin) x.origin->outputs = problem_.origin->outputs;
    for (std::int64_t i = 0; i < block.rows && x.origin->outputs.empty(); ++i)
      x.origin->rows.push_back(problem_.place(0, block.i + i, 0).row);
    for (std::int64_t j = 0; j < block.columns && x.origin->outputs.empty(); ++j)
      x.origin->columns.push_back(problem_.place(0, 0, block.j + j).column);
    return x;
  }

  void run(const OutputBlock& block, const GemmOperands& rows, const GemmOperands& columns) {
    GemmOperands x = beside(rows, columns, block);
    const GemmProblem problem = problem_of(block);
    x.c = initial_sums(plan_, x, problem, "plan");
    if (is_auto_ && !plan_.input.has_integer_slices()) x.few = few_dots_of(x);
    const int threads = execution_.threads;
    if (is_fp32_chain(plan_, x) && keeps_sums(plan_.epilogue, problem)) {
      PartSum(plan_, x, problem, execution_).run_into(d_, block.g, block.i, block.j);
      canonicalise(d_, block, threads);
      return;
    }
    std::vector<Sums> sums = partial_sums(plan_, x, problem, execution_);
    if (progress_.is_stopped()) return;
    copy_matrix(finish(plan_, problem, std::move(sums), threads), d_, block.g, block.i, block.j);
  }

  /// How much an engine takes at a time.
  struct Portion {
    std::int64_t columns = 0, products = 0;
  };
  /// An engine that packs, packs much at a time; of the others, progress shall show.
  Portion largest_portion() const {
    const std::int64_t threads = formats::thread_count(execution_.threads);
    if (engine_.engine == nullptr) return {1024, threads << 30};
    if (engine_.engine->multiply == nullptr) return {256, threads << 26};
    return {4096, std::int64_t{1} << 36};
  }

  /// So many outputs that packing and preparing are nothing beside them, and so few that their sums
  /// need little memory.
  OutputBlock largest_block() const {
    const std::int64_t batch = problem_.a.batch, m = problem_.m(), n = problem_.n();
    const std::int64_t k = std::max<std::int64_t>(1, problem_.k());
    const std::int64_t matrix = std::max<std::int64_t>(1, m * n);
    const Portion most = largest_portion();
    const std::int64_t sums =
        std::int64_t{std::max(1, plan_.split.parts)} + std::max(1, plan_.slices.parts) - 1;
    const bool tied = !plan_.stream_k.none();  // to the places of tiles in the batch
    const std::int64_t outputs = std::max<std::int64_t>(
        1, std::min(most_outputs_ / sums, most.products / k) / (tied ? batch : 1));
    if (matrix <= outputs) return {0, tied ? batch : std::min(batch, outputs / matrix), 0, m, 0, n};
    constexpr std::int64_t fewest_rows = 64;
    std::int64_t rows = std::max(std::min(fewest_rows, outputs),
                                 outputs / std::min(n, most.columns) / fewest_rows * fewest_rows);
    if (copies_rows()) rows = std::min(rows, std::max(fewest_rows, (std::int64_t{1} << 25) / k));
    const std::int64_t columns = std::min(most.columns, std::max<std::int64_t>(1, outputs / rows));
    return {0, tied ? batch : 1, 0, std::min(m, rows), 0, std::min(n, columns)};
  }

  /// Is A prepared in memory of its own?
  bool copies_rows() const {
    return plan_.unit.arch == "simt" || plan_.input.pieces > 1 || plan_.loads.lanes != 0 ||
           problem_.sparse_a ||
           require_instruction(plan_.unit.arch, plan_.unit.instruction, "plan").a !=
               problem_.a.format;
  }

  const GemmPlan& plan_;
  const GemmProblem& problem_;
  PlanEngine engine_;
  bool is_auto_;
  std::int64_t most_outputs_;
  std::span<std::byte> memory_;
  Progress progress_;
  std::function<bool()> stop_;
  Execution execution_;
  CodeMatrix d_;
  std::int64_t done_ = 0;
};

}  // namespace

CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem,
                   const ExecuteOptions& options) {
  return Executor(plan, problem, options).run();
}

CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads,
                   const std::function<bool(std::int64_t)>& progress) {
  return execute(plan, problem, {"auto", threads, progress});
}

}  // namespace guardbit::emulator
