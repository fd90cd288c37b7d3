#!/usr/bin/env bash
# No instruction of a program uses an MMX register. g++ 13 moves 64 bits through one at -O2 and leaves the x87 registers marked
# as in use: the next fmod of the C library is then NaN. CMakeLists.txt forbids it by -mno-mmx.
#   tests/structure/mmx.sh PROGRAM
set -euo pipefail
command -v objdump >/dev/null || { echo 'SKIPPED: objdump is not available'; exit 0; }
found=$(objdump -d --no-show-raw-insn "$1" | grep -cE '%mm[0-7]' || true)
echo "$1: $found instructions with MMX registers"
((found == 0))
