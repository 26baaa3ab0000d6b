//! Output of results as text, JSON, CSV and Markdown.

pub mod advice;
pub mod calibration;
mod closing;
mod columns;
pub mod device;
pub mod disks;
pub mod doctor;
mod fold;
mod grid;
pub mod here;
pub mod io_cost;
pub mod job;
mod machine;
pub mod measured;
mod overview;
pub mod plan;
pub mod reproduction;
pub mod restoration;
pub mod schedulers;
#[cfg(feature = "screen")]
pub mod screen;
pub mod tables;
mod text;
pub mod trace;
pub mod tuning;
pub mod validation;
pub mod watch;

use std::path::{Path, PathBuf};

use iosched_lab::request::quoted;
use iosched_lab::{Decimals, DeviceRecord, Doubt, FigureResults, Header, OnDevice, Overview, Records, Results};

pub use fold::{answer, page};
pub use grid::{Column, Look, Tone, left, right, set, size};
pub use machine::{csv, json, markdown};
pub use text::text;

/// Returns the suggested next command for a file of records: the report of these records.
pub fn report_command(records: &Path) -> String {
    let [from, to] = [records.to_owned(), records.with_extension("html")].map(|path| quoted(&path.to_string_lossy()));
    format!("iosched report {from} -o {to}")
}

/// The content of the output.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// The plan.
    pub header: &'a Header,
    /// Results of each device.
    pub sheets: Vec<Sheet<'a>>,
    /// The common view of several devices. `None` for one device.
    pub overview: Option<Overview>,
    /// Duration of the comparison, s. Not shown if unknown.
    pub elapsed_s: Option<f64>,
    /// Path of the records, if they are stored.
    pub records: Option<PathBuf>,
    /// The next command to suggest.
    pub next: Option<String>,
    /// Sentence which says that the workload or the device is a sample, and how to choose another
    /// one.
    pub input: Option<String>,
}

/// The results of one device.
#[derive(Clone, Debug)]
pub struct Sheet<'a> {
    /// The plan.
    pub header: &'a Header,
    /// The device.
    pub device: &'a DeviceRecord,
    /// Results on the device.
    pub results: Results,
    /// Doubts about this device. Doubts about all devices are in the overview.
    pub doubts: Vec<Doubt>,
    /// Device time of the runs that only measure fairness, ns.
    pub alone_ns: u64,
}

impl<'a> Page<'a> {
    /// Creates the page of all records.
    pub fn of(gathered: &'a Records, elapsed_s: Option<f64>, records: Option<PathBuf>, next: Option<String>) -> Self {
        let header = &gathered.header;
        let results: Vec<Results> = gathered.devices().map(Results::of).collect();
        let overview = (results.len() > 1).then(|| Overview::of(gathered, &results));
        let sheet = |(device, (results, alone_ns)): (&'a DeviceRecord, (Results, u64))| {
            let doubts = match &overview {
                Some(overview) => overview.own_doubts(&results).cloned().collect(),
                None => results.doubts.clone(),
            };
            Sheet { header, device, results, doubts, alone_ns }
        };
        let results = results.into_iter().zip(gathered.devices().map(OnDevice::alone_ns));
        let sheets = header.devices.iter().zip(results).map(sheet).collect();
        Self { header, sheets, overview, elapsed_s, records, next, input: None }
    }

    /// Returns all doubts, the most important first. With
    /// several devices, each doubt names its device.
    fn ranked_doubts(&self) -> Vec<String> {
        let shared = self.overview.iter().flat_map(|overview| &overview.shared_doubts);
        let mut all: Vec<(u8, String)> = shared.map(|doubt| (doubt.rank(), doubt.to_string())).collect();
        for sheet in &self.sheets {
            let sentence = |doubt: &Doubt| match self.overview {
                Some(_) => format!("on {}: {doubt}", sheet.device.name),
                None => doubt.to_string(),
            };
            all.extend(sheet.doubts.iter().map(|doubt| (doubt.rank(), sentence(doubt))));
        }
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, sentence)| sentence).collect()
    }

    /// Returns the number of complete rounds, which is the same on every device.
    pub fn rounds(&self) -> u32 {
        self.sheets.first().map_or(0, |sheet| sheet.results.rounds)
    }
}

/// Mean and standard deviation, such as "3.12" and "0.02". `None` if the metric is unknown.
type Cell = Option<(String, Option<String>)>;

/// Returns the cells of every setting.
fn cells(results: &FigureResults) -> Vec<Cell> {
    row(results.settings.iter().map(|figure| figure.as_ref().map(|figure| (figure.mean, figure.sd))).collect())
}

/// Formats a row of a table with common decimals.
fn row(values: Vec<Option<(f64, Option<f64>)>>) -> Vec<Cell> {
    let known: Vec<_> = values.iter().copied().flatten().collect();
    let mut decimals = Decimals::row(&known).into_iter();
    let mut show = |(mean, sd): (f64, Option<f64>)| {
        let decimals = decimals.next()?;
        Some((decimals.show(mean), sd.map(|sd| decimals.show(sd))))
    };
    values.into_iter().map(|value| show(value?)).collect()
}
