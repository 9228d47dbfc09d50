# SPDX-License-Identifier: Apache-2.0
# What prolog, epilog and task-prolog have in common. What is set here may be changed in /etc/braid/slurm.conf,
# which is read by the shell, and belongs to root.
# shellcheck shell=bash disable=SC2034
socket=/run/braid/braidd.sock             # client.socket
control_port=7410                         # control.port
cluster_key_file=/etc/braid/cluster.key   # control.cluster_key_file; without one, jobs get no token
partitions=                               # only jobs of these, with blanks between; empty: all jobs
tokens=/run/braid-slurm                   # where each job's token is while it runs
wait_seconds=20                           # for a daemon that starts, and for a job to be gone
braidctl=braidctl

if [[ -e ${BRAID_SLURM_CONF:-/etc/braid/slurm.conf} ]]; then
  # shellcheck source=/dev/null
  source "${BRAID_SLURM_CONF:-/etc/braid/slurm.conf}"
fi

# Ends the script, with 0, where the job is none of ours.
only_for_our_jobs() {
  if [[ -z ${SLURM_JOB_ID:-} ]]; then
    echo "braid: SLURM_JOB_ID is not set: this is started by slurmd" >&2
    exit 2
  fi
  [[ -z $partitions || " $partitions " == *" ${SLURM_JOB_PARTITION:-} "* ]] || exit 0
}

# To slurmd's log, and to the system's.
say() {
  echo "braid: job $SLURM_JOB_ID: $*" >&2
  logger -t braid-slurm "job $SLURM_JOB_ID: $*" 2>/dev/null || true
}

ask_daemon() { timeout 10 "$braidctl" --socket "$socket" status --json; }
