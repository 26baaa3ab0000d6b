# Checks that settings have the predicted order, with similar ratios. The same job files run in
# simulation, and under the kernel's schedulers and controllers on null_blk. In the emulator, an
# instruction takes one nanosecond, so the load of the host changes no result. init.sh reads this
# file.
for module in bfq mq-deadline kyber-iosched; do
    load $module
done
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup

# A disk that executes four commands at a time, in 4 ms each, and its model.
null_disk four 512 4000000 4
cat >four.toml <<END
kind = "server"
[server]
capacity_sectors = 1048576
depth = 4
max_hw_sectors_kb = $(cat /sys/block/$disk/queue/max_hw_sectors_kb)
write_cache = false
servers = 4
flush_ns = 0
[server.read]
transit_ns = 0
service_ns = 4000000
bytes_per_second = 1000000000000
END

# The simulation follows the rules of the running kernel.
kernel=$(uname -r | sed 's/[^0-9.].*//')
runs=4
# jobs NAME LINE...: writes a job file with these lines and common options.
jobs() {
    name=$1
    shift
    printf '%s\n' '[global]' size=200m direct=1 ioengine=libaio time_based runtime=2s bs=4k "$@" >"$name.fio"
}
# All jobs together have at most eight requests, because a scheduler has eight tags on this disk.
# The simulation does not model the order in which Linux wakes processes that wait for a tag.
jobs caps rw=randread iodepth=4 '[db]' cgroup=db '[backup]' cgroup=backup
jobs writer '[db]' rw=randread cgroup=db '[backup]' rw=randwrite iodepth=7 cgroup=backup
jobs classes rw=randread '[db]' prioclass=2 iodepth=6 '[backup]' prioclass=3 iodepth=2
jobs shares rw=randread iodepth=4 '[db]' cgroup=db '[backup]' cgroup=backup
jobs weights rw=randread iodepth=4 '[db]' cgroup=db cgroup_weight=800 '[backup]' cgroup=backup cgroup_weight=50

# ratios JOB: reads a CSV from standard input. For each setting except the first, prints the ratio
# of the job's rate to the rate under the first setting, the interval of the ratio, and a word. The
# word is `more` for an interval above 1.1, `less` for an interval below 0.9, `same` for an interval
# between 0.8 and 1.25, and `unsure` for all others. A setting can contain commas, so the script
# counts columns from the end.
ratios() {
    awk -F , -v job="$1_iops" '
        $1 != job { next }
        !mean { mean = $(NF - 8); next }
        {
            low = 1 + $(NF - 4) / mean
            high = 1 + $(NF - 3) / mean
            word = low > 1.1 ? "more" : high < 0.9 ? "less" : low > 0.8 && high < 1.25 ? "same" : "unsure"
            printf "%s%s %.2f (%.2f to %.2f)", separator, word, 1 + $(NF - 5) / mean, low, high
            separator = "; "
        }'
}
words() { tr ';' '\n' | awk '{ print $1 }'; }
# agree PREDICTED MEASURED: checks that the measured words are the predicted words. The measured
# word `unsure` agrees with every word, but at least one word must be the same in both lists.
agree() {
    sure=0
    wanted=$1
    set -- $2
    for word in $wanted; do
        [ "$word" = "$1" ] && sure=1
        [ "$word" = "$1" ] || [ "$1" = unsure ] || return 1
        shift
    done
    [ $sure = 1 ] && [ $# = 0 ]
}
# order WORKLOAD ARGUMENT...: compares settings in simulation and on the disk.
order() {
    workload=$1
    shift
    iosched compare --workload "$workload.fio" --device four.toml --kernel "$kernel" --no-fairness --runs $runs --csv "$@" >predicted.csv || return 1
    iosched compare --workload "$workload.fio" --on /dev/$disk --destroy-data /dev/$disk --runs $runs --csv "$@" >measured.csv || return 1
    wrong=0
    for job in db backup; do
        predicted=$(ratios $job <predicted.csv) measured=$(ratios $job <measured.csv)
        echo "guest: $workload: $job: predicted $predicted; measured $measured"
        agree "$(echo "$predicted" | words)" "$(echo "$measured" | words)" || wrong=1
    done
    [ $wrong = 0 ] || { grep -E '^(db|backup)_iops' predicted.csv measured.csv; return 1; }
}
# ordered NAME ARGUMENT...: checks an order, and prints its ratios.
ordered() {
    check "$@"
    grep '^guest: ' out
}
model=io.cost.model=ctrl=user/rbps=1000000000000/rseqiops=1000/rrandiops=1000/wbps=1000000000000/wseqiops=1000/wrandiops=1000
model=$model,io.cost.qos=enable=1/ctrl=user/rlat=250000/wlat=250000/min=100/max=100
d=mq-deadline
ordered "io.max comes in the predicted order" order caps --scheduler $d --scheduler $d:io.max=backup:rbps=400000 \
    --scheduler $d:io.max=backup:riops=300
ordered "io.max of a writer comes in the predicted order" order writer --scheduler $d --scheduler $d:io.max=backup:wiops=50
ordered "mq-deadline's classes come in the predicted order" order classes --scheduler kyber --scheduler $d
ordered "io.cost comes in the predicted order" order shares --scheduler $d --scheduler "$d:$model,io.weight=db:800+backup:100" \
    --scheduler "$d:$model,io.weight=db:100+backup:800"
ordered "bfq's weights come in the predicted order" order weights --scheduler $d --scheduler bfq:low_latency=0
