#!/usr/bin/env bash
# No instruction of a program uses an MMX register. g++ 13 moves 64 bits through one at -O2 and leaves the x87 registers marked
# as in use: the next fmod of the C library is then NaN. CMakeLists.txt forbids it by -mno-mmx.
#   tests/structure/mmx.sh PROGRAM                looks at every instruction, which takes seconds
#   tests/structure/mmx.sh --commands FILE ROOT   looks whether the commands that compile the program's parts say so
set -euo pipefail
if [[ $1 == --commands ]]; then
  [[ -e $2 ]] || { echo 'SKIPPED: the build writes no compile_commands.json'; exit 0; }
  commands=$(grep -E "\"command\".* -c ($3|${2%/*})/(formats|emulator|experiments|tools)/.*\.c(pp|xx)\"" "$2")
  without=$(grep -v -- ' -mno-mmx ' <<<"$commands" || true)
  echo "$(wc -l <<<"$commands") commands, without -mno-mmx: ${without:-none}"
  [[ -z $without ]]
  exit
fi
command -v objdump >/dev/null || { echo 'SKIPPED: objdump is not available'; exit 0; }
found=$(objdump -d --no-show-raw-insn "$1" | grep -cE '%mm[0-7]' || true)
echo "$1: $found instructions with MMX registers"
((found == 0))
