//! Tests the dashboard and the alerts in the tarball, with a disk that the tarball's command
//! serves.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};
use iosched_testing::prometheus::{Dashboard, Prometheus};

use crate::dist::{done, printed};

/// A disk that one client reads in about a minute. A rate needs several values of the same client.
const DISK: &str = "model:sata-7200,size=8G";
/// Shell commands that read the whole disk again and again.
const LOAD: &str = "while nbdcopy --no-extents --connections=1 \"nbd+unix:///?socket=$1\" null:; do sleep 0.05; done";
/// Programs of the test.
const NEEDED: [&str; 3] = ["prometheus", "promtool", "nbdcopy"];

/// A process that ends when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a disk with the command of an unpacked tarball. A Prometheus process reads the metrics of
/// the disk. This process must have values for every panel and every variable of the tarball's
/// dashboard. `work` is an empty directory.
pub(super) fn tried(unpacked: &Path, work: &Path) -> Result<()> {
    let missing = NEEDED.into_iter().find(|name| printed(Command::new(name).arg("--version")).is_err());
    if let Some(missing) = missing {
        println!("dashboard: not tried, because {missing} is not installed");
        return Ok(());
    }
    let share = unpacked.join("share/iosched");
    for name in ["iosched.rules.yml", "iosched-watch.rules.yml"] {
        printed(Command::new("promtool").args(["check", "rules"]).arg(share.join("prometheus").join(name)))?;
    }
    let read = |name: &str| -> Result<Dashboard> {
        let text = fs::read_to_string(share.join("grafana").join(name)).with_context(|| name.to_owned())?;
        Dashboard::read(&text).map_err(|error| anyhow!("{name}: {error}"))
    };
    read("iosched-kernel-disks.json")?;
    let Dashboard { panels, variables } = read("iosched-served-disks.json")?;
    ensure!(!panels.is_empty() && !variables.is_empty(), "the dashboard has no panels or no variables");

    let socket = work.join("disk.sock");
    let mut serve = Command::new(unpacked.join("bin/iosched"));
    serve.args(["serve", DISK, "--name=disk", "--metrics=127.0.0.1:0", "--unix"]).arg(&socket);
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = Running(serve.spawn().with_context(|| unpacked.display().to_string())?);
    let mut messages = BufReader::new(server.0.stderr.take().context("standard error is a pipe")?).lines();
    let metrics: SocketAddr = messages
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("metrics: http://")?.1.strip_suffix("/metrics")?.parse().ok())
        .context("iosched serve names no address of its metrics")?;
    // The server must never wait for a reader of its messages.
    std::thread::spawn(move || messages.for_each(drop));
    let prometheus = Prometheus::start(work, &[("disks", metrics)])?;
    let mut load = Command::new("sh");
    load.args(["-c", LOAD, "sh"]).arg(&socket).stdin(Stdio::null()).stderr(Stdio::null());
    // The last client ends when the server ends.
    let _load = Running(load.spawn()?);

    let count = panels.len();
    for (title, query) in panels {
        prometheus.query_of_a_panel(&query).map_err(|error| anyhow!("the panel {title} shows nothing: {error}"))?;
    }
    for variable in &variables {
        prometheus.values_of_a_variable(variable).map_err(|error| anyhow!("no values of {error}"))?;
    }
    println!("dashboard: {count} queries and {} variables have values for a served disk", variables.len());
    println!("alerts: promtool finds no fault");
    // End the processes that write to the directory before the caller removes it.
    drop(prometheus);
    done(Command::new("kill").arg(server.0.id().to_string()))?;
    ensure!(server.0.wait()?.success(), "iosched serve does not end cleanly");
    Ok(())
}
