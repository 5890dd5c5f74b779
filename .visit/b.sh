set -u
cd /tmp/k; . ./env.sh
(time timeout 560 bin/suite --samples 31) > $OUT/suite.log 2>&1; tail -30 $OUT/suite.log
