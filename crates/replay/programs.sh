#!/usr/bin/env bash
# How true replays are: records programs of Debian, replays them on this computer, and prints a table of both, for
# docs/record.md; with the word `predict`, of the replays here and on a simulated machine that is this computer. Run it
# as root on a quiet computer, after `cargo build --release`, with these packages installed:
#   git sqlite3 xz-utils zstd make gcc libc6-dev python3 nodejs default-jdk-headless redis-server nginx-light wrk
#   stress-ng ffmpeg libjemalloc2 libmimalloc2.0 postgresql linux-perf
set -euo pipefail
cd "$(dirname "$0")/../.."
scalevm=${SCALEVM:-$PWD/target/release/scalevm} repository=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

head -c 20000000 /dev/urandom | base64 >numbers
git clone -q --no-local --depth 30 "file://$repository" history
mkdir sources site
for file in 1 2 3 4 5 6 7 8; do
    printf '#include <stdlib.h>\n#include <string.h>\nint f%d(int n) { char *p = malloc(n); memset(p, 1, n); n = p[n / 2]; free(p); return n; }\n' \
        "$file" >"sources/f$file.c"
done
printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tgcc -O2 -c $< -o $@\n' >sources/Makefile
cat >insert.sql <<'END'
create table numbers(number integer primary key, name text);
with recursive each(n) as (select 1 union all select n + 1 from each where n < 200000)
    insert into numbers select n, hex(randomblob(20)) from each;
create index names on numbers(name);
select count(*), max(name) from numbers;
END
cat >pool.py <<'END'
import multiprocessing
def allocate(_):
    return sum(len(bytearray(300000)) for _ in range(300))
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(allocate, range(8))))
END
cat >Lists.java <<'END'
public class Lists {
    public static void main(String[] none) {
        var list = new java.util.ArrayDeque<byte[]>();
        for (int i = 0; i < 20000; i++) { list.add(new byte[5000]); if (list.size() > 2000) list.remove(); }
        System.out.println(list.size());
    }
}
END
cat >allocate.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *seed)
{
    unsigned chance = (unsigned)(long)seed;
    void *block[400] = {0};
    for (int round = 0; round < 60000; round++) {
        chance = chance * 1103515245 + 12345;
        int at = (chance >> 8) % 400;
        size_t size = 64 + (chance >> 4) % 60000;
        free(block[at]);
        block[at] = memset(malloc(size), 1, size);
    }
    for (int at = 0; at < 400; at++)
        free(block[at]);
    return NULL;
}
int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END
gcc -O2 -fno-builtin-malloc -pthread allocate.c -o allocate
cat >redis.sh <<'END'
redis-server --port 7777 --save "" --logfile /dev/null & server=$!
sleep 0.3
redis-benchmark -p 7777 -q -n 20000 -c 8 -d 200 -t set -r 100000
redis-cli -p 7777 bgsave
redis-benchmark -p 7777 -q -n 10000 -c 8 -d 200 -t set -r 100000
redis-cli -p 7777 shutdown nosave
wait $server
END
echo hello >site/index.html
printf 'daemon off; worker_processes 2; pid nginx.pid; error_log /dev/null; events {}\nhttp { access_log off; server { listen 7788; root site; } }\n' >nginx.conf
cat >nginx.sh <<'END'
nginx -p "$PWD" -c nginx.conf & server=$!
sleep 0.3
wrk -t2 -c8 -d1s http://127.0.0.1:7788/
kill -QUIT $server
wait $server
END

