set -u
mkdir -p /tmp/k; cp -r vmain/. /tmp/k/; cp .visit/env.sh /tmp/k/; cd /tmp/k; tar xJf bin.tar.xz; . ./env.sh; nvidia-smi -L
(time timeout 100 bin/gpu-tests two_devices) > $OUT/two.log 2>&1; tail -12 $OUT/two.log
