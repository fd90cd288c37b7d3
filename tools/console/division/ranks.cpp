#include "tools/console/division/ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <exception>
#include <future>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "formats/support/error.hpp"
#include "tools/console/exit_status.hpp"
#include "tools/console/sign_of_life.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A rank at work says so each second; one that was not heard of for so long is lost. The first
/// word may take longer, as all ranks look for the files.
constexpr auto sign_of_life = 1s, longest_silence = 8s, longest_start = 60s;
constexpr auto pause = 1ms;

/// Messages are objects: of a rank {"ready": WORK}, {"alive": 1}, or {"piece": P, "result": …} or
/// "error" instead; of rank 0 {"piece": P}, or {} for the end.
std::vector<std::uint8_t> message_of(const Json& json) { return Json::to_cbor(json); }
Json json_of(const Mpi::Message& message) { return Json::from_cbor(message.bytes); }

/// What came of a piece.
Json outcome_of(const DividedFiles& files, std::size_t piece) {
  Json outcome = {{"piece", piece}};
  try {
    outcome["result"] = files.work(piece);
  } catch (const Interrupted&) {
    outcome["interrupted"] = true;
  } catch (const std::bad_alloc&) {
    outcome["error"] = "out of memory";
  } catch (const std::exception& error) {
    outcome["error"] = error.what();
  }
  return outcome;
}

/// Computes a piece beside the thread that exchanges messages.
class Worker {
 public:
  explicit Worker(const DividedFiles& files) : files_(files) {}

  bool is_busy() const { return outcome_.valid(); }
  void start(std::size_t piece) {
    outcome_ = std::async(std::launch::async, [this, piece] { return outcome_of(files_, piece); });
  }
  /// Where it is done.
  std::optional<Json> take() {
    if (!is_busy() || outcome_.wait_for(0s) != std::future_status::ready) return std::nullopt;
    return outcome_.get();
  }

 private:
  const DividedFiles& files_;
  std::future<Json> outcome_;
};

/// What all ranks must have been asked.
Json question_of(const DividedFiles& files) {
  const WorkDescription& work = files.description;
  return line_of({{"command", work.command}, {"question", work.question}, {"pieces", work.pieces}});
}

class Leader {
 public:
  Leader(const Mpi& mpi, const DividedFiles& files, PieceResults& results, ResultsFile* file,
         const Interruption& interruption, std::string path)
      : mpi_(mpi),
        files_(files),
        results_(results),
        file_(file),
        interruption_(interruption),
        path_(std::move(path)),
        own_(files),
        ranks_(static_cast<std::size_t>(mpi.size())) {
    for (std::size_t piece = 0; piece < files.description.pieces.size(); ++piece)
      if (!results.contains(piece)) todo_.push_back(piece);
  }

  void run() {
    ProgressLine progress(files_.description.command, files_.description.pieces.size());
    while (is_working()) {
      if (interruption_.asked_for())
        give_up("ended by the launcher, as it does where a rank is lost", true);
      while (const auto message = mpi_.receive()) {
        ranks_[static_cast<std::size_t>(message->from)].heard = Clock::now();
        const Json json = json_of(*message);
        if (json.contains("alive")) continue;
        if (json.contains("ready"))
          greet(message->from, json);
        else
          take_outcome(message->from, json);
      }
      if (const auto outcome = own_.take()) note(*outcome, 0);
      if (!own_.is_busy() && has_work()) own_.start(next());
      look_for_lost_ranks();
      progress.update(results_.size());
      std::this_thread::sleep_for(pause);
    }
    mpi_.finish();
    if (first_error_) throw formats::Error(first_error_->second);
    if (was_interrupted_) interruption_.check();
  }

 private:
  struct Rank {
    Clock::time_point heard = Clock::now();
    bool has_greeted = false, has_ended = false;
    /// pieces that it has
    int pieces = 0;
  };

  bool is_working() const {
    if (own_.is_busy() || has_work()) return true;
    return std::any_of(ranks_.begin() + 1, ranks_.end(),
                       [](const Rank& rank) { return !rank.has_ended || rank.pieces != 0; });
  }

  /// Pieces after one that failed are not done, as one process would not.
  bool has_work() const {
    return !todo_.empty() && !was_interrupted_ &&
           (!first_error_ || todo_.front() < first_error_->first);
  }
  std::size_t next() {
    const std::size_t piece = todo_.front();
    todo_.pop_front();
    return piece;
  }

  void greet(int from, const Json& json) {
    if (json["ready"] != question_of(files_))
      give_up("rank " + std::to_string(from) + " was given other files or options than rank 0",
              false);
    ranks_[static_cast<std::size_t>(from)].has_greeted = true;
    answer(from);
  }

