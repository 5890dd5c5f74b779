#!/bin/sh
# A stand-in for `random-kernels --replay FILE COMMAND..`: the case ends the device if COMMAND succeeds
# with FILE.
[ "$1" = --replay ] || exit 2
file=$2
shift 2
"$@" "$file" && exit 3
exit 1
