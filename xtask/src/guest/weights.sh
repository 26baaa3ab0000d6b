# Measures the shares of the weights 800 and 200 under the kernel's bfq, and in simulation. init.sh
# reads this file.
for module in ublk_drv bfq; do
    [ -d /sys/module/$module ] || insmod /$module.ko
done
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup

cat >weights.fio <<'END'
[global]
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=8
size=200m
time_based=1
runtime=10s
[a1]
cgroup=a
cgroup_weight=800
[a2]
cgroup=a
cgroup_weight=800
[b1]
cgroup=b
cgroup_weight=200
[b2]
cgroup=b
cgroup_weight=200
END
# shares: reads a CSV from standard input. For each setting, prints the IOPS of a, the IOPS of b,
# and their ratio.
shares() {
    awk -F , '
        /^[ab][12]_iops,/ { if (!(($3, "a") in iops)) order[++count] = $3; iops[$3, substr($1, 1, 1)] += $4; iops[$3, "a"] += 0 }
        END {
            for (at = 1; at <= count; at++) {
                a = iops[order[at], "a"]; b = iops[order[at], "b"]
                printf "%s%s %.0f : %.0f IOPS, %.1f times", sep, order[at], a, b, (b > 0 ? a / b : 0); sep = "; "
            }
            print ""
        }'
}
# both: measures the shares on the disk and in simulation.
both() {
    settings="--scheduler bfq --scheduler bfq:slice_idle=0 --scheduler bfq:low_latency=0"
    iosched compare --workload weights.fio --device sata-7200 --runs 10 --csv $settings >predicted.csv || return 1
    iosched compare --workload weights.fio --on /dev/ublkb0 --destroy-data /dev/ublkb0 --runs 5 --csv $settings >measured.csv || return 1
    echo "guest: simulated: $(shares <predicted.csv)"
    echo "guest: the kernel's: $(shares <measured.csv)"
}
check "a modelled disk is served" serve ublkb0 model:sata-7200,size=1G --scheduler noop
check "the shares of a rotating disk are measured" both
grep '^guest: ' out
check "the modelled disk ends" stop
