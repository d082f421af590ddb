#!/usr/bin/env bash
# A whole machine under QEMU (test/vm): the life of the package, power cuts with an audit after each,
# and the disk around flushes of a run.  `./dev test` makes the package before.
# In a whole run it keeps a core busy for 500 s.
set -uo pipefail
cd "$(dirname "$0")/../.."

for program in qemu-system-x86_64 mmdebstrap dpkg-deb mkfs.xfs mkfs.btrfs; do
    command -v $program >/dev/null || { echo "no $program on this machine"; exit 77; }
done
compgen -G 'build/package/*.deb' >/dev/null || { echo "no package: make it by ./dev package"; exit 77; }

code=0
python3 test/vm/machine.py package || code=1
CAIRN_BUILD=$(readlink -f build/package/cairn-*/build/release) # what is in the package
export CAIRN_BUILD
python3 test/vm/machine.py cuts 25 || code=1
python3 test/vm/machine.py cuts 2 ext4-data xfs btrfs || code=1
python3 test/vm/machine.py moments 30 30 || code=1
exit $code
