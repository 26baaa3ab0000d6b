//! Recorded runs in the form in which tests use them.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use iosched_golden::fixture::{BioFields, Encoder, LineHash, Minimal, Run, put};

/// A line of a recording, with the fields of minimal events.
#[derive(Deserialize)]
struct Line {
    t: u64,
    ev: String,
    #[serde(default)]
    id: u64,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    sector: u64,
    #[serde(default)]
    nr: u32,
    #[serde(default)]
    rw: Option<char>,
    #[serde(default)]
    sync: u8,
    #[serde(default)]
    into: u64,
    #[serde(default, rename = "type")]
    side: serde_json::Value,
    #[serde(default)]
    n: u64,
    #[serde(default)]
    fnv: String,
}

/// The runs to store.
pub(super) struct Archive {
    runs: Vec<Run>,
    /// Number of random runs of a kind of which one run is stored.
    thin: u32,
    /// Number of random runs so far, by the prefix of their names, which is their kind.
    random: BTreeMap<String, u32>,
}

impl Archive {
    pub(super) fn thinned(thin: u32) -> Self {
        Self { runs: Vec::new(), thin, random: BTreeMap::new() }
    }

    fn leaves_out(&mut self, name: &str) -> bool {
        let Some(at) = ["fuzz", "seed"].iter().find_map(|mark| name.find(mark)) else {
            return false;
        };
        let before = self.random.entry(name[..at].to_owned()).or_default();
        *before += 1;
        !(*before - 1).is_multiple_of(self.thin)
    }

    /// Adds a recorded run, unless thinning leaves it out.
    pub(super) fn add(&mut self, name: &str, scenario: &[u8], lines: &[&str]) -> anyhow::Result<()> {
        if self.leaves_out(name) {
            return Ok(());
        }
        let mut run = Run { name: name.to_owned(), hashes: LineHash::of(lines.iter().copied()), ..Run::default() };
        run.scenario = scenario.to_vec();
        let mut encoder = Encoder::default();
        for (at_ns, event) in minimal(lines).with_context(|| name.to_owned())? {
            encoder.encode(&mut run.minimal, at_ns, &event);
        }
        self.runs.push(run);
        Ok(())
    }

    /// Adds a recorded run of controllers, unless thinning leaves it out. Tests compare all its
    /// lines.
    pub(super) fn add_lines(&mut self, name: &str, scenario: &[u8], lines: &[&str]) {
        if !self.leaves_out(name) {
            let (scenario, hashes) = (scenario.to_vec(), LineHash::of(lines.iter().copied()));
            self.runs.push(Run { name: name.to_owned(), scenario, hashes, ..Run::default() });
        }
    }

    /// Returns the archive.
    pub(super) fn finish(&self) -> anyhow::Result<Vec<u8>> {
        let mut plain = Vec::new();
        for run in &self.runs {
            put_bytes(&mut plain, run.name.as_bytes());
            put_bytes(&mut plain, &run.scenario);
            put_bytes(&mut plain, &run.minimal);
            let hashes: Vec<u8> = run.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            put_bytes(&mut plain, &hashes);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain)?;
        Ok(encoder.finish()?)
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Returns the events of a recording that must be equal in a simulated run.
pub(super) fn minimal(lines: &[&str]) -> anyhow::Result<Vec<(u64, Minimal)>> {
    const KINDS: [&str; 6] = ["insert", "merge", "rq_merge", "dispatch", "complete", "sum"];
    let is_minimal = |line: &str| line.split('"').nth(5).is_some_and(|event| KINDS.contains(&event));
    let events = lines.iter().filter(|line| is_minimal(line));
    events.map(|line| parse(line).with_context(|| (*line).to_owned())).collect()
}

fn parse(line: &str) -> anyhow::Result<(u64, Minimal)> {
    let Line { t, ev, id, pid, sector, nr, rw, sync, into, side, n, fnv } = serde_json::from_str(line)?;
    let bio = BioFields { id, pid, sector, nr_sectors: nr, rw: rw.unwrap_or('?'), sync: sync != 0 };
    let event = match ev.as_str() {
        "insert" => Minimal::Insert(bio),
        "merge" => Minimal::Merge { bio, into, front: side == "front" },
        "rq_merge" => Minimal::RequestMerge { id, into },
        "dispatch" => Minimal::Dispatch { id },
        "complete" => Minimal::Complete { id },
        "sum" => Minimal::Sum { dispatches: n, value: u64::from_str_radix(&fnv, 16)? },
        other => anyhow::bail!("{other} is not a minimal event"),
    };
    Ok((t, event))
}
