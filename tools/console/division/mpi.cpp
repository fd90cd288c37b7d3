#include "tools/console/division/mpi.hpp"

#include <unistd.h>

#include <string>

#include "formats/support/error.hpp"

#if GUARDBIT_MPI
#define OMPI_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#endif

namespace guardbit::tools {

#if GUARDBIT_MPI

namespace {

struct Library {
  MPI_Comm world;
  MPI_Datatype byte;
  decltype(&::MPI_Init_thread) init;
  decltype(&::MPI_Comm_rank) rank;
  decltype(&::MPI_Comm_size) size;
  decltype(&::MPI_Send) send;
  decltype(&::MPI_Recv) receive;
  decltype(&::MPI_Iprobe) probe;
  decltype(&::MPI_Get_count) count;
  decltype(&::MPI_Finalize) finalize;
  decltype(&::MPI_Abort) abort;
};

Library load() {
  // Its plugins look for its names among those of the program.
  void* const library = dlopen(GUARDBIT_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw formats::Error(
        "MPI", "the library " GUARDBIT_MPI_LIBRARY " is not installed (Debian: libopenmpi3)");
  const auto symbol = [&](const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr)
      throw formats::Error("MPI", std::string(GUARDBIT_MPI_LIBRARY " has no ") + name);
    return found;
  };
  const auto function = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(symbol(name));
  };
  Library mpi{};
  mpi.world = static_cast<MPI_Comm>(symbol("ompi_mpi_comm_world"));
  mpi.byte = static_cast<MPI_Datatype>(symbol("ompi_mpi_byte"));
  function(mpi.init, "MPI_Init_thread");
  function(mpi.rank, "MPI_Comm_rank");
  function(mpi.size, "MPI_Comm_size");
  function(mpi.send, "MPI_Send");
  function(mpi.receive, "MPI_Recv");
  function(mpi.probe, "MPI_Iprobe");
  function(mpi.count, "MPI_Get_count");
  function(mpi.finalize, "MPI_Finalize");
  function(mpi.abort, "MPI_Abort");
  return mpi;
}

const Library& library() {
  static const Library instance = load();
  return instance;
}

/// Open MPI ends the program itself where it fails, unless told otherwise; so a status is for what
/// it returns nevertheless.
void check(int status) {
  if (status != MPI_SUCCESS) throw formats::Error("MPI", "status " + std::to_string(status));
}

}  // namespace

bool knows_mpi() { return true; }

Mpi::Mpi() {
  const Library& mpi = library();
  int provided = 0;
  check(mpi.init(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  check(mpi.rank(mpi.world, &rank_));
  check(mpi.size(mpi.world, &size_));
}

void Mpi::send(int to, const std::vector<std::uint8_t>& bytes) const {
  const Library& mpi = library();
  check(mpi.send(bytes.data(), static_cast<int>(bytes.size()), mpi.byte, to, 0, mpi.world));
}

std::optional<Mpi::Message> Mpi::receive() const {
  const Library& mpi = library();
  int has_come = 0, count = 0;
  MPI_Status status;
  check(mpi.probe(MPI_ANY_SOURCE, 0, mpi.world, &has_come, &status));
  if (has_come == 0) return std::nullopt;
  check(mpi.count(&status, mpi.byte, &count));
  Message message{status.MPI_SOURCE, std::vector<std::uint8_t>(static_cast<std::size_t>(count))};
  check(mpi.receive(message.bytes.data(), count, mpi.byte, message.from, 0, mpi.world, &status));
  return message;
}

void Mpi::finish() const { check(library().finalize()); }

void Mpi::abort(int status) const {
  library().abort(library().world, status);
  _exit(status);
}

#else

bool knows_mpi() { return false; }

Mpi::Mpi() {
  throw formats::Error(
      "MPI",
      "several processes were started together, and this build knows no MPI: --part auto divides the work without it");
}
void Mpi::send(int /*to*/, const std::vector<std::uint8_t>& /*bytes*/) const {}
std::optional<Mpi::Message> Mpi::receive() const { return std::nullopt; }
void Mpi::finish() const {}
void Mpi::abort(int status) const { _exit(status); }

#endif

}  // namespace guardbit::tools
