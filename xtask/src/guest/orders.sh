# Whether settings come in the order that is predicted: the same workloads on a modelled disk in simulation, and under the
# kernel's controllers on that disk served by iosched ublk; read by init.sh.
for module in ublk_drv bfq; do
    [ -d /sys/module/$module ] || insmod /$module.ko
done
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup

# The simulation has the rules of the kernel that runs.
kernel=$(uname -r | sed 's/[^0-9.].*//')
# jobs RUNTIME: begins a job file; of the jobs' own options what is on standard input.
jobs() {
    cat - <<END
[global]
size=450m
direct=1
ioengine=libaio
time_based
runtime=$1
END
}
{ jobs 1500ms; printf '%s\n' '[db]' rw=randread bs=8k iodepth=4 cgroup=db '[backup]' rw=read bs=256k iodepth=8 cgroup=backup; } >caps.fio
{ jobs 1500ms; printf '%s\n' '[db]' rw=randread bs=4k cgroup=db '[backup]' rw=randwrite bs=64k iodepth=16 cgroup=backup; } >writer.fio
{ jobs 3s; printf '%s\n' rw=randread bs=4k iodepth=4 '[db]' cgroup=db '[backup]' cgroup=backup; } >shares.fio
{ jobs 2s; printf '%s\n' rw=randread bs=4k '[db]' cgroup=db cgroup_weight=800 '[backup]' cgroup=backup cgroup_weight=50; } >weights.fio

# verdicts JOB: on its rate, a word for each setting but the first, of the CSV in standard input.
verdicts() { grep "^$1_iops," | awk -F , 'NR > 1 { printf "%s%s", sep, $(NF - 2); sep = " " }'; }
# same PREDICTED MEASURED: none is wrong; what is not sure is not.
same() {
    measured=$2
    for predicted in $1; do
        found=${measured%% *}
        measured=${measured#* }
        [ "$predicted" = "$found" ] || [ "$predicted" = cannot_tell ] || [ "$found" = cannot_tell ] || return 1
    done
}
# order WORKLOAD ARGUMENT...: compares settings in both places.
order() {
    workload=$1
    shift
    iosched compare --workload "$workload.fio" --device sata-7200 --kernel "$kernel" --runs 3 --csv "$@" >predicted.csv || return 1
    iosched compare --workload "$workload.fio" --on /dev/ublkb0 --destroy-data /dev/ublkb0 --runs 3 --csv "$@" >measured.csv || return 1
    wrong=0
    for job in db backup; do
        predicted=$(verdicts $job <predicted.csv) measured=$(verdicts $job <measured.csv)
        echo "guest: $workload: $job: predicted $predicted; measured $measured"
        same "$predicted" "$measured" || wrong=1
    done
    [ $wrong = 0 ] || { grep -E '^(db|backup)_iops' predicted.csv measured.csv; return 1; }
}
model=io.cost.model=ctrl=user/rbps=150000000/rseqiops=5000/rrandiops=150/wbps=150000000/wseqiops=5000/wrandiops=150
model=$model,io.cost.qos=enable=1/ctrl=user/rlat=250000/wlat=250000/min=100/max=100
check "a modelled disk is served" serve ublkb0 model:sata-7200,size=1G --scheduler noop
check "io.max comes in the predicted order" order caps --scheduler none --scheduler none:io.max=backup:rbps=5000000 \
    --scheduler none:io.max=backup:rbps=50000000
grep '^guest: ' out
check "io.max of a writer, too" order writer --scheduler none --scheduler none:io.max=backup:wiops=20
grep '^guest: ' out
check "io.cost comes in the predicted order" order shares --scheduler none --scheduler "none:$model,io.weight=db:800+backup:100" \
    --scheduler "none:$model,io.weight=db:100+backup:800"
grep '^guest: ' out
check "bfq's weights come in the predicted order" order weights --scheduler none --scheduler bfq --scheduler bfq:low_latency=0
grep '^guest: ' out
check "the modelled disk ends" stop
