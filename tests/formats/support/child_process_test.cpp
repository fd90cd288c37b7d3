#include "formats/support/child_process.hpp"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "formats/support/error.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {
namespace {

/// What an Error of such work says; empty without one.
std::string error_of(const std::function<void(const BytesVisitor&)>& work,
                     const BytesVisitor& receive = {}) {
  try {
    run_in_child("file", "crashes", 60, work, receive);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("child process: what it sends arrives in order and in the same pieces") {
  std::vector<std::size_t> sizes;
  std::uint8_t next = 0;
  bool in_order = true;
  const auto work = [](const BytesVisitor& send) {
    std::uint8_t value = 0;
    for (const std::size_t size : {3UL, 0UL, 1000000UL, 1UL}) {
      std::vector<std::byte> bytes(size);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(value++);
      send(bytes);
    }
  };
  CHECK(error_of(work, [&](std::span<const std::byte> bytes) {
          sizes.push_back(bytes.size());
          for (const std::byte byte : bytes)
            in_order = in_order && byte == static_cast<std::byte>(next++);
        }).empty());
  CHECK(sizes == std::vector<std::size_t>{3, 0, 1000000, 1});
  CHECK(in_order);
}

TEST_CASE("child process: errors come back, crashes are errors") {
  CHECK(error_of([](const BytesVisitor&) { throw Error("place", "damaged"); }) == "place: damaged");
  CHECK(error_of([](const BytesVisitor&) { throw std::runtime_error("odd"); }) == "odd");
  CHECK(error_of([](const BytesVisitor&) { std::raise(SIGSEGV); }) == "file: crashes");
  CHECK(error_of([](const BytesVisitor&) { std::abort(); }) == "file: crashes");
  // In the middle of what it sends.
  std::size_t received = 0;
  CHECK(error_of(
            [](const BytesVisitor& send) {
              send(std::vector<std::byte>(5));
              std::raise(SIGKILL);
            },
            [&](std::span<const std::byte> bytes) { received += bytes.size(); }) ==
        "file: crashes");
  CHECK(received == 5);
}

TEST_CASE("child process: a receiver that throws ends it") {
  const auto endless = [](const BytesVisitor& send) {
    for (;;) send(std::vector<std::byte>(100));
  };
  CHECK_THROWS_AS(
      run_in_child("file", "crashes", 60, endless,
                   [](std::span<const std::byte>) { throw std::logic_error("enough"); }),
      std::logic_error);
}

TEST_CASE("child process: one that sends may take longer", "[sweep]") {
  const auto spend = [](double seconds) {
    const std::clock_t begin = std::clock();
    while (static_cast<double>(std::clock() - begin) < seconds * CLOCKS_PER_SEC) {
    }
  };
  int received = 0;
  run_in_child(
      "file", "crashes", 1,
      [&](const BytesVisitor& send) {
        for (int i = 0; i < 5; ++i) {
          spend(0.9);
          send({});
        }
      },
      [&](std::span<const std::byte>) { ++received; });
  CHECK(received == 5);
}

TEST_CASE("child process: one that does not end is an error", "[sweep]") {
  CHECK_THROWS_AS(run_in_child("file", "crashes", 1,
                               [](const BytesVisitor&) {
                                 while (std::clock() != -1) {
                                 }
                               },
                               {}),
                  Error);
}

}  // namespace guardbit::formats
