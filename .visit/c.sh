set -u
cd /tmp/k; . ./env.sh
(time timeout 250 bin/suite --ablation unchecked --samples 3) > $OUT/ablation.log 2>&1; tail -40 $OUT/ablation.log
N="ncu --target-processes all -f --csv --page raw --metrics gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,smsp__issue_active.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active,sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active,l1tex__throughput.avg.pct_of_peak_sustained_active,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active"
for f in coulomb "matmul registers" "matmul tiled" "lud" "nw" leukocyte; do
  n=$(echo $f | tr ' ' _); timeout 40 $N -c 24 bin/suite --filter "$f" --samples 1 > $OUT/ncu_$n.csv 2>$OUT/ncu_$n.err; wc -l $OUT/ncu_$n.csv
done
