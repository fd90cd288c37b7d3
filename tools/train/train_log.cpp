#include "tools/train/train_log.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::tools {

namespace {

namespace training = experiments::training;
using formats::Error;
using training::StepRecord;

constexpr std::string_view log_head =
    "step,loss,scale,skipped,correct,rows,gradients,underflow,overflow\n";

std::string log_line(const StepRecord& r) {
  const training::StoreCounts& g = r.stores.at(static_cast<std::size_t>(training::Role::gradient));
  std::array<char, 240> text{};
  std::snprintf(text.data(), text.size(), "%lld,%.9g,%.17g,%d,%lld,%lld,%lld,%lld,%lld\n",
                static_cast<long long>(r.step), static_cast<double>(r.loss), r.scale,
                r.skipped ? 1 : 0, static_cast<long long>(r.correct),
                static_cast<long long>(r.rows), static_cast<long long>(g.numbers),
                static_cast<long long>(g.underflow), static_cast<long long>(g.overflow));
  return text.data();
}

}  // namespace

std::string log_text(const std::vector<StepRecord>& log) {
  std::string text(log_head);
  for (const StepRecord& record : log) text += log_line(record);
  return text;
}

std::vector<StepRecord> read_log(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<StepRecord> log;
  while (std::getline(file, line)) {
    StepRecord r;
    training::StoreCounts& g = r.stores.at(static_cast<std::size_t>(training::Role::gradient));
    long long step = 0, correct = 0, rows = 0, numbers = 0, underflow = 0, overflow = 0;
    int skipped = 0;
    double loss = 0;
    const int read =
        std::sscanf(line.c_str(), "%lld,%lf,%lf,%d,%lld,%lld,%lld,%lld,%lld", &step, &loss,
                    &r.scale, &skipped, &correct, &rows, &numbers, &underflow, &overflow);
    if (read != 9 || step != std::ssize(log) + 1) break;
    r.step = step;
    r.loss = static_cast<float>(loss);
    r.skipped = skipped != 0;
    r.correct = correct;
    r.rows = rows;
    g = {numbers, underflow, overflow};
    log.push_back(r);
  }
  return log;
}

std::vector<StepRecord> read_log(const std::string& path, std::int64_t last) {
  std::vector<StepRecord> log = read_log(path);
  if (std::ssize(log) > last) log.resize(static_cast<std::size_t>(last));
  if (std::ssize(log) != last)
    throw Error(formats::printable(path), "does not hold the checkpoint's " + std::to_string(last) +
                                              " steps; --fresh begins anew");
  return log;
}

}  // namespace guardbit::tools
