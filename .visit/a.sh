# correctness: gpu tests, litmus, random, two-stage
set -u
H=$PWD; mkdir -p /tmp/k; cp -r vmain/. /tmp/k/; cp .visit/env.sh /tmp/k/; cd /tmp/k; tar xJf bin.tar.xz; . ./env.sh; ls bin | tr '\n' ' '; nvidia-smi -L
(time timeout 240 bin/gpu-tests) > $OUT/gpu-tests.log 2>&1; tail -5 $OUT/gpu-tests.log
(time timeout 60 bin/litmus) > $OUT/litmus.log 2>&1; tail -4 $OUT/litmus.log
(time timeout 60 bin/random-kernels --seed 5 --count 200) > $OUT/random.log 2>&1; tail -4 $OUT/random.log
(time timeout 80 bin/launch) > $OUT/launch.log 2>&1; tail -3 $OUT/launch.log
(time timeout 60 bin/graphs) > $OUT/graphs.log 2>&1; tail -3 $OUT/graphs.log
