#!/usr/bin/env bash
# A whole machine under QEMU (test/vm): the life of the package, power cuts with an audit after each,
# and the disk as each flush of a run has left it.  `./dev test` makes the package before.
set -uo pipefail
cd "$(dirname "$0")/../.."

for program in qemu-system-x86_64 mmdebstrap dpkg-deb; do
    command -v $program >/dev/null || { echo "no $program on this machine"; exit 77; }
done
compgen -G 'build/package/*.deb' >/dev/null || { echo "no package: make it by ./dev package"; exit 77; }

code=0
python3 test/vm/machine.py package || code=1
export CAIRN_BUILD=$PWD/build/release
python3 test/vm/machine.py cuts 10 || code=1
python3 test/vm/machine.py moments 30 60 || code=1
exit $code
