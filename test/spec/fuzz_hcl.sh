#!/bin/sh
# Builds and runs the fuzzer of fuzz_hcl.c: fuzz_hcl.sh [seconds].  Needs clang and its runtime
# (package libclang-rt-14-dev).  Works in a directory of its own below build/.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
work=build/fuzz
mkdir -p "$work/corpus"
clang -std=gnu11 -D_GNU_SOURCE -I. -O1 -g -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=all -o "$work/fuzz_hcl" \
    test/spec/fuzz_hcl.c spec/*.c spec/hcl/*.c base/*.c -ljansson -lcrypto -lm

# Each job file as a file, a job, a template and an alloc text; expressions of each kind.
n=0
for file in test/spec/jobs/*.hcl test/spec/jobs/*.json; do
    for kind in 0 1 2 3; do
        { printf "$kind"; cat "$file"; } >"$work/corpus/seed-$n"
        n=$((n + 1))
    done
done
printf '3{"Schema":1,"ID":"0f3a3e5c-5f31-4a52-9f0e-0123456789ab","EvalID":"","Index":0,"Datacenter":"dc1","CreateTime":1,"Job":{"ID":"a","Name":"a","Type":"batch","Meta":{"a":"b"}},"Group":{"Name":"g","EphemeralDisk":{"SizeMB":300},"Tasks":[{"Name":"t","Driver":"d","Config":{},"Env":{"A":"b"},"Resources":{"CPU":1},"LogConfig":{"MaxFiles":1,"MaxFileSizeMB":1},"RestartPolicy":{"Mode":"fail"},"Lifecycle":{"Hook":"prestart","Sidecar":true}}]}}' \
    >"$work/corpus/seed-alloc"
n=0
while IFS= read -r row; do
    printf '0v = %s\n' "$row" >"$work/corpus/row-$n"
    n=$((n + 1))
done <test/spec/fuzz_expressions.txt
printf '%s\n' '"${"' '"%{"' '"}"' '"<<EOF\x0a"' '"<<-E\x0a"' '"\x0aEOF\x0a"' '"for "' '" in "' \
    '"if "' '"else"' '"endif"' '"endfor"' '"[*]"' '".*"' '"..."' '"=>"' '"~}"' '"dynamic"' \
    '"for_each"' '"content"' '"local."' '"var."' '"locals {"' '"variable \"x\" {"' '"try("' \
    '"regex("' '"format("' '"setproduct("' '"jsondecode("' '"range("' '"formatdate("' \
    '"\"Name\":"' '"\"Tasks\":"' >"$work/words"
exec "$work/fuzz_hcl" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=8192 \
    -dict="$work/words" -artifact_prefix="$work/" -print_final_stats=1 "$work/corpus"
