# Checks that a write to wbt_lat_usec drains the device first, and that writers that slept in wbt
# then continue. init.sh reads this file.

# A disk whose commands take five seconds.
null_disk slow 2048 5000000000 64
queue=/sys/block/$disk/queue
[ ! -e $queue/scheduler ] || echo none >$queue/scheduler

asleep_in_wbt() { cat /proc/[0-9]*/stack 2>/dev/null | grep -q wbt_wait; }
begin_to_write() {
    echo 2000 >$queue/wbt_lat_usec
    dd if=/dev/zero of=/dev/$disk bs=1M count=40 conv=fsync 2>/dev/null &
    writer=$!
    eventually asleep_in_wbt
}
# Prints the number of completed writes, and the number of commands in flight.
counts() { awk '{ print $5, $9 }' /sys/block/$disk/stat; }
# A write that drains the device waits for the commands in flight, and for at least one command of a
# writer that slept.
switch_off() {
    before=$(counts)
    echo 0 >$queue/wbt_lat_usec && is $queue/wbt_lat_usec 0 || return 1
    after=$(counts)
    echo "guest: wbt: completed writes and commands in flight: $before before, $after after"
    set -- $before $after
    [ "$2" -gt 0 ] || return 1
    [ "$3" -gt $(($1 + $2)) ]
}
is_written() { ! kill -0 $writer 2>/dev/null; }

check "a writer sleeps in wbt" begin_to_write
check "a write to wbt_lat_usec waits for sleeping writers" switch_off
grep '^guest: ' out
check "writers that slept in wbt continue" eventually is_written
