#!/bin/sh
# Starts evcxr for a notebook; `cargo xtask notebook --prepare` makes it a kernel of Jupyter.
#
#     kernel.sh EVCXR FOLDERS CONNECTION
#
# evcxr compiles cells in one folder, by itself in a new one at each start: Kiln would be compiled at each
# start, too. Two processes cannot use one folder. So each takes the first of FOLDERS/0, FOLDERS/1 and so on
# that no other has and keeps it locked while it runs; a kernel that starts again finds what is compiled.
# A folder is a copy of FOLDERS/prepared, and is copied anew once Kiln was compiled anew there.
set -eu
evcxr=$1 folders=$2 connection=$3
prepared=$folders/prepared
if [ ! -x "$evcxr" ] || [ ! -f "$prepared/stamp" ]; then
    echo "kiln: notebooks are not prepared; run \`cargo xtask notebook --prepare\`" >&2
    exit 1
fi

command -v flock >/dev/null || {
    echo "kiln: the program \`flock\` is not there; install util-linux" >&2
    exit 1
}

number=0
while [ "$number" -lt 100 ]; do
    folder=$folders/$number
    mkdir -p "$folder"
    # The lock ends with this process and those that it starts.
    exec 9>"$folder/lock"
    flock --nonblock 9 && break
    number=$((number + 1))
done

if ! cmp -s "$prepared/stamp" "$folder/stamp"; then
    # Not while Kiln is being compiled there.
    exec 8<"$prepared/lock"
    flock --shared 8
    rm -rf "$folder/build"
    cp -a --reflink=auto "$prepared/build" "$folder/build"
    cp "$prepared/stamp" "$folder/stamp"
    exec 8<&-
fi

export EVCXR_TMPDIR="$folder/build/cells"
# evcxr would look there for a kernel that it installed itself, to renew it.
export JUPYTER_PATH="$folder"
exec "$evcxr" --control_file "$connection"
