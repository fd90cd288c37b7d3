#!/usr/bin/env bash
# cold_objects.sh OBJECT…: objects that are compiled with little optimisation may define no inline function of the model, or the
# linker might take it for the engines as well. Prints those and exits 1.
set -euo pipefail
(($#)) || { echo 'no objects'; exit 1; }
symbols=$(nm --demangle --defined-only "$@")
if grep -E ' [WV] guardbit::emulator::(accumulate_block|align|decode_input|encode_result|exact_block|fma_chain|fused_block|scalar_step)\(' \
  <<<"$symbols"; then
  exit 1
fi
