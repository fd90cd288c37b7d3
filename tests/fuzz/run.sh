#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: runs each fuzz target (default: all that are built) for that many seconds; prints the executions
# of each and of all. Status 1, and the input that shows it, where a target found anything.
#
# BUILD=DIR: where the targets are (default build/fuzz). JOBS=N: targets at a time (default 1). WORKERS=N: processes of a
# target at a time (default 1); they share its corpus, DIR/corpus/TARGET. DIR/lib, where it is there, has shared libraries that the machine may lack.
set -u
seconds=${1:?run.sh SECONDS [TARGET...]}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${BUILD:-build/fuzz}" && pwd) || exit 2
workers=${WORKERS:-1}
jobs=${JOBS:-1}
programs=$(find "$build" -name 'guardbit_fuzz_*' -type f -perm -u+x)
targets=("$@")
if ((${#targets[@]} == 0)); then
  mapfile -t targets < <(sed 's/.*guardbit_fuzz_//' <<<"$programs" | sort)
fi
if [[ -d $build/lib ]]; then export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=0}
[[ -d $build/seeds ]] || python3 "$here/seeds.py" "$build/seeds" || exit 2

# fuzz TARGET PROGRAM: runs one and writes a line of what it did into its logs; status 1 where it found anything.
fuzz() {
  local target=$1 program=$2 corpus=$build/corpus/$1 logs=$build/logs/$1 crashes=$build/crashes
  mkdir -p "$corpus" "$logs" "$crashes"
  local folder folders=("$corpus") longest processes=() process state=ok i executions
  for folder in "$build/seeds/$target" "$here/seeds/$target" "$here/regressions/$target"; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  # libhdf5 may think for a minute about a damaged file, in a process of its own; nothing of ours takes ten seconds.
  local timeout=10
  [[ $target != hdf5 ]] || timeout=300
  case $target in
    hdf5 | npz | torch | scaler_log | trace_results) longest=20000 ;;
    instruction_name | format_name) longest=128 ;;  # each is compared with every name
    *) longest=4096 ;;
  esac
  for ((i = 0; i < workers; ++i)); do
    "$program" -max_total_time="$seconds" -timeout=$timeout -rss_limit_mb=2048 -max_len=$longest -print_final_stats=1 \
      -reload=10 -artifact_prefix="$crashes/$target-" "${folders[@]}" >"$logs/$i" 2>&1 &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || state=FAILED; done
  executions=$(cd "$logs" && awk '/number_of_executed_units/ {n += $2} END {print n + 0}' [0-9]*)
  echo "$executions" >"$logs/executions"
  printf '%-20s %12d executions  %s\n' "$target" "$executions" "$state"
  [[ $state == ok ]] && return 0
  (cd "$logs" && grep -hE "SUMMARY|ERROR: |broken: |runtime error|Test unit written" [0-9]*) | sort -u
  return 1
}

found=()
for target in "${targets[@]}"; do
  program=$(grep "/guardbit_fuzz_$target\$" <<<"$programs") || { echo "no target $target" >&2; exit 2; }
  found+=("$program")
  rm -rf "$build/logs/$target"
done
running=()
failed=()
# finish: waits for the target that was started first.
finish() {
  wait "${running[0]%% *}" || failed+=("${running[0]#* }")
  running=("${running[@]:1}")
}
for ((at = 0; at < ${#targets[@]}; ++at)); do
  ((${#running[@]} < jobs)) || finish
  fuzz "${targets[at]}" "${found[at]}" &
  running+=("$! ${targets[at]}")
done
while ((${#running[@]} > 0)); do finish; done

total=0
for target in "${targets[@]}"; do total=$((total + $(<"$build/logs/$target/executions"))); done
echo "$total executions of ${#targets[@]} targets"
if ((${#failed[@]} > 0)); then
  echo "found something: ${failed[*]}; guardbit_fuzz_TARGET FILE shows it again" >&2
  exit 1
fi
