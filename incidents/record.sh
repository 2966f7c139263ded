#!/usr/bin/env bash
# Records the incidents' programs again: those that are named, or all. Run it as root on a quiet
# computer, after `cargo build --release`, with a C compiler that links statically.
set -euo pipefail
cd "$(dirname "$0")"
scalevm=${SCALEVM:-$PWD/../target/release/scalevm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Records a variant of an incident. The one of several is kept that computes least: the others have
# the load of this computer in them.
record() {
    local name=$1 variant=$2 first round
    number() { sed -n "s/^$1 = //p" "$name/incident.toml"; }
    cc -O2 -static -pthread -DTASKS="$(number tasks)" -DREQUESTS="$(number requests)" \
        "$name/$variant.c" -o "$work/$name"
    for round in 1 2 3 4 5 6 7; do
        once "$name" "$variant" "$work/$round.vmrec"
    done
    first=$(for round in "$work"/[0-9].vmrec; do
        "$scalevm" recording "$round" --text | awk -v file="$round" '{ sum += $3 } END { print sum, file }'
    done | sort -n | sed -n '1s/.* //p')
    mv "$first" "$name/$variant.vmrec"
}

# One recording, from the first task's first event on: before it, the program starts.
once() {
    local name=$1 variant=$2 to=$3 first watcher=
    # Who looks at the program from outside: not with the fix.
    if [ "$variant" = before ] && [ -e "$name/monitor" ]; then
        (until pid=$(pgrep -nx "$name"); do :; done; exec "$name/monitor" "$pid") &
        watcher=$!
    fi
    "$scalevm" record --anonymous ${watcher:+--foreign} -o "$work/whole" -- "$work/$name"
    [ -z "$watcher" ] || wait "$watcher" || true
    first=$("$scalevm" recording "$work/whole" --text | awk '$2 != "t0" && !found++ { print $1 }')
    "$scalevm" recording "$work/whole" --cut "$first-1e8" -o "$to"
}

[ $# -gt 0 ] || set -- */
for name in "${@%/}"; do
    for variant in before after; do
        [ ! -e "$name/$variant.c" ] || record "$name" "$variant"
    done
done
