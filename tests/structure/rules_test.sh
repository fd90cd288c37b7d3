#!/usr/bin/env bash
# The project keeps its house rules, and check.sh notices a breach of each.
set -euo pipefail
root=$1
check=$root/tests/structure/check.sh
bash "$check" "$root"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# notices FILE TEXT: the file is refused in a tree of such files.
files=()
notices() {
  mkdir -p "$scratch/$(dirname "$1")"
  printf "%s\n" "$2" >"$scratch/$1"
  files+=("$1")
}
notices formats/a.cpp '#include "emulator/dot.hpp"'
notices formats/files/a.cpp '#include "npy.hpp"'
notices emulator/a.cpp '#include "gpu/fragments.hpp"'
notices gpu/a.cu '#include "tools/report.hpp"'
notices experiments/a.cpp '#include "gpu/fragments.hpp"'
notices tools/a.cpp '#include "tests/catch.hpp"'
notices emulator/kernels/a.cpp '# define TERMS 4'
notices emulator/b.cpp 'throw Error("--arch", "is unknown");'
notices tests/a.cpp 'TEST_CASE("one; two") {}'
notices formats/b.hpp 'int a;'
notices tools/string_utils.cpp 'int a;'
notices emulator/dot_impl.cpp 'int a;'
notices README.md 'The Mantissa has'
notices tools/a.sh 'ls /home/someone/data'

said=$(bash "$check" "$scratch") && { echo 'nothing is noticed'; exit 1; }
for file in "${files[@]}"; do
  grep -qF "$file" <<<"$said" || { echo "not noticed: $file"; exit 1; }
done
rm -r "${scratch:?}"/*
printf 'int a;\n' >"$scratch/a.cpp"
bash "$check" "$scratch"
