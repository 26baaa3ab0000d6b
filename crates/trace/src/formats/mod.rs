//! The formats whose records are lines or small structures, one file per format. This module also
//! selects the reader or writer of a [`Format`]. The records of blktrace are in a separate folder,
//! [`blktrace`](crate::blktrace).

mod alibaba;
mod bare;
mod blkparse;
mod blkreplay;
mod cause;
mod columns;
mod csv;
mod detect;
mod event_text;
mod fio;
mod fio_log;
mod fiu;
mod guess;
mod heading;
mod lines;
mod mqsim;
mod msr;
mod rewritten;
mod row;
mod spc;
mod tencent;
mod times;
mod tracepoints;
mod value;
mod vscsi;

use bare::BareTimes;
pub use columns::{Column, Columns};
pub(crate) use detect::detect;
use event_text::EventTextReader;
pub(crate) use row::BEFORE_FIRST_NS;
pub use row::{TableRow, flag_letters, ioprio_text};
pub(crate) use times::Times;

use crate::blktrace::EventSource;
use crate::blktrace::binary::BinaryReader;
use crate::blktrace::merge::Merge;
use crate::format::Format;
use crate::input::{HEAD_BYTES, Input};
use crate::reading::ReadOptions;
use crate::text::{RecordFormat, RequestSource, TextReader};

/// Returns the properties of a file's times.
pub(crate) fn times(input: &mut Input, format: Format, options: &ReadOptions) -> Times {
    match format {
        Format::Csv => csv::times(input.peek(HEAD_BYTES), options.columns.as_ref()),
        Format::Tracepoints => Times {
            as_written: false,
            resolution_ns: tracepoints::resolution_ns(input.peek(HEAD_BYTES)),
            of_completions: false,
            in_sectors: false,
        },
        _ => Times {
            as_written: !format.spec().from_first,
            resolution_ns: match options.time_unit {
                Some(_) => BareTimes::of(format, options.time_unit).resolution_ns(input.peek(HEAD_BYTES)),
                None => format.resolution_ns(),
            },
            of_completions: false,
            in_sectors: matches!(format, Format::Tencent | Format::Fiu | Format::Mqsim | Format::Blkreplay),
        },
    }
}

/// Returns the reader of a format with events. The inputs are one file, or the files of all CPUs.
pub(crate) fn event_source(mut inputs: Vec<Input>, format: Format) -> Box<dyn EventSource> {
    match (format, inputs.pop()) {
        (Format::Blkparse, Some(input)) => Box::new(EventTextReader::new(input, blkparse::Blkparse::default())),
        (Format::Tracepoints, Some(input)) => Box::new(EventTextReader::new(input, tracepoints::Tracepoints)),
        (_, last) => Box::new(Merge::new(inputs.into_iter().chain(last).map(BinaryReader::new).collect())),
    }
}

/// Returns the reader of a format with requests instead of events.
pub(crate) fn reader(mut input: Input, format: Format, options: &ReadOptions) -> Box<dyn RequestSource> {
    let times = BareTimes::of(format, options.time_unit);
    match format {
        Format::Vscsi => {
            let version = vscsi::sniff(input.peek(HEAD_BYTES)).unwrap_or(vscsi::Version::One);
            Box::new(vscsi::VscsiReader::new(input, version))
        }
        Format::FioV2 => Box::new(TextReader::new(input, fio::Fio::new(fio::Version::Two, times))),
        Format::FioV3 => Box::new(TextReader::new(input, fio::Fio::new(fio::Version::Three, times))),
        Format::Msr => Box::new(TextReader::new(input, msr::Msr)),
        Format::Spc => Box::new(TextReader::new(input, spc::Spc)),
        Format::Fiu => Box::new(TextReader::new(input, fiu::Fiu(times))),
        Format::Alibaba => Box::new(TextReader::new(input, alibaba::Alibaba(times))),
        Format::Tencent => Box::new(TextReader::new(input, tencent::Tencent(times))),
        Format::Mqsim => Box::new(TextReader::new(input, mqsim::Mqsim(times))),
        Format::Csv => {
            let table = options.columns.clone().map_or_else(csv::Csv::new, csv::Csv::of);
            Box::new(TextReader::new(input, table))
        }
        Format::Blktrace | Format::Blkparse | Format::Tracepoints | Format::Blkreplay => {
            Box::new(TextReader::new(input, blkreplay::Blkreplay::new()))
        }
    }
}

/// Returns the writer of a format of requests, or `None` for a format that has
/// events or cannot be written.
pub(crate) fn writer(format: Format) -> Option<Box<dyn RecordFormat>> {
    let times = BareTimes::of(format, None);
    Some(match format {
        Format::Blktrace | Format::Blkparse | Format::Tracepoints => return None,
        Format::FioV2 => Box::new(fio::FioWriter::new(fio::Version::Two)),
        Format::FioV3 => Box::new(fio::FioWriter::new(fio::Version::Three)),
        Format::Msr => Box::new(msr::Msr),
        Format::Spc => Box::new(spc::Spc),
        Format::Fiu => Box::new(fiu::Fiu(times)),
        Format::Alibaba => Box::new(alibaba::Alibaba(times)),
        Format::Tencent => Box::new(tencent::Tencent(times)),
        Format::Blkreplay => Box::new(blkreplay::Blkreplay::new()),
        Format::Vscsi => Box::new(vscsi::VscsiWriter::default()),
        Format::Mqsim => Box::new(mqsim::Mqsim(times)),
        Format::Csv => Box::new(csv::Csv::new()),
    })
}
