#!/usr/bin/env bash
# full_test.sh ROOT: .ci/full lists its parts, refuses unknown ones, goes on after a failure and sums up. cmake, ctest and what
# else takes time are stand-ins here.
set -euo pipefail
full=$1/.ci/full
[[ -e $full ]] || { echo "SKIPPED: the tree has no .ci"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for program in cmake ctest nvcc clang++ clang-tidy-14; do
  printf '#!/bin/sh\ncase "%s $*" in *"--preset asan"*) exit 3;; esac\n' "$program" >"$scratch/$program"
done
# It reads what it is given, as the real one does: git would end with an error otherwise.
printf '#!/bin/sh\ncat >/dev/null\n' >"$scratch/xargs"
printf '#!/bin/sh\necho install ok installed\n' >"$scratch/dpkg-query"
chmod +x "$scratch"/*
export PATH=$scratch:$PATH

# expect STATUS PATTERN WORD…: how .ci/full ends with these words, and a line of what it says.
expect() {
  local status=$1 pattern=$2 ended=0 said
  shift 2
  said=$("$full" "$@" 2>&1) || ended=$?
  [[ $ended -eq $status ]] && grep -qE -- "$pattern" <<<"$said" || {
    printf 'expected status %s and "%s" of %s, got status %s:\n%s\n' "$status" "$pattern" "$*" "$ended" "$said"
    exit 1
  }
}

expect 0 '^  sweeps +every test' --help
expect 2 "^.ci/full: unknown part 'lnit' \(valid: clang .*sweeps\)$" clang lnit
expect 2 "unknown part ''" ''
expect 0 '^clang +passed +[0-9]+ s$' clang
expect 1 '^asan +FAILED +[0-9]+ s$' asan
expect 1 '^masks +passed' asan masks
expect 0 '^architectures +passed' architectures lint sweeps
