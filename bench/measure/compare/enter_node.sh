#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What mpirun takes for ssh: enter_node.sh ADDRESS COMMAND... runs a shell command on an emulated node.
# BRAID_COMPARE_NODES is "ADDRESS=NAMESPACE=NAME ..."; the name becomes the host's name, for nodes that share one
# would be taken for one machine, and use shared memory.
while [ "${1#-}" != "$1" ]; do shift; done # options for ssh, such as MPICH's -x
for node in $BRAID_COMPARE_NODES; do
  address=${node%%=*} rest=${node#*=}
  if [ "$address" = "$1" ]; then
    shift
    # shellcheck disable=SC2016  # for the inner shell
    exec ip netns exec "${rest%%=*}" unshare --uts sh -c 'hostname "$0" && eval "$@"' "${rest#*=}" "$@"
  fi
done
echo "enter_node.sh: $1 is no node of this cluster" >&2
exit 1