  void take_outcome(int from, const Json& outcome) {
    note(outcome, from);
    --ranks_[static_cast<std::size_t>(from)].pieces;
    answer(from);
  }

  /// Pieces that a rank has beside the one that it works on: some while an answer of rank 0 may
  /// take.
  int pieces_ahead() const {
    constexpr double while_seconds = 0.02;
    constexpr int most = 64;
    const auto done = static_cast<double>(done_), ranks = static_cast<double>(ranks_.size());
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (done == 0) return 1;
    return std::clamp(static_cast<int>(while_seconds * done / (seconds * ranks)), 1, most);
  }

  /// Gives a rank its next pieces, or sends it home when it is done with what it has.
  void answer(int to) {
    Rank& rank = ranks_[static_cast<std::size_t>(to)];
    if (rank.has_ended) return;
    for (const int wanted = 1 + pieces_ahead(); has_work() && rank.pieces < wanted; ++rank.pieces)
      mpi_.send(to, message_of({{"piece", next()}}));
    if (has_work()) return;
    mpi_.send(to, message_of(Json::object()));
    rank.has_ended = true;
  }

  void note(const Json& outcome, int rank) {
    const auto piece = outcome["piece"].get<std::size_t>();
    if (outcome.contains("interrupted")) {
      was_interrupted_ = true;
    } else if (outcome.contains("error")) {
      if (!first_error_ || piece < first_error_->first)
        first_error_ = {piece, outcome["error"].get<std::string>()};
    } else {
      ++done_;
      results_[piece] = outcome["result"];
      if (file_ != nullptr) file_->add(piece, rank, results_[piece]);
    }
  }

  void look_for_lost_ranks() {
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      const Rank& x = ranks_[rank];
      if (x.has_ended && x.pieces == 0) continue;
      if (Clock::now() - x.heard > (x.has_greeted ? longest_silence : longest_start))
        give_up("rank " + std::to_string(rank) + " is lost", false);
    }
  }

  /// `is_ending`: the launcher ends all ranks already.
  [[noreturn]] void give_up(const std::string& why, bool is_ending) {
    say(files_.description.command + ": " + why +
        kept_text(results_.size(), files_.description.pieces.size(), path_));
    if (is_ending) _exit(128 + SIGTERM);
    mpi_.abort(exit_bad_input);
  }

  const Mpi& mpi_;
  const DividedFiles& files_;
  PieceResults& results_;
  ResultsFile* file_;
  const Interruption& interruption_;
  std::string path_;
  Worker own_;
  std::vector<Rank> ranks_;
  std::deque<std::size_t> todo_;
  Clock::time_point start_ = Clock::now();
  std::size_t done_ = 0;
  std::optional<std::pair<std::size_t, std::string>> first_error_;
  bool was_interrupted_ = false;
};

}  // namespace

void lead_ranks(const Mpi& mpi, const DividedFiles& files, PieceResults& results, ResultsFile* file,
                const Interruption& interruption, const std::string& path) {
  Leader(mpi, files, results, file, interruption, path).run();
}

void end_ranks(const Mpi& mpi) {
  for (int ended = 1; ended < mpi.size();) {
    if (const auto message = mpi.receive()) {
      mpi.send(message->from, message_of(Json::object()));
      ++ended;
    }
    std::this_thread::sleep_for(pause);
  }
  mpi.finish();
}

void work_as_rank(const Mpi& mpi, const DividedFiles& files, const Interruption& interruption) {
  end_signs_of_life();  // rank 0 gives them
  Worker worker(files);
  std::deque<std::size_t> pieces;
  bool has_ended = false;
  mpi.send(0, message_of({{"ready", question_of(files)}}));
  Clock::time_point said = Clock::now();
  while (!has_ended || worker.is_busy() || !pieces.empty()) {
    // Rank 0 says what is to be said.
    if (interruption.asked_for()) _exit(128 + SIGTERM);
    while (const auto message = mpi.receive()) {
      const Json json = json_of(*message);
      if (json.contains("piece"))
        pieces.push_back(json["piece"].get<std::size_t>());
      else
        has_ended = true;
    }
    const auto outcome = worker.take();
    if (!worker.is_busy() && !pieces.empty()) {
      worker.start(pieces.front());
      pieces.pop_front();
    }
    if (outcome) {
      mpi.send(0, message_of(*outcome));
      said = Clock::now();
    } else if (Clock::now() - said > sign_of_life) {
      mpi.send(0, message_of({{"alive", 1}}));
      said = Clock::now();
    }
    std::this_thread::sleep_for(pause);
  }
  mpi.finish();
}

}  // namespace guardbit::tools
