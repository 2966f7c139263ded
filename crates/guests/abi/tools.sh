# Programs in pipes.
mkdir tools-$$ && cd tools-$$ || exit 1
seq 1 100 > numbers
wc -l < numbers
head -n 3 numbers
tail -n 2 numbers
grep -c 7 numbers
sed -n '10p;s/^5$/five/p' numbers
awk '{ sum += $1 } END { print sum }' numbers
sort -rn numbers | head -n 1
printf 'b 2\na 1\nc 3\n' | sort | cut -d' ' -f2 | tr '\n' ','
echo
seq 1 20000 | sort -n | tail -n 1
cat numbers numbers | sort -n | uniq | wc -l
echo "a b c" | xargs -n 1 echo item
printf '%s\n' one two three | tee copy | grep o
cmp copy copy && echo same
md5sum < numbers
dd if=/dev/zero bs=4096 count=256 2>/dev/null | wc -c
head -c 100000 /dev/zero | tr '\0' x | md5sum
echo data | gzip | gunzip
test -e missing
echo "missing: $?"
ls /does/not/exist 2>/dev/null
echo "ls: $?"
nonexistent 2>/dev/null
echo "unknown command: $?"
