#!/usr/bin/env bash
# The memory system of this computer's kernel beside a preset: measured at one task and at all CPUs, on a machine profile that is
# calibrated first, and predicted from one task's rate. With the path of a built `scalevm`, and a preset.
set -euo pipefail
scalevm=${1:-target/release/scalevm} preset=${2:-linux-6.12}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$scalevm" calibrate --output "$folder/here.toml" 2> "$folder/calibrated"
for mode in "" --threads; do
    for workload in mmap1 brk1 page_fault1 mprotect1 madvise1 malloc1; do
        "$scalevm" sweep $workload --on os $mode --cpus "1,$(nproc)" --duration 0.5 --store "$folder/results" > "$folder/last"
    done
done
"$scalevm" predict --measured "$folder/results" --vm "$preset" --machine "$folder/here.toml" --format markdown || [ $? = 1 ]
