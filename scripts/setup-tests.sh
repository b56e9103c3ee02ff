#!/usr/bin/env bash
# Installs the real programs that the end-to-end tests run against, from the distribution's packages. They are
# not started here: the tests start them on private directories and free ports, and stop them again.
set -euo pipefail

declare -A package_of=(
  [ceph-mon]=ceph-mon [ceph-mgr]=ceph-mgr [ceph-osd]=ceph-osd [radosgw]=radosgw [ceph]=ceph-common
  [rbd]=ceph-common [rados]=ceph-common [fio]=fio [curl]=curl [losetup]=mount
  [ip]=iproute2 [parted]=parted [mkfs.ext4]=e2fsprogs [unshare]=util-linux [chromium]=chromium [node]=nodejs [npm]=npm [python3]=python3
)
missing=()
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)

install() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  if ! command -v apt-get >/dev/null; then
    echo "setup-tests: please install by hand: ${missing[*]}" >&2
    exit 1
  fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}"
}
[ ${#missing[@]} -eq 0 ] || install

# What checks the API's description and fuzzes the API from it: Python, in the build directory.
cd "$(dirname "$0")/.."
python="${CARGO_TARGET_DIR:-target}/e2e/python"
if ! cmp -s scripts/api-fuzz-requirements.txt "$python/installed.txt"; then
  python3 -m venv "$python"
  "$python/bin/pip" install -q --disable-pip-version-check -r scripts/api-fuzz-requirements.txt
  cp scripts/api-fuzz-requirements.txt "$python/installed.txt"
fi
