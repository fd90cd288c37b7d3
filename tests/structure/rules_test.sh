#!/usr/bin/env bash
# The project keeps its house rules, and check.sh notices a breach of each.
set -euo pipefail
root=$1
check=$root/tests/structure/check.sh
bash "$check" "$root"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# notices FILE TEXT: a tree that holds just this file must be refused.
notices() {
  mkdir -p "$scratch/$(dirname "$1")"
  printf "%s\n" "$2" >"$scratch/$1"
  if bash "$check" "$scratch" >/dev/null; then
    echo "not noticed: $1: $2"
    exit 1
  fi
  rm "$scratch/$1"
  bash "$check" "$scratch"
}
notices formats/a.cpp '#include "emulator/dot.hpp"'
notices formats/files/a.cpp '#include "npy.hpp"'
notices emulator/a.cpp '#include "gpu/fragments.hpp"'
notices gpu/a.cu '#include "tools/report.hpp"'
notices experiments/a.cpp '#include "gpu/fragments.hpp"'
notices tools/a.cpp '#include "tests/catch.hpp"'
notices emulator/kernels/a.cpp '# define TERMS 4'
notices tests/a.cpp 'TEST_CASE("one; two") {}'
notices formats/a.hpp 'int a;'
notices tools/string_utils.cpp 'int a;'
notices emulator/dot_impl.cpp 'int a;'
notices README.md 'The Mantissa has'
notices tools/a.sh 'ls /home/someone/data'
