//! Lasting forms of a setting's controllers: drop-ins of systemd for cgroups, and commands in a
//! udev rule for io.cost. Also returns commands that undo both. All results are text. This module
//! writes no files.

use iosched::Setting;
use iosched::controllers::{self, NamedWrite};

use super::units::{DropIn, Property, properties, reset_command, set_command, unit_of};

const QOS: &str = "io.cost.qos";
const MODEL: &str = "io.cost.model";
/// Directory of the root cgroup's files.
const ROOT: &str = "/sys/fs/cgroup";
/// Names of a device in the files of controllers.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Device file, such as `/dev/sda`.
    pub node: &'a str,
    /// Device number, such as `8:0`, or a shell expression with this value.
    pub number: &'a str,
}

/// Values of a setting for files of controllers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OfControllers {
    writes: Vec<NamedWrite>,
}

impl OfControllers {
    /// Returns the values in `setting` for files of controllers.
    #[must_use]
    pub fn of(setting: &Setting) -> Self {
        let assignment = setting.attributes().iter().filter(|assignment| controllers::is_file(assignment.name()));
        let writes = assignment
            .filter_map(|assignment| NamedWrite::parse(assignment.name(), &assignment.text()).ok())
            .flatten()
            .collect();
        Self { writes }
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    fn of_device(&self) -> impl Iterator<Item = &NamedWrite> {
        self.writes.iter().filter(|write| write.is_of_device())
    }

    /// Returns the properties of each unit, in the order of the setting. Omits values for which
    /// systemd has no property.
    fn properties(&self, node: &str) -> Vec<(String, Vec<Property>)> {
        let mut units: Vec<(String, Vec<Property>)> = Vec::new();
        for write in self.writes.iter().filter(|write| !write.is_of_device()) {
            let unit = unit_of(&write.cgroup);
            let new = properties(&write.file, &write.text, node).flatten();
            match units.iter_mut().find(|known| known.0 == unit) {
                Some((_, known)) => known.extend(new),
                None => units.push((unit, new.collect())),
            }
        }
        units.retain(|(_, properties)| !properties.is_empty());
        units
    }

    /// Returns the drop-ins that set the cgroups' files at every start of the machine.
    #[must_use]
    pub fn drop_ins(&self, device: Named<'_>) -> Vec<DropIn> {
        self.properties(device.node).iter().map(|(unit, properties)| DropIn::of(unit, properties)).collect()
    }

    /// Returns commands for a root shell that set the values until the next start of the machine.
    /// Names are in double quotes, because they may be shell variables.
    #[must_use]
    pub fn commands(&self, device: Named<'_>) -> Vec<String> {
        let of_device = self.of_device().map(|write| echo(device.number, &write.text, &write.file));
        let units = self.properties(device.node);
        of_device.chain(units.iter().map(|(unit, properties)| set_command(unit, properties))).collect()
    }

    /// Returns the parts of the udev rule that set the values of the device.
    #[must_use]
    pub fn rule_parts(&self) -> String {
        let run =
            |write: &NamedWrite| format!(", RUN+=\"/bin/sh -c 'echo %M:%m {} > {ROOT}/{}'\"", write.text, write.file);
        self.of_device().map(run).collect()
    }

    /// Returns commands that undo the values and remove the drop-ins.
    #[must_use]
    pub fn undo(&self, device: Named<'_>) -> Vec<String> {
        let has = |file: &str| self.writes.iter().any(|write| write.file == file);
        let mut commands = Vec::new();
        if has(QOS) {
            commands.push(echo(device.number, "enable=0 ctrl=auto", QOS));
        }
        if has(MODEL) {
            commands.push(echo(device.number, "ctrl=auto", MODEL));
        }
        let units = self.properties(device.node);
        commands.extend(units.iter().map(|(unit, properties)| reset_command(unit, properties)));
        commands.extend(units.iter().map(|(unit, _)| format!("rm -f {}", DropIn::of(unit, &[]).path)));
        if !units.is_empty() {
            commands.push("systemctl daemon-reload".to_owned());
        }
        commands
    }
}

fn echo(number: &str, text: &str, file: &str) -> String {
    format!("echo \"{number} {text}\" > {ROOT}/{file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDA: Named<'_> = Named { node: "/dev/sda", number: "8:0" };

    fn of(setting: &str) -> OfControllers {
        OfControllers::of(&setting.parse().unwrap())
    }

    #[test]
    fn each_cgroup_gets_a_drop_in_for_its_unit() {
        let drop_ins = of(
            "none:io.max=backup:wbps=50000000/wiops=100+batch.slice:rbps=max,io.latency=db:target=2000,io.weight=db:800",
        );
        let found: Vec<_> = drop_ins.drop_ins(SDA).into_iter().map(|drop_in| (drop_in.path, drop_in.text)).collect();
        let expected = [
            ("backup.service", "[Service]\nIOWriteBandwidthMax=/dev/sda 50000000\nIOWriteIOPSMax=/dev/sda 100\n"),
            ("batch.slice", "[Slice]\nIOReadBandwidthMax=/dev/sda infinity\n"),
            ("db.service", "[Service]\nIODeviceLatencyTargetSec=/dev/sda 2000us\nIOWeight=800\n"),
        ];
        let path = |unit: &str| format!("/etc/systemd/system/{unit}.d/50-iosched.conf");
        assert_eq!(found, expected.map(|(unit, text)| (path(unit), text.to_owned())));
        assert_eq!(
            drop_ins.commands(SDA)[2],
            "systemctl set-property --runtime db.service \"IODeviceLatencyTargetSec=/dev/sda 2000us\" \"IOWeight=800\""
        );
        let undo = drop_ins.undo(SDA);
        assert!(
            undo.contains(
                &"systemctl set-property --runtime db.service IODeviceLatencyTargetSec= IOWeight=".to_owned()
            )
        );
        assert_eq!(undo.last().unwrap(), "systemctl daemon-reload");
        assert!(undo.contains(&format!("rm -f {}", path("batch.slice"))));
        let of_bfq = of("bfq:io.bfq.weight=db:200,io.prio.class=backup:idle").drop_ins(SDA);
        assert_eq!(of_bfq.iter().map(|drop_in| &*drop_in.text).collect::<Vec<_>>(), ["[Service]\nIOWeight=1200\n"]);
        assert_eq!(drop_ins.rule_parts(), "");
    }

    #[test]
    fn io_cost_is_set_by_the_udev_rule() {
        let drop_ins = of(
            "none:io.cost.model=rbps=5/rseqiops=4/rrandiops=3/wbps=5/wseqiops=4/wrandiops=3,io.cost.qos=enable=1/rpct=95",
        );
        assert!(drop_ins.drop_ins(SDA).is_empty() && !drop_ins.is_empty());
        assert_eq!(drop_ins.commands(SDA)[1], "echo \"8:0 enable=1 rpct=95\" > /sys/fs/cgroup/io.cost.qos");
        assert_eq!(
            drop_ins.undo(SDA),
            [
                "echo \"8:0 enable=0 ctrl=auto\" > /sys/fs/cgroup/io.cost.qos",
                "echo \"8:0 ctrl=auto\" > /sys/fs/cgroup/io.cost.model"
            ]
        );
        assert!(
            drop_ins
                .rule_parts()
                .ends_with(", RUN+=\"/bin/sh -c 'echo %M:%m enable=1 rpct=95 > /sys/fs/cgroup/io.cost.qos'\"")
        );
    }

    #[test]
    fn queue_attributes_need_no_drop_ins() {
        assert!(of("mq-deadline:wbt_lat_usec=2000,fifo_batch=4").is_empty());
    }
}
