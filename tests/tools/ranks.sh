#!/usr/bin/env bash
# usage: ranks.sh GUARDBIT SOURCE [hosts]
# Several processes of mpirun share files: the bytes that one process gives, a rank that is killed, a wrong rank. With "hosts",
# the same on three hosts that are network namespaces. Where something is missing the test says SKIPPED.
set -uo pipefail
guardbit=$(realpath "$1") golden=$(realpath "$2")/tests/golden hosts=${3:-}
skip() { echo "SKIPPED: $*"; exit 0; }
command -v mpirun >/dev/null || skip 'needs mpirun of Open MPI (Debian: openmpi-bin)'
folder=$(mktemp -d)
namespaces=()
remove() {
  for x in "${namespaces[@]}"; do ip netns del "$x" 2>/dev/null; done
  [[ ${#namespaces[@]} -eq 0 ]] || ip link del "${namespaces[0]%1}b" 2>/dev/null
  rm -rf "$folder"
}
trap remove EXIT
cd "$folder" || exit 1
status=0
must() { "$@" || { echo "FAILED: $*"; status=1; }; }

root=(); [[ $(id -u) -eq 0 ]] && root=(--allow-run-as-root)
launch=(mpirun -n 3 --oversubscribe "${root[@]}")
if [[ $hosts == hosts ]]; then
  n=gbt$$_
  ip netns add "${n}1" 2>/dev/null || skip 'network namespaces need a privilege'
  namespaces=("${n}1"); ip link add "${n}b" type bridge && ip link set "${n}b" up || skip 'no bridge between namespaces'
  for i in 1 2 3; do
    [[ $i -eq 1 ]] || { ip netns add "$n$i"; namespaces+=("$n$i"); }
    ip link add "${n}v$i" type veth peer name eth0 netns "$n$i" && ip link set "${n}v$i" master "${n}b" up
    ip -n "$n$i" addr add "10.77.0.$i/24" dev eth0 && ip -n "$n$i" link set eth0 up && ip -n "$n$i" link set lo up
  done
  # What mpirun starts on a host in place of ssh: the command in that host's namespace, under a name of its own.
  cat >agent <<A
#!/bin/bash
host=\$1; shift
export TMPDIR=$folder/\${host##*.}; mkdir -p "\$TMPDIR"
exec ip netns exec $n\${host##*.} unshare --uts sh -c "hostname h\${host##*.}; \$*"
A
  chmod +x agent
  launch=(ip netns exec "${n}1" mpirun -n 3 "${root[@]}" --host 10.77.0.1,10.77.0.2,10.77.0.3 --map-by node
    --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 --mca btl self,tcp)
fi

gradients=() recordings=() captures=()
for file in "$golden"/gemm/mm_fp32_*.safetensors; do captures+=("$file"); done
for file in "$golden"/operators/*.safetensors; do
  [[ $(stat -c %s "$file") -lt 300000 && ${#recordings[@]} -lt 9 ]] && recordings+=("$file")
done
captures=("${captures[@]:0:4}")
source_file=$(find "$golden/traces" -size -400k \( -name '*.npz' -o -name '*.safetensors' \) | sort | head -n 1)
extension=${source_file##*.}
for i in $(seq 60); do ln -s "$source_file" "g$i.$extension"; gradients+=("g$i.$extension"); done

compare() {  # compare WHAT STATUS COMMAND…: one process and three
  local what=$1; shift
  "$guardbit" "$@" >one.out 2>one.err; local one=$?
  timeout 120 "${launch[@]}" "$guardbit" "$@" >three.out 2>three.err; local three=$?
  grep -q 'knows no MPI' three.err && skip 'this build knows no MPI'
  if [[ $one -ne $three ]] || ! cmp one.out three.out; then
    echo "FAILED: $what: status $one and $three"; head -n 5 three.err; status=1
  else
    echo "$what: the same $(stat -c %s one.out) bytes"
  fi
}
compare trace trace "${gradients[@]}" --json
compare 'trace as text' trace "${gradients[@]}"
compare replay replay "${recordings[@]}"
compare explain explain "${captures[@]}" --json

# The first error is the one of a single process, whichever rank meets it.
printf nonsense >"g30.bad.npz"
"$guardbit" trace "${gradients[@]:0:40}" g30.bad.npz "${gradients[@]:40}" --json 2>one.err >/dev/null
timeout 120 "${launch[@]}" "$guardbit" trace "${gradients[@]:0:40}" g30.bad.npz "${gradients[@]:40}" --json 2>three.err >/dev/null
must grep -qxF "$(cat one.err)" three.err

# A rank is killed: one line, soon, and what is finished goes on from there.
work=(trace "${gradients[@]}" --formats 'fp16,mxfp8_e4m3,nvfp4,e4m3_1x128,mxfp6*' --scales 0:30:1 --json)
rank_of() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'; }
descendants() { local p; for p in $(ps -o pid= --ppid "$1"); do echo "$p"; descendants "$p"; done; }
"${launch[@]}" "$guardbit" "${work[@]}" --results kept >/dev/null 2>killed.err &
mpirun=$!
for i in $(seq 600); do [[ -e kept && $(wc -l <kept) -gt 8 ]] && break; sleep 0.05; done
killed=
for p in $(descendants $mpirun); do
  [[ $(rank_of "$p") == 2 && $(readlink "/proc/$p/exe") == "$guardbit" ]] && { kill -9 "$p" && killed=$p; break; }
done
begin=$SECONDS
wait $mpirun; ended=$?
must test -n "$killed"
must test $ended -ne 0
must test $((SECONDS - begin)) -le 10
must test "$(grep -c '^guardbit: ' killed.err)" = 1
must grep -q '^guardbit: trace: .* of 60 done, kept in kept; the same command goes on from there$' killed.err
finished=$(($(wc -l <kept) - 1))
must test $finished -lt 60
timeout 200 "${launch[@]}" "$guardbit" "${work[@]}" --results kept >resumed 2>resumed.err
"$guardbit" "${work[@]}" >one.out
must cmp one.out resumed
echo "a killed rank: $finished of 60 files were kept, $((SECONDS - begin)) s to the end of the second run"

# Each rank has files of its own.
printf '%s\n' '#!/bin/bash' 'shift $OMPI_COMM_WORLD_RANK' "exec $guardbit trace \"\$@\" --json" >differs; chmod +x differs
timeout 60 "${launch[@]}" ./differs "${gradients[@]}" >/dev/null 2>differs.err
must grep -q 'was given other files or options than rank 0' differs.err
exit $status
