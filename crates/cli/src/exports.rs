//! Options that declare the exports of a disk.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_live::SyncWrites;
use iosched_live::nbd::{Export, Exports, ExportsError};

use iosched_terminal::fail::usage;

/// The exports of a disk.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// Declare an export:
    /// NAME[,class=rt|be|idle][,level=0..7][,weight=10..1000][,reservation=RATE][,limit=RATE][,sync=fua|all][,read-only][,description=TEXT]
    ///
    /// A RATE is a number of I/Os per second, such as 500, or a number of bytes per second with a unit, such as 50MB.
    #[arg(long = "export", value_name = "EXPORT")]
    exports: Vec<String>,

    /// File that declares exports, in sections such as [export.db] with class, level, weight, reservation, limit,
    /// sync, read_only and description
    #[arg(long = "exports", value_name = "FILE", value_hint = ValueHint::FilePath)]
    exports_file: Option<PathBuf>,
}

impl ExportArgs {
    /// Returns the exports of a disk with this name. There is at least one export.
    pub(crate) fn load(&self, disk: &str) -> Result<Exports> {
        Ok(self.declared().map_err(usage)?.or_default(disk))
    }

    /// Returns the file that declares exports, if any.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.exports_file.as_deref()
    }

    /// Returns one export for each of `sockets` sockets, in the order of declaration. If there is
    /// one socket and no declared export, returns the default export of the disk.
    pub(crate) fn load_each(&self, disk: &str, sockets: usize) -> Result<(Exports, Vec<Export>)> {
        let exports = self.load(disk)?;
        let given = self.exports.iter().map(|export| Export::from_option(export)).collect::<Result<Vec<_>, _>>();
        let mut each = given.map_err(usage)?;
        // The exports of the file are in the order of their names.
        each.extend(exports.as_slice().iter().filter(|&export| !each.contains(export)).cloned().collect::<Vec<_>>());
        if each.len() != sockets {
            return Err(usage(format!(
                "--socket: there are {sockets} sockets for {} exports; give one socket and one export for each \
                 virtual machine",
                each.len()
            )));
        }
        Ok((exports, each))
    }

    fn declared(&self) -> Result<Exports, ExportsError> {
        let mut exports = match &self.exports_file {
            Some(file) => Exports::load(file)?,
            None => Exports::default(),
        };
        for export in &self.exports {
            exports.add(Export::from_option(export)?)?;
        }
        Ok(exports)
    }
}

/// Returns a line for each export that is new, changed or removed.
pub(crate) fn changes(before: &Exports, after: &Exports) -> Vec<String> {
    let named = |all: &Exports, name: &str| all.as_slice().iter().find(|export| export.name == name).cloned();
    let now = after.as_slice().iter().filter_map(|export| match named(before, &export.name) {
        None => Some(format!("new: {}", describe(export))),
        Some(old) => (old != *export).then(|| format!("changed: {}", describe(export))),
    });
    let gone = before.as_slice().iter().filter(|export| named(after, &export.name).is_none());
    now.chain(gone.map(|export| format!("removed: {}", describe(export)))).collect()
}

/// Describes an export.
pub(crate) fn describe(export: &Export) -> String {
    let name = if export.name.is_empty() { "(without a name)" } else { &export.name };
    let weight = export.weight.map(|weight| format!(", weight {weight}")).unwrap_or_default();
    let reservation = export.rates.reservation.map(|rate| format!(", reservation {rate}")).unwrap_or_default();
    let limit = export.rates.limit.map(|rate| format!(", limit {rate}")).unwrap_or_default();
    let read_only = if export.read_only { ", read-only" } else { "" };
    let sync = if export.sync == SyncWrites::All { ", all writes are sync" } else { "" };
    format!("{name}: {}{weight}{reservation}{limit}{sync}{read_only}", export.ioprio)
}
