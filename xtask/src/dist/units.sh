#!/bin/sh
# Tests the statements of docs/howto/services.md under a running systemd. The script prints its last
# line only if all statements are true.
exec >/said 2>&1
set -e
trap 'journalctl --no-pager --boot --unit "iosched-*"' EXIT

refused() { if "$@"; then echo "this must fail, but it succeeds: $*"; exit 1; fi; }
is() { [ "$(systemctl is-active "$1")" = "$2" ] || { echo "$1 is not $2"; exit 1; }; }
# size EXPORT: prints the size of an export, as a client sees it.
size() { timeout 30 nbdinfo --size "nbd+unix:///$1?socket=/run/iosched/db.sock"; }
# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
    tries=$1
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "this does not succeed in time: $*"; exit 1; }
        sleep 1
    done
}
said() { journalctl --no-pager --boot --unit iosched-serve@db | grep "$1"; }

install -d /etc/iosched /srv/db
runuser -u iosched -- truncate --size 64M /var/lib/iosched-serve/db.img
cp /usr/share/doc/iosched/examples/db.conf /etc/iosched/db.conf

# The first client starts the server.
systemctl enable --now iosched-serve@db.socket
is iosched-serve@db.service inactive
[ "$(size)" = 67108864 ]
is iosched-serve@db.service active
echo "units: a client starts the server"

# Only members of the group can connect.
refused runuser -u nobody -- nbdinfo --size "nbd+unix:///?socket=/run/iosched/db.sock"
iosched ls live:db | grep cfq
[ "$(iosched set live:db slice_idle=8)" = slice_idle=8 ]

# A reload reads the exports again. Without exports, a reload fails.
refused systemctl reload iosched-serve@db
printf '[export.a]\n' >/etc/iosched/db.exports
sed -i 's,^OPTIONS=.*,& --exports /etc/iosched/db.exports,' /etc/iosched/db.conf
systemctl restart iosched-serve@db
printf '[export.a]\nweight = 300\n' >/etc/iosched/db.exports
systemctl reload iosched-serve@db
within 10 said 'weight 300'
echo "units: exports are read again"

# After a server is killed, the next client starts it again.
systemctl kill --signal KILL iosched-serve@db.service
within 10 size a
is iosched-serve@db.service active

# A drop-in gives one service its device, and does not change other services. The test uses
# /dev/null, which every container has.
place=/etc/systemd/system/iosched-serve@db.service.d
install -d $place
sed 's,/dev/disk/by-id/NAME,/dev/null,' /usr/share/doc/iosched/examples/block-device.conf >$place/block-device.conf
systemctl daemon-reload
systemctl restart iosched-serve@db
[ "$(systemctl show --property=SupplementaryGroups --value iosched-serve@db)" = disk ]
[ -z "$(systemctl show --property=SupplementaryGroups --value iosched-serve@other)" ]
within 10 size a
rm -r $place
systemctl daemon-reload
echo "units: a drop-in names the device of a disk"

systemctl stop iosched-serve@db.socket iosched-serve@db
is iosched-serve@db.service inactive
[ ! -e /run/iosched/db.sock ]
echo "units: a server ends"

truncate --size 64M /var/lib/iosched-mount/db.img
sed -i 's,^OPTIONS=.*,OPTIONS=--scheduler bfq,; s,^BACKING=.*,BACKING=/var/lib/iosched-mount/db.img,' /etc/iosched/db.conf
systemctl start iosched-mount@db
[ "$(stat --format %s /srv/db/db)" = 67108864 ]
grep bfq /srv/db/block/db/queue/scheduler
printf kept | dd of=/srv/db/db bs=4 conv=notrunc,fsync
systemctl stop iosched-mount@db
[ ! -e /srv/db/db ]
[ "$(head -c 4 /var/lib/iosched-mount/db.img)" = kept ]
echo "units: a disk is mounted and unmounted"

# The removal of the package leaves files that the package did not install. The test removes these
# files.
systemctl disable iosched-serve@db.socket
rm -r /etc/iosched /srv/db
echo "units: done"
