#!/bin/busybox sh
# The first and only program of a virtual machine that has one partition of a disk. The program
# makes a file system there. Then it writes and verifies files until it receives the order to end.
# $part and $again come from the kernel's command line. The script gives the full path of a program
# of the host if busybox has a program of the same name.
/bin/busybox --install -s /bin
export PATH=/host:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
mount -t tmpfs tmp /tmp
mkdir /dev/shm
cd /tmp || exit
say() { echo "machine: $*"; }
# must NAME COMMAND...: runs a command. If the command fails, the machine prints a message and stops.
must() {
    name=$1
    shift
    "$@" >out 2>&1 && return
    say "FAILED: $name: $(tail -n 5 out | tr '\n' ' ')"
    sleep 1
    poweroff -f
    sleep 100
}

# The emulator's firmware has left an incomplete line.
echo
say begins
must "the driver" insmod /virtio_blk.ko
disk=/dev/vda$part
random() { dd if=/dev/urandom of="$1" bs=1M count=2; }
keep() { random /mnt/kept && sha256sum /mnt/kept >/mnt/sum && sync; }
if [ -z "$again" ]; then
    must "a new file system" /host/mke2fs -q -t ext4 -F "$disk"
fi
must "mounting" mount -t ext4 "$disk" /mnt
if [ -z "$again" ]; then
    must "files to keep" keep
fi
must "what was kept" sha256sum -c /mnt/sum
say kept

# Any line of input is the order to end.
(read -r _ </dev/ttyS0 && touch /tmp/end) &
verify() {
    rm -f /mnt/verified
    fio --name=verified --directory=/mnt --filename=verified --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
        --size=6m --bsrange=4k-64k --verify=crc32c --verify_fatal=1 --randseed="$count"
}
count=0
until [ -e /tmp/end ]; do
    must "fio" verify
    count=$((count + 1))
    say verified $count
done
must "what was kept" sha256sum -c /mnt/sum
must "unmounting" umount /mnt
must "a whole file system" e2fsck -fn "$disk"
must "no error in the kernel log" sh -c "! dmesg | grep -E 'BUG:|WARNING:|Oops|I/O error|blocked for more'"
say whole
# The console needs time to write the last lines.
sleep 1
poweroff -f
