//! The parameters of io.cost for a device, as text.

use std::fmt::Write as _;

use iosched_advise::io_cost::{IoCost, hwdb_path};
use iosched_disk::io_cost::{MODEL_HEADING, PERMANENT};
use iosched_lab::grouped;

/// Returns the lines for the kernel's files, the hwdb entry, and the source of each parameter.
pub fn text(io_cost: &IoCost, model_name: Option<&str>) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{MODEL_HEADING}, after the number of the device:\n  {}", io_cost.model.line());
    let _ = writeln!(text, "for /sys/fs/cgroup/io.cost.qos, after the number of the device:\n  {}", io_cost.qos.line());
    let path = hwdb_path(model_name);
    let _ =
        writeln!(text, "{PERMANENT}, write these lines to {path}, then run systemd-hwdb update && udevadm trigger:");
    io_cost.hwdb(model_name).lines().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    text.push_str("sources of the values:\n");
    for origin in &io_cost.origins {
        let unit = match origin.name {
            "rbps" | "wbps" => "B/s",
            "rlat" | "wlat" => "us",
            _ => "1/s",
        };
        let _ = writeln!(text, "  {:10}{:>15} {unit:3}   {}", origin.name, grouped(origin.value), origin.from);
    }
    text
}
