# Processes of a shell: background, wait, signals.
sleep 0.05 & first=$!
(exit 5) & second=$!
wait $second
echo "second: $?"
wait $first
echo "first: $?"
sleep 100 & sleeper=$!
kill $sleeper
# The shell says "Terminated" only if it waits already when the process ends.
wait $sleeper 2>/dev/null
echo "killed: $?"
(kill -SEGV $(sh -c 'echo $PPID'))
echo "segmentation: $?"
trap 'echo caught' USR1
kill -USR1 $$
trap 'echo later; exit 3' TERM
(sleep 0.05; kill $$) &
wait
echo "not reached, or before the signal: $?"
