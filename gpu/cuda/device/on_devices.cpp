#include "gpu/cuda/device/on_devices.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/cuda/device/device.hpp"

namespace guardbit::gpu {

void on_each_device(std::span<const int> devices, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        check_cuda(cudaSetDevice(devices[i]), "CUDA");
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void divide_among(std::span<const int> devices, const DividedWork& divided) {
  std::mutex mutex;
  std::size_t next = 0, first_unfinished = 0;
  bool failed = false;
  std::vector<bool> done(divided.count);
  on_each_device(devices, [&](std::size_t) {
    std::unique_lock lock(mutex);
    while (next < divided.count && !failed && divided.goes_on()) {
      const std::size_t i = next++;
      lock.unlock();
      try {
        divided.work(i);
      } catch (...) {
        lock.lock();
        failed = true;
        throw;
      }
      lock.lock();
      done[i] = true;
      for (; first_unfinished < divided.count && done[first_unfinished]; ++first_unfinished)
        divided.finished(first_unfinished);
    }
  });
}

}  // namespace guardbit::gpu
