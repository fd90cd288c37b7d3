#include "tools/benchmarks/timing.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace guardbit::tools {

namespace {

/// Keeps the seconds per run of every repetition, by subject.
class Collector : public benchmark::BenchmarkReporter {
 public:
  explicit Collector(std::size_t subjects) : seconds_(subjects) {}

  bool ReportContext(const Context&) override { return true; }  // NOLINT: Google's name
  void ReportRuns(const std::vector<Run>& runs) override {      // NOLINT: Google's name
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.iterations == 0) continue;  // 0: it failed
      const auto subject = static_cast<std::size_t>(std::stoul(run.run_name.function_name));
      seconds_[subject].push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }

  const std::vector<std::vector<double>>& seconds() const { return seconds_; }

 private:
  std::vector<std::vector<double>> seconds_;
};

void initialize_once() {
  static const bool done = [] {
    std::string program = "guardbit";
    std::string flag = "--benchmark_enable_random_interleaving=true";
    char* words[] = {program.data(), flag.data(), nullptr};
    int count = 2;
    benchmark::Initialize(&count, words);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

std::vector<Timing> time_in_turns(const std::vector<Subject>& subjects, const Schedule& schedule,
                                  const Interruption& interruption) {
  initialize_once();
  benchmark::ClearRegisteredBenchmarks();
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto body = [&subject = subjects[i], &interruption](benchmark::State& state) {
      for (auto _ : state) {
        if (interruption.asked_for()) {
          state.SkipWithError("interrupted");
          break;
        }
        subject.run();
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark(std::to_string(i).c_str(), body)
        ->UseRealTime()
        ->MinTime(schedule.seconds)
        ->Repetitions(schedule.repetitions);
  }
  Collector collector(subjects.size());
  benchmark::RunSpecifiedBenchmarks(&collector, "all");
  if (interruption.asked_for()) throw Interrupted{};
  std::vector<Timing> timings;
  for (std::vector<double> seconds : collector.seconds()) {
    std::sort(seconds.begin(), seconds.end());
    timings.push_back({seconds.front(), seconds[seconds.size() / 2]});
  }
  return timings;
}

}  // namespace guardbit::tools
