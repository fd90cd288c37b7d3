#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/cuda/injection/fault_draw.hpp"
#include "gpu/cuda/injection/other_screenings.hpp"
#include "gpu/cuda/screening/matrix_screen.hpp"
#include "gpu/validation/device_capture.hpp"

// usage: guardbit_inject_faults [FAULTS] [PASSES] [OUTPUT]
// Injects so many permanent faults, one after the other, and tabulates which of them the screening
// and other ways find; then as many whole passes with one of them, and intermittent faults.

namespace {

using namespace guardbit::gpu;
using Clock = std::chrono::steady_clock;

double seconds_from(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Counts {
  int injected = 0, found = 0, right_processor = 0, right_block = 0;
  /// compared with the first result of the same GPU, of FP32 also within 0.001; with a second GPU
  int by_first = 0, of_fp32 = 0, by_first_within = 0, by_vote = 0;
};

/// A fault on the device.
class DeviceFault {
 public:
  explicit DeviceFault(const Fault& fault)
      : buffer_(std::as_bytes(std::span(&fault, 1)), "injection") {}
  const Fault* get() const { return buffer_.as<const Fault>(); }

 private:
  DeviceBuffer buffer_;
};

/// Are all entries of the log on the fault's multiprocessor, and in its processing block?
std::pair<bool, bool> places_fit(const ScreenLog& log, const Fault& fault) {
  bool processor = true, block = true;
  for (unsigned i = 0; i < std::min(log.recorded, ScreenLog::most_entries); ++i) {
    processor &= log.entries[i].processor == static_cast<std::uint32_t>(fault.processor);
    block &= log.entries[i].block == static_cast<std::uint32_t>(fault.block);
  }
  return {processor, processor && block};
}

std::string text_of(const ScreenSet& set, const DrawnFault& drawn) {
  const Fault& fault = drawn.fault;
  return capture_stem(*set.cases[drawn.instruction].instruction) + ", " + name_of(fault.place) +
         ", bit " + std::to_string(fault.bit) + " of word " + std::to_string(fault.word) + " " +
         name_of(fault.effect) + ", lane " + std::to_string(fault.lane) + ", multiprocessor " +
         std::to_string(fault.processor) + ", block " + std::to_string(fault.block);
}

class Campaign {
 public:
  Campaign(const ScreenSet& set, int processors, std::ostream& out)
      : set_(set),
        processors_(processors),
        out_(out),
        screen_(set, processors),
        unchecked_(set, processors),
        none_(Fault{}) {
    screen_.inject(none_.get(), none_.get(), 0);
    screen_.run_pass();  // loads all kernels
  }

  void permanent(int faults) {
    const Clock::time_point start = Clock::now();
    double screened = 0;
    for (int number = 0; number < faults; ++number) {
      const DrawnFault drawn = draw_fault(set_, processors_, static_cast<std::uint64_t>(number));
      const DeviceFault fault(drawn.fault);
      screen_.inject(none_.get(), fault.get(), drawn.instruction);
      const Clock::time_point begin = Clock::now();
      const ScreenLog log = screen_.run_case(drawn.instruction);
      screened += seconds_from(begin);
      Counts counts;
      counts.injected = 1;
      counts.found = log.mismatches != 0;
      if (log.mismatches != 0) {
        const auto [processor, block] = places_fit(log, drawn.fault);
        counts.right_processor = processor;
        counts.right_block = block;
      } else {
        missed_.push_back(drawn);
      }
      compare_with_others(drawn, fault.get(), counts);
      add(rows_[name_of(drawn.fault.place) + ", " + name_of(drawn.fault.effect)], counts);
      add(rows_["~ all"], counts);
    }
    screen_.inject(none_.get(), none_.get(), 0);
    out_
        << "| fault | injected | found by expected results | right multiprocessor | right processing block "
           "| differs from the first result of the same GPU | of FP32 results | more than 0.001 from it "
           "| differs from a second GPU |\n|---|---|---|---|---|---|---|---|---|\n";
    for (const auto& [name, x] : rows_)
      out_ << "| " << (name == "~ all" ? "all" : name) << " | " << x.injected << " | " << x.found
           << " | " << x.right_processor << " | " << x.right_block << " | " << x.by_first << " | "
           << x.of_fp32 << " | " << x.by_first_within << " | " << x.by_vote << " |\n";
    out_ << '\n'
         << faults << " faults in " << seconds_from(start) << " s, of which the screening took "
         << screened << " s\n\nNot found:\n";
    for (const DrawnFault& drawn : missed_) out_ << "- " << text_of(set_, drawn) << '\n';
    out_ << std::endl;
  }

  /// Whole passes: is the one faulty instruction named, and no other?
  void passes(int count) {
    int named = 0, clean = 0;
    double seconds = 0;
    std::vector<std::string> others;
    for (int i = 0; i < count; ++i) {
      const DrawnFault drawn = draw_fault(set_, processors_, 1'000'000 + static_cast<unsigned>(i));
      const DeviceFault fault(drawn.fault);
      screen_.inject(none_.get(), fault.get(), drawn.instruction);
      const Clock::time_point begin = Clock::now();
      screen_.run_pass();
      seconds += seconds_from(begin);
      const std::string found = text_of_findings(drawn);
      if (found.empty())
        ++named;
      else
        others.push_back(text_of(set_, drawn) + ": " + found);
      screen_.inject(none_.get(), none_.get(), 0);
      clean += screen_.run_pass() == 0;
    }
    out_ << "Of " << count << " whole passes with a permanent fault, of " << seconds / count
         << " s each, " << named
         << " named its instruction alone, its multiprocessor and that it is "
         << "permanent; of as many without a fault " << clean << " found nothing.\n\n";
    for (const std::string& other : others) out_ << "- " << other << '\n';
    out_ << std::endl;
  }

  /// Faults that happen now and then: how often a second of screening finds them.
  void intermittent() {
    out_
        << "| one in | executions of its processing block in 1 s | expected to be found in 1 s | found in |\n"
           "|---|---|---|---|\n";
    const std::size_t index = find_plain_case();
    for (const double chance : {1e-4, 1e-6, 1e-8}) {
      DrawnFault drawn = draw_fault(set_, processors_, 7);
      drawn.fault.place = Fault::Place::result;
      drawn.fault.effect = Fault::Effect::flip;
      drawn.fault.chance = static_cast<std::uint32_t>(chance * 4294967296.0);
      const DeviceFault fault(drawn.fault);
      screen_.inject(none_.get(), fault.get(), index);
      constexpr int trials = 4;
      int found = 0;
      double executions = 0;
      for (int trial = 0; trial < trials; ++trial) {
        bool seen = false;
        for (const Clock::time_point begin = Clock::now(); seconds_from(begin) < 1;) {
          const ScreenLog log = screen_.run_case(index, -1, 4096);
          seen |= log.mismatches != 0;
          executions +=
              static_cast<double>(log.executions[drawn.fault.processor][drawn.fault.block]);
        }
        found += seen;
      }
      executions /= trials;
      out_ << "| 1e" << std::lround(std::log10(1 / chance)) << " | " << executions << " | "
           << 1 - std::exp(-executions * chance) << " | " << found << " of " << trials << " |\n";
    }
    screen_.inject(none_.get(), none_.get(), 0);
    out_ << std::endl;
  }

 private:
  /// What a pass with that fault found, where it is not that fault alone.
  std::string text_of_findings(const DrawnFault& drawn) {
    const auto findings = screen_.findings([](const std::string&) { return 4; });
    if (findings.empty()) {
      const ScreenLog log = screen_.read_log(drawn.instruction);
      return "no wrong result in " +
             std::to_string(log.executions[drawn.fault.processor][drawn.fault.block]) +
             " executions of its processing block";
    }
    const std::string name = capture_stem(*set_.cases[drawn.instruction].instruction);
    std::string text;
    for (const ScreenFinding& finding : findings) {
      if (finding.count.instruction != name) text += finding.count.instruction + " wrong too; ";
      if (finding.count.processors() != std::set<int>{drawn.fault.processor})
        text += "other multiprocessors; ";
      for (const ScreenFault& x : finding.faults)
        if (x.recurrence != Recurrence::permanent)
          text += "wrong again in " + std::to_string(x.wrong_again) + " of " +
                  std::to_string(x.repeated) + "; ";
    }
    return text;
  }

  static void add(Counts& sum, const Counts& x) {
    sum.injected += x.injected;
    sum.found += x.found;
    sum.right_processor += x.right_processor;
    sum.right_block += x.right_block;
    sum.by_first += x.by_first;
    sum.of_fp32 += x.of_fp32;
    sum.by_first_within += x.by_first_within;
    sum.by_vote += x.by_vote;
  }

  void compare_with_others(const DrawnFault& drawn, const Fault* fault, Counts& counts) const {
    const OtherScreenings others = unchecked_.compare(drawn.instruction, fault, none_.get());
    counts.by_first = others.by_first;
    counts.by_vote = others.by_vote;
    counts.by_first_within = others.by_first_within;
    counts.of_fp32 = set_.cases[drawn.instruction].instruction->d == guardbit::formats::fp32;
  }

  std::size_t find_plain_case() const {
    for (std::size_t i = 0; i < set_.cases.size(); ++i)
      if (set_.cases[i].instruction->name == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        return i;
    return 0;
  }

  const ScreenSet& set_;
  int processors_;
  std::ostream& out_;
  MatrixScreen screen_;
  UncheckedRuns unchecked_;
  DeviceFault none_;
  std::map<std::string, Counts> rows_;
  std::vector<DrawnFault> missed_;
};

int run(int count, char** words) {
  const int faults = count > 1 ? std::atoi(words[1]) : 1000,
            passes = count > 2 ? std::atoi(words[2]) : 20;
  const Device device = require_device();
  // The groups that this program's kernels were compiled for.
  std::vector<const TensorCoreInstruction*> instructions;
  for (const TensorCoreInstruction& x : tensor_core_instructions())
    for (const KernelGroup& group : kernel_groups())
      if (group.name == x.group) instructions.push_back(&x);
  const Clock::time_point start = Clock::now();
  const ScreenSet set = make_screen_set(instructions, 1);
  const double made = seconds_from(start);
  std::ofstream file;
  if (count > 3) file.open(words[3]);
  std::ostream& out = count > 3 ? file : std::cout;
  out << instructions.size() << " instructions on " << device.name << ", expected results in "
      << made << " s\n"
      << std::endl;
  Campaign campaign(set, device.processors, out);
  campaign.passes(passes);
  campaign.permanent(faults);
  campaign.intermittent();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    std::cerr << "guardbit_inject_faults: " << error.what() << '\n';
    return 2;
  }
}