# A server that runs as another user, on data of its own; its clients come by a socket.
pg=$(echo /usr/lib/postgresql/*/bin)
cat >postgres.sh <<END
as() { runuser -u postgres -- "\$@"; }
as $pg/postgres -D "$PWD/data" -k "$PWD/data" -c listen_addresses= -c fsync=off & server=\$!
until as $pg/pg_isready -q -h "$PWD/data"; do sleep 0.05; done
as pgbench -n -h "$PWD/data" -c 4 -j 2 -t 500 postgres
as $pg/pg_ctl -D "$PWD/data" -m fast stop
wait \$server
END
install -d -o postgres data
chmod 755 .
runuser -u postgres -- "$pg/initdb" -D data --no-sync >/dev/null 2>&1
runuser -u postgres -- "$pg/pg_ctl" -D data -o "-k $PWD/data -c listen_addresses=" -l data/log -w start >/dev/null
runuser -u postgres -- pgbench -i -q -h "$PWD/data" postgres 2>/dev/null
runuser -u postgres -- "$pg/pg_ctl" -D data stop >/dev/null

# The middle one of five numbers.
middle() { printf '%s\n' "$@" | sort -g | sed -n 3p; }
# The page faults of a command.
faults() { perf stat -x, -e faults -o counted "$@" >/dev/null 2>&1 && sed -n 's/,.*faults.*//p' counted; }

# Prints the row of the program with this name and command. The computer's speed changes, so each of five rounds runs
# the program, records it, and runs the replay; the ratio is the middle one.
row() {
    local name=$1 begun elapsed replayed ratios='' programs='' replays=''
    shift
    for _ in 1 2 3 4 5; do
        begun=$(date +%s%N)
        "$@" >/dev/null 2>&1
        elapsed=$((($(date +%s%N) - begun) / 1000))
        "$scalevm" record -o program.vmrec -- "$@" >/dev/null 2>&1
        replayed=$("$scalevm" run program.vmrec --count 1 -s 1 --json 2>noted | sed 's/.*"real":\([0-9.]*\).*/\1/')
        programs+="$elapsed " replays+="$replayed "
        ratios+="$(awk -v replayed="$replayed" -v elapsed="$elapsed" 'BEGIN { print 1e6 * replayed / elapsed }') "
    done
    local own one three all
    own=$(faults "$@")
    one=$(faults "$scalevm" run program.vmrec --count 1 -s 1)
    three=$(faults "$scalevm" run program.vmrec --count 3 -s 1)
    all=$(sed -n 's/.*program: \([0-9.]* %\) of.*/\1/p' noted)
    printf '| %s | %d | %d | %.2f | %.2f | %.2f | %s |\n' "$name" "$own" $(((three - one) / 2)) \
        "$(middle $programs)e-6" "$(middle $replays)" "$(middle $ratios)" "${all:-100 %}"
}

# The recorded calls a second of a replay: the most of several samples.
rate() {
    "$scalevm" run program.vmrec --count 4 --json "$@" 2>/dev/null |
        sed 's/.*"count":\([0-9]*\),.*"real":\([0-9.]*\),.*/\1 \2/' |
        awk '$1 / $2 > most { most = $1 / $2 } END { print most }'
}

# Prints the row of a program's replays here and on sim, by one task and by two: the recorded calls a second.
predicted() {
    local name=$1 tasks here there
    shift
    "$scalevm" record -o program.vmrec -- "$@" >/dev/null 2>&1
    printf '| %s |' "$name"
    for tasks in 1 2; do
        here=$(rate -s 7 -t $tasks --on os)
        there=$(rate -s 1 -t $tasks --on sim --machine ./here.toml --vm linux-6.12)
        awk -v here="$here" -v there="$there" 'BEGIN {
            printf " %.0f | %.0f | %.2f |", here, there, there / here
            error = log(there / here)
            print error < 0 ? -error : error >>"errors"
        }'
    done
    echo
}

if [ "${1:-}" = predict ]; then
    "$scalevm" calibrate --name here -o here.toml >/dev/null 2>&1
    echo '| program | 1 task | on sim | ratio | 2 tasks | on sim | ratio |'
    echo '|---|---|---|---|---|---|---|'
    predicted '`sort --parallel=2`' sort --parallel=2 numbers -o sorted
    predicted '`zstd -T2`' zstd -q -T2 -k -f -3 numbers -o numbers.zst
    predicted SQLite sqlite3 :memory: '.read insert.sql'
    predicted 'Python, `multiprocessing`' /usr/bin/python3 pool.py
    predicted "four threads on glibc's malloc" ./allocate
    for loop in malloc1 mprotect1 mmap1; do
        predicted $loop "$scalevm" run $loop --count 20000 -s 1
    done
    sort -g errors | awk '{ all[NR] = $1 } END { printf "median |ln|: %.2f\n", (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'
    exit
fi

echo '| program | faults | in the replay | seconds | in the replay | ratio | calls replayed |'
echo '|---|---|---|---|---|---|---|'
row '`sort --parallel=2`' sort --parallel=2 numbers -o sorted
row '`xz -T2`' xz -T2 -k -c -0 numbers
row '`zstd -T2`' zstd -q -T2 -k -c -3 numbers
row '`make -j2` with gcc' make -s -B -j2 -C sources
row '`git gc`' git -C history gc -q --no-prune
row 'SQLite' sqlite3 :memory: '.read insert.sql'
row 'Python, `multiprocessing`' /usr/bin/python3 pool.py
row 'Node' node -e 'let a = []; for (let i = 0; i < 3e5; i++) a.push({ i, s: "x" + i }); console.log(a.length)'
row 'Java' java -Xmx256m Lists.java
row 'Redis with BGSAVE, and its benchmark' bash redis.sh
row 'nginx, and wrk' bash nginx.sh
row 'PostgreSQL, and pgbench' bash postgres.sh
row 'ffmpeg' ffmpeg -loglevel error -f lavfi -i testsrc=size=640x480:rate=30 -t 4 -threads 2 -f null -
row '`stress-ng --vm 2`' stress-ng --vm 2 --vm-bytes 64M --vm-ops 2000 --quiet
row "four threads on glibc's malloc" ./allocate
row 'the same on jemalloc' env LD_PRELOAD=libjemalloc.so.2 ./allocate
row 'the same on mimalloc' env LD_PRELOAD=libmimalloc.so.2 ./allocate
