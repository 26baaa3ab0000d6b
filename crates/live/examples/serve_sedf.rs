//! A program that serves a file by NBD under a scheduler that the program defines: `cargo run -p
//! iosched-live --example serve_sedf disk.img disk.sock`.

#[path = "../../iosched/examples/sedf.rs"]
#[allow(dead_code, reason = "the elevator of that example, without its program")]
mod sedf;

use std::os::unix::net::UnixListener;

use iosched::{Registry, Setting};
use iosched_live::nbd::Exports;
use iosched_live::reactor::nbd::{Config, Limits, Listener};
use iosched_live::reactor::{self, ServeOptions, Served};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn serve(file: &str, socket: &str) -> Result<Served> {
    let mut registry = Registry::linux();
    registry.add(sedf::SEDF)?;
    let setting = Setting::parse("sedf:read_expire=20", &registry)?;
    let options = ServeOptions { registry, depth: Some(1), ..ServeOptions::new("disk", file.parse()?, setting) };
    let listeners = vec![Listener::Unix(UnixListener::bind(socket)?)];
    let nbd = Config {
        listeners,
        exports: Exports::default().or_default("disk"),
        tls: None,
        plain: true,
        limits: Limits::default(),
    };
    Ok(reactor::start(&options, Some(nbd))?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(socket)) = (arguments.next(), arguments.next()) else {
        return Err("write it like serve_sedf disk.img disk.sock".into());
    };
    let served = serve(&file, &socket)?;
    println!("{}: nbd+unix:///?socket={socket}", served.about);
    println!("{}", served.handle.control(|disk, _| disk.attribute("scheduler"))??);

    // Serve until the end of standard input.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    served.handle.stop();
    let flushed = served.wait().flushed;
    std::fs::remove_file(&socket)?;
    Ok(flushed?)
}

#[test]
fn disk_is_served_under_sedf_and_switches_back_to_it() {
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| here.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("disk.img"), [0; 1 << 16]).unwrap();
    let served = serve(&path("disk.img"), &path("disk.sock")).unwrap();
    let disk = iosched_live::control::Forest::new(vec![served.handle.clone()]);
    assert_eq!(disk.read("disk/queue/iosched/read_expire").unwrap().trim(), "20", "in force from the first request on");
    disk.write("disk/queue/scheduler", "cfq".to_owned()).unwrap();
    disk.write("disk/queue/scheduler", "sedf".to_owned()).unwrap();
    assert!(
        disk.read("disk/queue/scheduler").unwrap().contains("cfq ")
            && disk.write("disk/queue/scheduler", "nop".to_owned()).is_err()
    );
    served.handle.stop();
    assert!(served.wait().flushed.is_ok());
}
