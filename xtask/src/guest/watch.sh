# Checks that iosched watch finds cgroups, I/O priority classes and limits. init.sh reads this file.
# Linux 6.1 lacks the event block_io_start and large sub-buffers.
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup
[ -d /sys/kernel/tracing/instances ] || mount -t tracefs none /sys/kernel/tracing

# A disk that executes four commands at a time, in 2 ms each.
null_disk seen 64 2000000 4
number=$(cat /sys/block/$disk/dev)
echo +io >/sys/fs/cgroup/cgroup.subtree_control
readers=
# reader GROUP CLASS: starts a process that reads in a cgroup until the process is killed.
reader() {
    mkdir /sys/fs/cgroup/"$1"
    sh -c "echo 0 >/sys/fs/cgroup/$1/cgroup.procs; exec /host/fio --name=$1 --filename=/dev/$disk --rw=randread \
        --bs=4k --direct=1 --ioengine=libaio --iodepth=2 --prioclass=$2 --prio=4 --time_based --runtime=120" \
        >/dev/null 2>&1 &
    readers="$readers $!"
}
reader watched-db 2
reader watched-backup 3
reads() { [ "$(awk '{ print $1 }' /sys/block/$disk/stat)" -gt 100 ]; }
eventually reads

watch() { iosched watch $disk -i 3 -n 1 --json >seen.json 2>notes || { cat notes; return 1; }; }
has() { grep -q "$1" seen.json || { cut -c 1-1500 seen.json; cat notes; return 1; }; }
check "watch observes a disk" watch
check "watch finds the cgroups of requests" has '"cgroup":"watched-db","class":"be"'
check "watch finds the class of requests" has '"cgroup":"watched-backup","class":"idle"'
check "watch reads io.stat" has '"io_stat":\[{"cgroup":"watched-backup"'
check "watch loses no events" has '"lost_events":0'

# goals BACKUP DB: writes a plan with a goal for each cgroup.
goals() {
    goal() {
        echo "{\"name\":\"$1\",\"target\":\"watched-$1\",\"cgroup\":\"watched-$1\",\"goals\":[{\"wanted\":{\"goal\":\"$2\",
        \"hard\":true},\"predicted\":{\"value\":1,\"from\":1,\"to\":1},\"outcome\":\"met\"}]}"
    }
    echo "{\"version\":\"0\",\"device\":\"/dev/$disk\",\"profile\":\"p\",\"setting\":{\"name\":\"present\",
        \"attributes\":[[\"io.max\",\"watched-backup:riops=50\"]]},\"units\":[$(goal backup "$1"),$(goal db "$2")]}" >plan.json
}
goals "iops >= 200" "p50(read) < 1 s"
check_plan() { iosched plan plan.json --check --for 4; }
check "plan --check finds a limit that is not set" fails_with 1 "differs from the plan: cgroup/watched-backup/io.max" check_plan
echo "$number riops=50" >/sys/fs/cgroup/watched-backup/io.max
sleep 1
check "plan --check names the limit that a unit reaches" fails_with 1 "io.max of watched-backup limits the unit (riops=50" check_plan
goals "limit 60 IOPS" "p50(read) < 1 s"
check "plan --check passes when the plan is applied" check_plan
kill $readers
wait $readers
check "no trace instance is left" not ls /sys/kernel/tracing/instances/iosched-*
