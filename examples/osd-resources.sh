#!/bin/sh
# Gives the OSDs of an arm's cluster some processors and a share of them, and the load generator its processors.
# Usage: LOAD_PID=PID osd-resources.sh shared|own CPUS. `shared`: all of them, for both; `own`: the last one is the OSDs', the others the load's.
# CPUS is what the OSDs may take together, such as 0.5. TIDEMARK_ARM and TIDEMARK_LAB_CEPH_CONF say whose OSDs.
set -eu
last=$(($(nproc --all) - 1))
case $1 in
    shared) osds=0-$last load=0-$last ;;
    own) osds=$last load=0-$((last - 1)) ;;
    *) echo "'$1' is neither shared nor own" >&2; exit 1 ;;
esac
quota=$(awk "BEGIN {printf \"%d\", $2 * 100000}")
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/osds-$TIDEMARK_ARM
    echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
    mkdir -p "$group"
    echo "$quota 100000" > "$group/cpu.max"
else
    group=/sys/fs/cgroup/cpu/osds-$TIDEMARK_ARM
    mkdir -p "$group"
    echo "$quota" > "$group/cpu.cfs_quota_us"
fi
for pid in $(pgrep -f "^(/usr/bin/)?ceph-osd .*$TIDEMARK_LAB_CEPH_CONF"); do
    taskset -acp "$osds" "$pid" > /dev/null
    echo "$pid" > "$group/cgroup.procs"
done
taskset -acp "$load" "$LOAD_PID" > /dev/null
