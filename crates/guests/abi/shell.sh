# The language: variables, loops, functions, here-documents, substitution, arithmetic.
name=world
echo "hello, $name" 'and $name' "${name#wo}" "${missing:-default}" "${#name}"
for i in 1 2 3; do echo "round $i"; done
i=0
while [ $i -lt 3 ]; do i=$((i + 1)); [ $i = 2 ] && continue; echo "count $i"; done
twice() {
    local one=$1
    echo "$one$one"
    return 4
}
twice ab
echo "returned $?"
case $name in w*) echo "begins with w" ;; *) echo "does not" ;; esac
cat <<EOF
a document for $name
    $((6 * 7))
EOF
echo "substituted: $(twice x)"
set -- a "b c" d
echo "$# words, the second <$2>"
shift 2
echo "then $1"
(exit 3)
echo "subshell: $?"
{ echo out; echo err >&2; } 2>&1 | tr a-z A-Z
false || echo "no"
true && echo "yes"
! true
echo "negated: $?"
eval 'echo "evaluated $name"'
trap 'echo "the end"' EXIT
exit 7
