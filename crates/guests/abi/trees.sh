# Files and folders.
mkdir trees-$$ && cd trees-$$ || exit 1
umask 022
mkdir -p a/b/c d
echo one > a/one
echo two > a/b/two
cp a/one a/b/c/copy
cp -r a e
mv d f
ln a/one hard
ln -s a/b soft
find . | sort
ls -1 soft/
cat hard soft/two
echo more >> hard
cat a/one
readlink soft
rm -r e
[ -d e ] || echo "e is gone"
[ -L soft ] && [ -d soft ] && [ ! -s f/x ] && echo "tests"
stat -c '%a %F %s %h' a/one soft
chmod 600 a/one
stat -c %a a/one
(cd a/b && pwd | sed 's/.*trees-[0-9]*//' && cd .. && ls -1)
tar -cf archive.tar a
mkdir out
tar -xf archive.tar -C out
find out -type f | sort
for file in a/*; do echo "<$file>"; done
: > empty
[ -s empty ] || echo "nothing in it"
rmdir a 2>/dev/null || echo "not empty"
cd .. && rm -r trees-$$ && [ ! -e trees-$$ ] && echo "all gone"
