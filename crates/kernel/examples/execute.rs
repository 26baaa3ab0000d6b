//! Runs a workload on a device or in a directory and prints its results as JSON.
//! `bench/executor.py` measures this program.
//!
//! ```text
//! cargo run --release -p iosched-kernel --example execute -- WORKLOAD TARGET [--closed] [--speed X] [--seed N] [--seconds S]
//!     [--warm-up S] [--disk-mib N] [--destroy-data TARGET]
//! ```

use std::error::Error;
use std::path::Path;

use iosched_kernel::{BlockDevice, ExecuteOptions, Roots, StateDirectory, Target, consent, execute};
use iosched_workload::{Replay, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(workload), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err("say a workload and a target".into());
    };
    let mut options = ExecuteOptions::default();
    let (mut disk_bytes, mut typed) = (None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument}: a value is missing"));
        let seconds = |text: String| Ok::<u64, Box<dyn Error>>((text.parse::<f64>()? * 1e9) as u64);
        match argument.as_str() {
            "--closed" => options.replay = Replay::Closed,
            "--speed" => options.replay = Replay::Open { speed: value()?.parse()? },
            "--seed" => options.seed = value()?.parse()?,
            "--seconds" => options.run_for_ns = Some(seconds(value()?)?),
            "--warm-up" => options.warm_up_ns = seconds(value()?)?,
            "--disk-mib" => disk_bytes = Some(value()?.parse::<u64>()? << 20),
            "--destroy-data" => typed = Some(value()?),
            other => return Err(format!("{other}: there is no such option").into()),
        }
    }
    let workload = Workload::open(workload)?;
    let roots = Roots::default();
    let mut target = if Path::new(&target).is_dir() {
        Target::directory(&roots, Path::new(&target), &StateDirectory::usual()?)?
    } else {
        let device = BlockDevice::find(&roots, Path::new(&target))?;
        match typed {
            Some(typed) => Target::writable(consent::to_write(&device, Some(Path::new(&typed)))?),
            None => Target::read_only(device),
        }
    };
    if let Some(bytes) = disk_bytes {
        target = target.with_disk_bytes(bytes);
    }
    let result = execute::run(&workload, &target, &options)?;
    for note in &result.notes {
        eprintln!("note: {note}");
    }
    println!("{}", serde_json::to_string(&result)?);
    Ok(())
}
