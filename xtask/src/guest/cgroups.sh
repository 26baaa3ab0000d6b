# Tests of the disk settings of cgroups, on null_blk. init.sh reads this file.
null=/sys/fs/cgroup
attribute_is() { iosched get -n "$1" "$2" | tee value && [ "$(cat value)" = "$3" ]; }
line_is() { grep -qx "$2" "$1" || { cat "$1"; return 1; }; }
state=/tmp/state
export IOSCHED_STATE_DIR=$state

# The disk takes 2 ms for an I/O, and executes 8 I/Os at a time.
insmod /configfs.ko
insmod /bfq.ko
insmod /mq-deadline.ko
check "null_blk is loaded" insmod /null_blk.ko nr_devices=2 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=8 gb=1 submit_queues=1
disk=nullb0
number=$(cat /sys/block/nullb0/dev)
other=$(cat /sys/block/nullb1/dev)

check "without cgroups, the error says how to mount them" fails_with 1 "mount -t cgroup2" iosched get $disk cgroup/db/io.max
check "cgroups are mounted" mount -t cgroup2 none $null
mkdir $null/db $null/backup
check "an unknown cgroup is refused with the list of cgroups" fails_with 2 "the root has backup, db" iosched get $disk cgroup/dbx/io.max
check "the error says how to enable the controller" fails_with 1 "echo +io > $null/cgroup.subtree_control" iosched get $disk cgroup/db/io.max
check "the command in the error enables the controller" sh -c "$(sed -n 's/.*to enable the controller, run: //p' said)"
check "get shows the defaults when io.max has no line for the disk" attribute_is $disk cgroup/db/io.max "rbps=max wbps=max riops=max wiops=max"
check "io.max is set" iosched set $disk cgroup/db/io.max=wbps=1000000/riops=100
check "get shows the new io.max" attribute_is $disk cgroup/db/io.max "rbps=max wbps=1000000 riops=100 wiops=max"
check "io.max of another disk is set" iosched set nullb1 "cgroup/db/io.max=rbps=7000"
check "setting it leaves the first disk unchanged" line_is $null/db/io.max "$number rbps=max wbps=1000000 riops=100 wiops=max"
check "io.max is removed" iosched set $disk cgroup/db/io.max=wbps=max/riops=max
check "removing it leaves the other disk unchanged" is $null/db/io.max "$other rbps=7000 wbps=max riops=max wiops=max"
check "io.weight is refused while io.cost is off" fails_with 1 "iosched set $disk cgroup/io.cost.qos=enable=1" iosched set $disk cgroup/db/io.weight=800
check "io.cost.qos is set" iosched set $disk cgroup/io.cost.qos=enable=1/rpct=95/rlat=5000/min=50/max=150
check "get shows io.cost.qos" sh -c "iosched get $disk | grep -q 'cgroup/io.cost.qos=enable=1 ctrl=user rpct=95.00'"
check "ls shows that io.cost.qos is set" sh -c "iosched ls | grep -q 'set for $disk: .*cgroup/io.cost.qos'"
check "io.weight is set" iosched set $disk cgroup/db/io.weight=800
check "io.weight is set for one disk only" line_is $null/db/io.weight "$number 800"
check "io.weight is set back to the default" iosched set $disk cgroup/db/io.weight=default
check "get shows the default io.weight" attribute_is $disk cgroup/db/io.weight "default 100"
check "io.cost.model is set" iosched set $disk cgroup/io.cost.model=rbps=100000000/rseqiops=500/rrandiops=500
check "io.cost is set back to automatic values" iosched set $disk cgroup/io.cost.qos=enable=0/ctrl=auto cgroup/io.cost.model=ctrl=auto
check "io.bfq.weight is refused under another scheduler" fails_with 1 "iosched set $disk scheduler=bfq" iosched set $disk cgroup/db/io.bfq.weight=300
check "io.bfq.weight is set under bfq" iosched set $disk scheduler=bfq cgroup/db/io.bfq.weight=300
check "io.bfq.weight is set for one disk only" line_is $null/db/io.bfq.weight "$number 300"
check "an invalid io.max is refused with its syntax" fails_with 2 "write any of rbps=N" iosched set $disk cgroup/db/io.max=max=2
check "a controller that the kernel lacks is reported" fails_with 1 "built without this controller" iosched get $disk cgroup/db/io.latency
check "a user without root reads io.max" /host/setpriv --reuid=65534 --clear-groups iosched get $disk cgroup/db/io.max
check "a user without root cannot write io.max" fails_with 1 "only root may write to this file" /host/setpriv --reuid=65534 --clear-groups iosched set $disk cgroup/db/io.max=wbps=1000
iosched set $disk scheduler=none >out
rmdir $null/db $null/backup
echo -io >$null/cgroup.subtree_control

