#!/usr/bin/env bash
# A prolog of Slurm (slurm.conf: Prolog=…/slurm_prolog.sh): a job begins only where no GPU computes wrongly. Slurm drains a node
# whose prolog fails, and queues the job again elsewhere.
#
# GUARDBIT: the command; SECONDS_OF_SCREENING: how long; VERDICTS: a folder that keeps what was found.
set -u
guardbit=${GUARDBIT:-/usr/local/bin/guardbit}
seconds=${SECONDS_OF_SCREENING:-5}
verdicts=${VERDICTS:-/var/spool/guardbit}

mkdir -p "$verdicts"
verdict=$verdicts/$(hostname).json
# A GPU that hangs must not hang the prolog.
timeout "$((${seconds%.*} + 60))" "$guardbit" gpu screen --seconds "$seconds" -o "$verdict" > "$verdict.txt" 2>&1
status=$?
case $status in
  0) exit 0 ;;
  1) reason='a GPU computes wrongly' ;;
  124) reason='the screening hung' ;;
  *) reason='the GPUs could not be screened' ;;
esac
logger -t guardbit "$(hostname): $reason: $(head -c 400 "$verdict.txt" | tr '\n' ' ')" 2> /dev/null
echo "print guardbit: $reason on $(hostname)"
exit "$status"
