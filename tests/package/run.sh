#!/usr/bin/env bash
# run.sh BUILD_DIR CMAKE COMPILER FLAGS: installs the package below the build tree, then configures, builds and runs
# the example against the installed copy alone; the installed command finds its recordings.
set -euo pipefail
build=$1 cmake=$2 compiler=$3 flags=$4
example=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$build/package
rm -rf "$scratch"
"$cmake" --install "$build" --prefix "$scratch/prefix" >/dev/null
# The command finds the recordings that came with it.
(cd / && "$scratch/prefix/bin/guardbit" experiment run E01 --quick | head -1 | grep reproduced)
"$cmake" -S "$example" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags"
"$cmake" --build "$scratch/build"
"$scratch/build/example"