# ---- workloads in cgroups
cat >two.fio <<'END'
[global]
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=8
time_based=1
runtime=1500ms
size=256m
thread=1
[db]
cgroup=db
[backup]
cgroup=backup
END
cost_is() { iosched get -n $disk cgroup/io.cost.qos | tee value && grep -q "enable=$1" value; }
compare() { iosched compare --on /dev/$disk --workload two.fio --csv --runs "$@"; }
nothing_left() {
    ls -d $null/iosched-* 2>/dev/null && return 1
    [ -z "$(find $state/settings $state/cgroups -type f)" ] || { find $state; return 1; }
    is $null/cgroup.subtree_control ""
}
# iops JOB SETTING: prints the mean IOPS of a job from the CSV in the file out.
iops() { grep "^$1_iops," out | sed -n "$2p" | awk -F , '{ printf "%d", $(NF - 8) }'; }
capped() {
    compare 2 --scheduler none --scheduler none:io.max=backup:riops=100 || return 1
    echo "guest: IOPS of db and backup without and with riops=100: $(iops db 1) $(iops backup 1), $(iops db 2) $(iops backup 2)"
    [ "$(iops backup 2)" -le 130 ] && [ "$(iops backup 1)" -gt 300 ] && [ "$(iops db 2)" -gt "$(iops db 1)" ]
}
check "compare --on holds a cgroup to its io.max" capped
grep '^guest: ' out
check "compare --on removes its cgroup and io.max" nothing_left
shared_by_weight() {
    compare 2 --scheduler mq-deadline \
        --scheduler mq-deadline:io.cost.model=rbps=100000000/rseqiops=1000/rrandiops=1000,io.cost.qos=enable=1/min=100/max=100,io.weight=db:800+backup:100 || return 1
    echo "guest: IOPS of db and backup without io.cost, and with weights 800 and 100: $(iops db 1) $(iops backup 1), $(iops db 2) $(iops backup 2)"
    [ "$(iops db 2)" -gt $((3 * $(iops backup 2))) ]
}
check "compare --on shares by io.weight" shared_by_weight
grep '^guest: ' out
check "compare --on removes its cgroups and weights" nothing_left
check "compare --on switches io.cost off again" cost_is 0
check "a cgroup that the workload lacks is refused" fails_with 1 "the workload has no cgroup \"bckup\"; available: backup, db" \
    iosched compare --on /dev/$disk --workload two.fio --scheduler none:io.max=bckup:riops=100
check "a controller that the kernel lacks is reported before the run" fails_with 1 "has no io.latency" \
    iosched compare --on /dev/$disk --workload two.fio --scheduler none:io.latency=db:target=2000
check "a refused comparison changes nothing" nothing_left
check "compare --on refuses an invalid io.max" fails_with 2 "write any of rbps=N" \
    iosched compare --on /dev/$disk --workload two.fio --scheduler none:io.max=db:max=1
is_capped() { grep -q riops=100 $null/iosched-*.run-*.backup/io.max 2>/dev/null; }
interrupted() {
    iosched compare --on /dev/$disk --workload two.fio --runs 9 --scheduler none:io.cost.qos=enable=1,io.max=backup:riops=100 >told 2>&1 &
    run=$!
    eventually is_capped || { cat told; return 1; }
    cost_is 1 || return 1
    kill -"$1" $run
    wait $run
    code=$?
    [ $code -gt 128 ] || { echo "exit code $code"; cat told; return 1; }
    eventually not sh -c "ps | grep -q '[i]osched compare'"
}
check "SIGINT ends a comparison" interrupted INT
check "an interrupted comparison removes its cgroups" nothing_left
killed_in_cgroups() {
    interrupted KILL || return 1
    ls -d $null/iosched-* && iosched restore --dry-run && iosched restore >restored || return 1
    cat restored
    grep -q 'restored: .*cgroup/io.cost.qos enable=1' restored && grep -q "$null/iosched-.*: removed" restored
}
check "restore undoes the changes of a killed comparison" killed_in_cgroups
check "restore removes the cgroups of a killed comparison" nothing_left
