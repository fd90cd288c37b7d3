#include "tools/products/user_kernel.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "emulator/explain/explain.hpp"
#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::tools {

namespace {

using emulator::BlackBox;
using emulator::Question;
using formats::Error;
using formats::Format;
using formats::Tensor;

/// A folder of its own that goes away with its owner.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "guardbit-probe-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error(pattern, std::string("cannot make a folder: ") + std::strerror(errno));
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A process group of its own, whose output goes to a file; ended with its owner.
class Child {
 public:
  Child(const std::string& command, const std::string& in, const std::string& out,
        const std::string& log) {
    const std::string line = command + " \"$@\"";
    process_ = fork();
    if (process_ < 0) throw Error("--exec", std::string("cannot start: ") + std::strerror(errno));
    if (process_ > 0) return;
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    const int text = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (nothing < 0 || text < 0) _exit(127);
    dup2(nothing, STDIN_FILENO);
    dup2(text, STDOUT_FILENO);
    dup2(text, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", line.c_str(), "sh", in.c_str(), out.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    kill(-process_, SIGKILL);
    kill(process_, SIGKILL);  // it may not have its group yet
    waitpid(process_, nullptr, 0);
  }

  /// Has it ended? Then `status` is what waitpid says, and what it left running is ended too.
  bool ended(int& status) {
    if (waitpid(process_, &status, WNOHANG) != process_) return false;
    kill(-process_, SIGKILL);
    process_ = -1;
    return true;
  }

 private:
  pid_t process_ = -1;
};

/// The last line that the program printed, for the message.
std::string last_words(const std::string& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : ": " + formats::printable(last);
}

std::string where_of(const UserKernel& kernel) {
  return "--exec " + formats::in_quotes(kernel.command);
}

void run_to_end(const UserKernel& kernel, const std::string& in, const std::string& out,
                const std::string& log, const Interruption& interruption) {
  Child child(kernel.command, in, out, log);
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  auto pause = std::chrono::microseconds(200);
  while (!child.ended(status)) {
    interruption.check();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() > kernel.seconds) {
      std::ostringstream limit;
      limit << kernel.seconds;
      throw Error(where_of(kernel), "no answer within " + limit.str() + " s (see --timeout)");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20000));
  }
  if (WIFSIGNALED(status)) {
    throw Error(where_of(kernel), std::string("ended by signal ") +
                                      std::to_string(WTERMSIG(status)) + " (" +
                                      strsignal(WTERMSIG(status)) + ")" + last_words(log));
  }
  if (WEXITSTATUS(status) != 0) {
    throw Error(where_of(kernel),
                "ended with status " + std::to_string(WEXITSTATUS(status)) + last_words(log));
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t x : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(x);
  return text + "]";
}

formats::TensorFile output_of(const UserKernel& kernel, const std::string& out) {
  if (!std::filesystem::exists(out))
    throw Error(where_of(kernel), "wrote no file at its second argument");
  try {
    return formats::read_tensors(out);
  } catch (const Error& error) {
    throw Error(where_of(kernel), "its output cannot be read: " + std::string(error.what()));
  }
}

/// The tensor of that name, of that shape and format.
const Tensor& result_in(const UserKernel& kernel, const formats::TensorFile& file, const char* name,
                        const std::vector<std::int64_t>& shape, const Format& format) {
  const Tensor* const d = file.find(name);
  if (d == nullptr)
    throw Error(where_of(kernel), "its output has no tensor '" + std::string(name) + "'");
  if (d->shape != shape)
    throw Error(where_of(kernel), std::string(name) + " has shape " + shape_text(d->shape) +
                                      ", not " + shape_text(shape));
  if (d->format != format)
    throw Error(where_of(kernel), std::string(name) + " is " + formats::name_of(d->format) +
                                      ", not " + formats::name_of(format));
  return *d;
}

std::vector<std::uint64_t> answers_in(const UserKernel& kernel, const BlackBox& box,
                                      const formats::TensorFile& file, std::size_t count) {
  const std::vector<std::uint64_t> codes = formats::codes_of(
      result_in(kernel, file, "d", {static_cast<std::int64_t>(count), kernel.m, kernel.n}, box.d));
  const auto each = static_cast<std::size_t>(kernel.m) * static_cast<std::size_t>(kernel.n);
  std::vector<std::uint64_t> answers(count);
  for (std::size_t t = 0; t < count; ++t) {
    if (kernel.row >= 0) {
      answers[t] =
          codes[t * each + static_cast<std::size_t>(kernel.row * kernel.n + kernel.column)];
      continue;
    }
    answers[t] = codes[t * each];
    for (std::size_t i = 1; i < each; ++i) {
      const std::uint64_t code = codes[t * each + i];
      // NaNs of other signs are written alike and mean the same.
      const auto is_nan = [&](std::uint64_t x) {
        return formats::decode(box.d, x).kind == formats::Kind::nan;
      };
      if (code == answers[t] || (is_nan(code) && is_nan(answers[t]))) continue;
      throw Error(where_of(kernel),
                  "equal rows and columns give different results: d[" + std::to_string(t) +
                      ", 0, 0] is " + emulator::value_text(box.d, answers[t]) + ", d[" +
                      std::to_string(t) + ", " +
                      std::to_string(i / static_cast<std::size_t>(kernel.n)) + ", " +
                      std::to_string(i % static_cast<std::size_t>(kernel.n)) + "] is " +
                      emulator::value_text(box.d, codes[t * each + i]) +
                      "; --row and --column choose one of them");
    }
  }
  return answers;
}

std::vector<Tensor> tensors_of(const UserKernel& kernel, const BlackBox& box,
                               std::span<const Question> questions) {
  const auto m = static_cast<std::size_t>(kernel.m);
  const auto n = static_cast<std::size_t>(kernel.n);
  std::vector<std::uint64_t> a, b, c;
  for (const Question& q : questions) {
    for (std::size_t i = 0; i < m; ++i) a.insert(a.end(), q.a.begin(), q.a.end());
    for (const std::uint64_t code : q.b) b.insert(b.end(), n, code);
    c.insert(c.end(), m * n, q.c);
  }
  const auto count = static_cast<std::int64_t>(questions.size());
  const auto tensor = [&](const char* name, const Format& format, std::vector<std::int64_t> shape,
                          const std::vector<std::uint64_t>& codes) {
    return formats::tensor_of_codes(name, format, formats::Packing::container, std::move(shape),
                                    codes);
  };
  std::vector<Tensor> tensors = {tensor("a", box.a, {count, kernel.m, box.k}, a),
                                 tensor("b", box.b, {count, box.k, kernel.n}, b)};
  if (box.has_addend) tensors.push_back(tensor("c", box.c, {count, kernel.m, kernel.n}, c));
  return tensors;
}

/// What the program writes, given these tensors.
formats::TensorFile answer_to(const UserKernel& kernel, const std::vector<Tensor>& tensors,
                              const Interruption& interruption) {
  const ScratchFolder folder;
  const std::string in = folder.file("in.safetensors");
  const std::string out = folder.file("out.safetensors");
  formats::write_tensors(in, {}, tensors);
  run_to_end(kernel, in, out, folder.file("log"), interruption);
  return output_of(kernel, out);
}

}  // namespace

std::vector<std::uint64_t> run_user_kernel(const UserKernel& kernel, const BlackBox& box,
                                           std::span<const Question> questions,
                                           const Interruption& interruption) {
  const formats::TensorFile file =
      answer_to(kernel, tensors_of(kernel, box, questions), interruption);
  return answers_in(kernel, box, file, questions.size());
}

std::vector<std::vector<std::uint64_t>> run_user_function(
    const UserKernel& kernel, const emulator::FunctionShape& shape,
    const std::vector<std::vector<std::uint64_t>>& questions, const Interruption& interruption) {
  const auto count = static_cast<std::int64_t>(questions.at(0).size());
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < questions.size(); ++i)
    tensors.push_back(formats::tensor_of_codes(emulator::operand_names.at(i), shape.operand,
                                               formats::Packing::container, {count}, questions[i]));
  const formats::TensorFile file = answer_to(kernel, tensors, interruption);
  std::vector<std::vector<std::uint64_t>> answers;
  for (std::size_t i = 0; i < shape.results; ++i)
    answers.push_back(formats::codes_of(
        result_in(kernel, file, emulator::result_names.at(i), {count}, shape.result)));
  return answers;
}

}  // namespace guardbit::tools
