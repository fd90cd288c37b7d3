#!/usr/bin/env bash
# Builds the command and gives a short tour: recorded answers of an H200 verified bit for bit, a number taken apart, and a
# mismatch made on purpose and explained.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/scripts/install_dependencies.sh
install_dependencies
configure release
cmake --build --preset release --target guardbit --parallel "$(nproc)"

guardbit=build/release/guardbit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# tour TITLE COMMAND...: shows a command as one would type it, then runs it.
tour() {
  printf '\n\n== %s\n$ %s\n\n' "$1" "$2"
  bash -c "$2"
}

tour 'Number formats side by side' "$guardbit formats fp16 bf16 e4m3"
tour 'One number in two formats, and what real converters make of it' \
  "$guardbit show 465 --format fp16 --format e4m3"
tour 'How one instruction computes, and how we know' \
  "$guardbit list wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 --arch sm_90"

# One bit of a recorded result, flipped: d ends the file, and element 739 from its end is execution 4, row 3, column 5.
recording='tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.safetensors'
cp "$recording" "$scratch/flipped.safetensors"
at=$(($(stat -c %s "$recording") - 4 * 739))
byte=$(od -An -tu1 -j "$at" -N 1 "$recording")
printf "\\x$(printf %02x $((byte ^ 1)))" |
  dd of="$scratch/flipped.safetensors" bs=1 seek="$at" conv=notrunc status=none
tour 'One bit of a recording flipped on purpose: found and explained (exit status 1)' \
  "$guardbit verify $scratch/flipped.safetensors || true"

printf '\n\n== What an H200 answered, computed again and compared bit for bit\n'
printf '$ %s verify tests/golden/{,h200/}{mma.sync,mma.sp,wgmma,wmma}/*.safetensors\n\n' "$guardbit"
"$guardbit" verify tests/golden/{,h200/}{mma.sync,mma.sp,wgmma,wmma}/*.safetensors >"$scratch/verified" || {
  cat "$scratch/verified"
  exit 1
}
head -n 6 "$scratch/verified"
printf '...\n'
tail -n 1 "$scratch/verified"
