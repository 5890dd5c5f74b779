set -u
cp -r vmain/. /tmp/k/; cd /tmp/k; tar xJf bin.tar.xz; . $OLDPWD/.visit/env.sh; ls bin | tr '\n' ' '
(time timeout 200 bin/gpu-tests --test-threads 8) > $OUT/gpu-tests.log 2>&1; tail -6 $OUT/gpu-tests.log
timeout 60 bin/litmus > $OUT/litmus.log 2>&1; tail -2 $OUT/litmus.log
timeout 60 bin/random-kernels --seed 3 --count 200 > $OUT/random.log 2>&1; tail -2 $OUT/random.log
for n in graphs launch startup; do (time timeout 90 bin/$n) > $OUT/$n.log 2>&1; tail -4 $OUT/$n.log; done
