# Tests of disks that iosched ublk serves. init.sh reads this file.
check "without the driver, the error says what to load" fails_with 1 "modprobe ublk_drv" iosched ublk memory:1M
check "the driver is loaded" insmod /ublk_drv.ko
check "a user without root gets an error that says so" fails_with 1 "needs root" /host/setpriv --reuid=65534 --clear-groups iosched ublk memory:1M

# ---- one device
check "a disk is served as a block device" serve ublkb0 memory:64M --control control
sys=/sys/block/ublkb0
check "it has the disk's size" is $sys/size 131072
check "it has the disk's blocks" is $sys/queue/logical_block_size 512
check "it has a volatile write cache" is $sys/queue/write_cache "write back"
check "it supports FUA" is $sys/queue/fua 1
check "it has the largest transfer that the server offers" is $sys/queue/max_hw_sectors_kb 1024
check "it supports discard" is $sys/queue/discard_max_hw_bytes 1073741824
check "it does not rotate" is $sys/queue/rotational 0
check "the kernel does not schedule it" grep -q '\[none\]' $sys/queue/scheduler
check "the kernel does not throttle it" is $sys/queue/wbt_lat_usec 0
check "a device number in use is refused" fails_with 1 "already in use" iosched ublk memory:1M --number 0
# Checks the flag PF_MEMALLOC_NOIO of two threads: the thread that receives the kernel's requests,
# and the thread of the disk.
no_io() {
    for thread in ublk "disk memory"; do
        flags=$(sed -n "s/^[0-9]* ($thread) . \([-0-9]* \)\{5\}\([0-9]*\) .*/\2/p" /proc/"$server"/task/*/stat)
        echo "$thread: $flags"
        [ $((flags & 0x80000)) -ne 0 ] || return 1
    done
}
check "the server's threads allocate memory without I/O" no_io

random data 24
direct() {
    dd if=data of=/dev/ublkb0 bs=1M seek=8 oflag=direct && dd if=/dev/ublkb0 of=read bs=1M skip=8 count=24 iflag=direct &&
        cmp data read
}
check "direct writes are read back" direct
buffered() {
    random data 4 && dd if=data of=/dev/ublkb0 bs=3k seek=1 conv=fsync && drop_caches &&
        dd if=/dev/ublkb0 of=read bs=1k skip=3 count=4096 && cmp data read
}
check "buffered writes are read back" buffered
flushes() { iosched get --at control clients/1/stat | tee stats && grep -qE 'flush ios=[1-9]' stats; }
check "flushes reach the disk" flushes
zeroed() { dd if=/dev/ublkb0 bs=1M skip=8 count=2 iflag=direct 2>/dev/null | cmp -n 2097152 - /dev/zero; }
full() { dd if=data of=/dev/ublkb0 bs=1M seek=8 count=2 oflag=direct; }
discard() { full && /host/blkdiscard -o 8388608 -l 2097152 /dev/ublkb0 && zeroed; }
check "discarded blocks read as zeroes" discard
zero() { full && not zeroed && /host/blkdiscard -z -o 8388608 -l 2097152 /dev/ublkb0 && zeroed; }
check "zeroed blocks read as zeroes" zero

switches() {
    fio --name=verified --filename=/dev/ublkb0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randrw --bsrange=512-64k \
        --blockalign=512 --size=48m --io_size=24m --verify=crc32c --verify_fatal=1 >fio 2>&1 &
    load=$!
    count=0
    while kill -0 $load 2>/dev/null; do
        for elevator in deadline noop anticipatory cfq; do
            iosched set --at control scheduler=$elevator >/dev/null || return 1
            count=$((count + 1))
        done
    done
    wait $load || { cat fio; return 1; }
    echo "guest: $count changes of the elevator under load"
    [ $count -gt 3 ]
}
check "elevators change under verified load" switches
grep '^guest: ' out

# ---- a file system
file_system() {
    /host/mke2fs -q -t ext4 -F /dev/ublkb0 && mount -t ext4 -o discard /dev/ublkb0 /mnt && random /mnt/a 8 && cp /mnt/a /mnt/b && cp -r /bin /mnt &&
        (cd /mnt && sha256sum a b >sums) && rm /mnt/b && fstrim /mnt && cp /mnt/a /mnt/b && umount /mnt &&
        e2fsck -fn /dev/ublkb0 && drop_caches && mount -t ext4 /dev/ublkb0 /mnt && (cd /mnt && sha256sum -c sums)
}
check "a file system is made, used and passes its check" file_system
in_use() { kill "$server" && eventually grep -q "in use: /dev/ublkb0" notes && echo more >/mnt/more && sync && is /mnt/more more; }
check "a signal does not end the server while a device is mounted" in_use
check "the file system is unmounted" umount /mnt
check "the server ends after the unmount" wait $server
check "the device is gone after the server ends" eventually no_devices

# ---- several devices
truncate -s 32M disk.img
check "one disk is served as several devices" serve ublkb2 disk.img --control control \
    --export db,class=be,level=0,weight=800 --export scratch,class=idle --export view,read-only
check "each device has its own class" grep -q '/dev/ublkb1: scratch: idle' told
attribute() { iosched get -n --at control "$1" | tee value && [ "$(cat value)" = "$2" ]; }
check "each device is a client" attribute clients/2/name "scratch ublkb1"
check "each device has its own priority" attribute clients/1/ioprio be/0
check "each device is in its own group" attribute clients/1/group db
check "groups have their own weights" attribute groups/db/weight 800
check "a read-only export is a read-only device" is /sys/block/ublkb2/ro 1
check "a write to the read-only device fails" not dd if=data of=/dev/ublkb2 bs=4k count=1 oflag=direct
shared() { random data 2 && dd if=data of=/dev/ublkb0 bs=64k oflag=direct && dd if=/dev/ublkb1 bs=64k count=32 iflag=direct | cmp - data; }
check "all devices show the same disk" shared
unsynced() { random data 16 && dd if=data of=/dev/ublkb1 bs=1M && stop && cmp -n 16777216 data disk.img; }
check "SIGTERM writes what the kernel has cached" unsynced
check "all devices are gone after SIGTERM" eventually no_devices

small() {
    serve ublkb1 memory:64M --budget-mib 1 --export a --export b || return 1
    fio --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bsrange=4k-1m --size=24m --verify=crc32c --verify_fatal=1 \
        --name=a --filename=/dev/ublkb0 --name=b --filename=/dev/ublkb1 --offset=32m && stop
}
check "the server works with little memory" small

# ---- shares
shares() {
    serve ublkb1 model:sata-7200,size=1G --export db,weight=1000 --export scratch,weight=100 || return 1
    for number in 0 1; do
        fio --name=reader --filename=/dev/ublkb$number --direct=1 --ioengine=libaio --iodepth=8 --rw=randread --bs=4k --runtime=6 \
            --time_based --minimal >fio$number &
    done
    for number in 0 1; do wait_for_fio $number; done
    stop
    echo "guest: reads of a modelled disk at weights 1000 and 100: $(reads 0) and $(reads 1)"
    # The ratio depends on the delays of the guest, so only the order is checked.
    [ "$(reads 0)" -gt "$(reads 1)" ]
}
# Prints the IOPS of the reads, which is the eighth field.
reads() { cut -d ';' -f 8 fio"$1"; }
wait_for_fio() { eventually sh -c "[ -s fio$1 ]"; }
check "the device with more weight gets a larger share" shares
grep '^guest: ' out

# ---- failures
errors() {
    serve ublkb0 fault:bad=1048576+4096:memory:16M || return 1
    dd if=/dev/ublkb0 of=/dev/null bs=4k skip=255 count=1 iflag=direct && not dd if=/dev/ublkb0 of=/dev/null bs=4k skip=256 count=1 iflag=direct &&
        dd if=/dev/ublkb0 of=/dev/null bs=4k skip=257 count=1 iflag=direct && stop
}
check "a failed request returns the error of the backing file" errors
killed() {
    serve ublkb5 memory:16M --number 5 || return 1
    dd if=/dev/zero of=/dev/ublkb5 bs=4k oflag=direct >/dev/null 2>&1 &
    writer=$!
    kill -9 "$server"
    wait $writer
    eventually not ls /dev/ublkb5 2>/dev/null
}
check "the device of a killed server is gone" killed
crashed() {
    serve ublkb0 disk.img && /host/mke2fs -q -t ext4 -F /dev/ublkb0 && mount -t ext4 /dev/ublkb0 /mnt && random /mnt/a 4 && cp /mnt/a kept &&
        sync && random /mnt/b 4 && kill -9 "$server" && eventually not ls /dev/ublkb0 && umount /mnt || return 1
    serve ublkb0 disk.img --number 0 && mount -t ext4 /dev/ublkb0 /mnt && cmp kept /mnt/a && umount /mnt &&
        e2fsck -fn /dev/ublkb0 && stop
}
check "the file system of a killed server passes its check when served again" crashed
taken() {
    serve ublkb6 memory:16M --number 6 || return 1
    fails_with 1 "ublkb6 is already in use" iosched ublk memory:16M --number 5 --export a --export b && eventually not ls /dev/ublkc5 && stop
}
check "if one device cannot be added, none is left" taken
check "the freed device number can be used again" serve ublkb5 memory:16M --number 5
check "the new device can be read" dd if=/dev/ublkb5 of=/dev/null bs=1M iflag=direct
check "the server of the new device ends" stop
check "no device is left at the end" eventually no_devices
