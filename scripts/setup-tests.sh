#!/usr/bin/env bash
# Installs the real programs that the end-to-end tests run against, from the distribution's packages. They are
# not started here: the tests start them on private directories and free ports, and stop them again.
# `scripts/setup-tests.sh kubernetes` also installs what the tests with Kubernetes need, but for Go 1.26 or later; those with
# Trino need no more than a Java 24 or later.
set -euo pipefail

declare -A package_of=(
  [ceph-mon]=ceph-mon [ceph-mgr]=ceph-mgr [ceph-osd]=ceph-osd [radosgw]=radosgw [ceph]=ceph-common
  [ceph-mds]=ceph-mds [ceph-fuse]=ceph-fuse [pg_ctlcluster]=postgresql [mariadb-install-db]=mariadb-server [fusermount3]=fuse3
  [sysbench]=sysbench [pgbouncer]=pgbouncer
  [mvn]=maven
  [rbd]=ceph-common [rados]=ceph-common [fio]=fio [curl]=curl [losetup]=mount
  [ip]=iproute2 [parted]=parted [mkfs.ext4]=e2fsprogs [unshare]=util-linux [chromium]=chromium [node]=nodejs [npm]=npm [python3]=python3 [setpriv]=util-linux [psql]=postgresql-client
)
missing=()
if [ "${1:-}" = kubernetes ]; then
  package_of+=([etcd]=etcd-server [containerd]=containerd [runc]=runc)
  # Plugins for networks are not in the path.
  [ -x /usr/lib/cni/bridge ] || missing+=(containernetworking-plugins)
fi
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
# Its programs are not in the path: every version has a directory of its own.
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)

install() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  if ! command -v apt-get >/dev/null; then
    echo "setup-tests: please install by hand: ${missing[*]}" >&2
    exit 1
  fi
  "${as_root[@]}" apt-get update -q
  # Packages of servers start them on install: not while this says no.
  local policy=/usr/sbin/policy-rc.d ours=
  if [ ! -e "$policy" ]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
  fi
  local code=0
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}" || code=$?
  [ -z "$ours" ] || "${as_root[@]}" rm "$policy"
  return "$code"
}
[ ${#missing[@]} -eq 0 ] || install

# In the build directory: what runs the tests, and what checks the API's description and fuzzes the API from it (Python).
cd "$(dirname "$0")/.."
python="${CARGO_TARGET_DIR:-target}/e2e/python"
if ! cat scripts/{test,api-fuzz}-requirements.txt | cmp -s - "$python/installed.txt"; then
  python3 -m venv "$python"
  "$python/bin/pip" install -q --disable-pip-version-check --require-hashes -r scripts/test-requirements.txt
  "$python/bin/pip" install -q --disable-pip-version-check -r scripts/api-fuzz-requirements.txt
  cat scripts/{test,api-fuzz}-requirements.txt >"$python/installed.txt"
fi
