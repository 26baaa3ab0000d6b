# Counts the instructions that the kernel's controllers need for an I/O that they do not delay.
# init.sh reads this file. In the emulator, an instruction takes one nanosecond. A millisecond of a
# run is therefore a million instructions.
insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 queue_mode=2 irqmode=0 hw_queue_depth=128 gb=1 submit_queues=1
tree=/sys/fs/cgroup
mount -t cgroup2 none $tree
echo +io >$tree/cgroup.subtree_control
mkdir $tree/all
queue=/sys/block/nullb0/queue
disk=$(cat /sys/block/nullb0/dev)
echo none >$queue/scheduler
ios=200000
# reads NAME: measures reads in a cgroup. Each read completes at once, so the CPU never idles.
reads() {
    sh -c "echo \$\$ >$tree/all/cgroup.procs; exec fio --name=a --filename=/dev/nullb0 --direct=1 --ioengine=psync --rw=randread --bs=4k \
        --number_ios=$ios --size=900m --norandommap --minimal" >fio
    taken=$(cut -d ';' -f 9 fio)
    [ -n "$alone" ] || alone=$taken
    echo "guest: $1: $((taken * 1000000 / ios)) instructions per read, $(((taken - alone) * 1000000 / ios)) more than without a controller"
}
# The first run is not measured, because it also does work that Linux does only once.
alone=0
reads "none, the first time" >out
alone=
echo 0 >$queue/wbt_lat_usec
reads none
echo 2000 >$queue/wbt_lat_usec
reads wbt
echo 0 >$queue/wbt_lat_usec
echo "$disk riops=1000000000" >$tree/all/io.max
reads io.max
echo "$disk riops=max" >$tree/all/io.max
echo "$disk ctrl=user model=linear rbps=1000000000000 rseqiops=100000000 rrandiops=100000000 wbps=1000000000000 wseqiops=100000000 wrandiops=100000000" >$tree/io.cost.model
echo "$disk enable=1 ctrl=user min=100.00 max=100.00" >$tree/io.cost.qos
reads io.cost
costs_are_told() { grep -q 'enable=1' $tree/io.cost.qos && [ "$alone" -gt 0 ]; }
check "io.cost is on and the costs are printed" costs_are_told
