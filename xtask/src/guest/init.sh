#!/bin/busybox sh
# The first and only program of the guest. It tests the command iosched, and prints a line for each
# check. The shell of busybox prefers its own programs. Scripts therefore give the full path of a
# program of the host if busybox has a program of the same name.
/bin/busybox --install -s /bin
export PATH=/host:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
# Messages of the kernel go to another console.
exec >/dev/ttyS0 2>&1
mount -t tmpfs tmp /tmp
mkdir /dev/shm
cd /tmp || exit

# check NAME COMMAND...: prints whether the command succeeds.
check() {
    name=$1
    shift
    if "$@" >out 2>&1; then
        echo "guest: passed: $name"
    else
        echo "guest: FAILED: $name: $(tail -n 5 out | tr '\n' ' ')"
    fi
}

# eventually COMMAND...: repeats the command until it succeeds, for about 30 s.
eventually() {
    for _ in $(seq 300); do
        "$@" && return
        sleep 0.1
    done
    return 1
}

# is FILE VALUE: checks the contents of a file.
is() { [ "$(cat "$1")" = "$2" ] || { echo "$1 is $(cat "$1")"; return 1; }; }
# fails_with CODE WORDS COMMAND...: checks the exit status and the message of a command.
fails_with() {
    wanted=$1 words=$2
    shift 2
    "$@" >said 2>&1
    code=$?
    cat said
    [ $code -eq "$wanted" ] && grep -q "$words" said
}
not() { ! "$@"; }
ended() { ! kill -0 "$server" 2>/dev/null; }
# serve DEVICE ARGUMENT...: starts a server of a disk, and waits for the device.
serve() {
    device=$1
    shift
    iosched ublk "$@" >told 2>notes &
    server=$!
    eventually grep -q "^/dev/$device: " told || { cat notes; return 1; }
}
# stop: ends the server in an orderly way.
stop() {
    kill "$server"
    wait "$server" || { echo "exit code $?"; cat notes; return 1; }
}
# load MODULE ARGUMENT...: loads a driver, unless it is loaded or built in.
load() {
    module=$1
    shift
    [ -d /sys/module/$module ] || [ ! -e /$module.ko ] || insmod /$module.ko "$@"
}
# null_disk NAME SIZE_MB COMMAND_NS DEPTH: makes a null_blk disk. A command takes COMMAND_NS.
# At most DEPTH commands run at a time. Sets `disk` to the name of the device.
null_disk() {
    load configfs
    load null_blk nr_devices=0
    [ -d /sys/kernel/config/nullb ] || mount -t configfs config /sys/kernel/config
    null=/sys/kernel/config/nullb/$1
    mkdir $null
    echo $2 >$null/size
    echo 2 >$null/irqmode
    echo $3 >$null/completion_nsec
    echo $4 >$null/hw_queue_depth
    echo 1 >$null/power
    # Older kernels ignore the name.
    disk=$1
    [ -d /sys/block/$disk ] || disk=nullb$(cat $null/index)
}
no_devices() { ! ls /dev | grep -q 'ublk[bc]'; }
random() { dd if=/dev/urandom of="$1" bs=1M count="$2" 2>/dev/null; }
drop_caches() { echo 3 >/proc/sys/vm/drop_caches; }

echo "guest: Linux $(uname -r), $(nproc) CPUs"

# The kernel's command line names the parts to run.
parts=$(sed -n 's/.*parts=\([a-z,]*\).*/\1/p' /proc/cmdline | tr , ' ')
for part in $parts; do
    . "/$part.sh"
done

check "the kernel logs no bug, warning or hung task" not sh -c "dmesg | grep -E 'BUG:|WARNING:|Oops|blocked for more'"

echo "guest: end"
# The console needs time to write the last lines.
sleep 1
poweroff -f
