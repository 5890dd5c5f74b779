set -u
cd /tmp/k; . ./env.sh
for t in memcheck racecheck synccheck initcheck; do
 for f in programs rust_carried; do
  (time timeout 130 compute-sanitizer --tool $t --error-exitcode 9 bin/gpu-tests $f) > $OUT/$t-$f.log 2>&1; echo "$t $f rc $?"; grep -c "ERROR SUMMARY\|RACECHECK SUMMARY" $OUT/$t-$f.log; tail -6 $OUT/$t-$f.log | head -4
 done
done
