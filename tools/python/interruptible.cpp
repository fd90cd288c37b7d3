#include "tools/python/interruptible.hpp"

#include <nanobind/nanobind.h>

#include <chrono>

#include "emulator/engine/kernels/shared/default_environment.hpp"

namespace guardbit::python {

namespace nb = nanobind;

void run_interruptibly(const std::function<void(const Stop&)>& work) {
  Stop stop;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr thrown;
  bool interrupted = false;
  {
    const nb::gil_scoped_release unlocked;
    std::thread worker([&] {
      try {
        const emulator::DefaultEnvironment environment;
        work(stop);
      } catch (...) {
        thrown = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      ended.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; })) {
      if (interrupted) continue;
      lock.unlock();
      {
        const nb::gil_scoped_acquire locked;
        interrupted = PyErr_CheckSignals() != 0;
      }
      if (interrupted) stop.ask();
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (interrupted) throw nb::python_error();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace guardbit::python
