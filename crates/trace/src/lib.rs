//! Block traces: readers, writers and summaries.
//!
//! [`TraceReader`] returns the requests of a trace in any known [`Format`], one [`TraceRequest`]
//! per submission, in order of time. Replay needs these. [`EventReader`] returns the events of a
//! block trace ([`BlkEvent`]), which show the later steps of the requests. Both read a stream with
//! bounded memory, and tolerate damage: they return all readable data, and report the position of
//! unreadable data in their [`Warnings`].
//!
//! An incomplete recording, such as a truncated file or a missing CPU's file,
//! is an error at the end, unless [`ReadOptions::partial`] accepts it.
//! [`TraceReader::completeness`] returns the missing parts as [`Gap`]s.
//!
//! [`summarize`] describes a trace, [`summarize_stages`] the times of requests
//! in each stage. [`convert`] writes a trace in another format. [`EventWriter`]
//! writes a block trace event by event, for simulated and recorded runs.
//! [`read_rates`] reads the tables of iostat and sar, which are not traces.
//!
//! ```
//! use iosched_trace::{TraceError, TraceReader, summarize};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/pgbench.blktrace");
//! let mut trace = TraceReader::open(path)?;
//! let first = trace.next().expect("a request")?;
//! assert_eq!((first.sector, first.nr_sectors, first.pid), (4_530_168, 8, 24_792));
//! assert_eq!(trace.process_names()[&first.pid].to_text(), "postgres");
//!
//! let summary = summarize(&mut TraceReader::open(path)?)?;
//! assert_eq!(summary.reads.requests, 674);
//! # Ok::<(), TraceError>(())
//! ```
//!
//! Readers detect a format by the content, and compression by the first bytes of the file. To open
//! a trace of several per-CPU files, give the name of one of them or their common beginning.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `format.rs` | the declarations of all formats |
//! | `formats/` | recognition (`detect`) and a reader for each format of lines or small structures |
//! | `blktrace/` | block trace events: reading, merging, writing |
//! | `reader.rs`, `reading.rs`, `events.rs` | traces as streams of requests and of events, and the common part of all readers |
//! | `source.rs`, `open.rs`, `input.rs`, `decompress.rs` | from a name to the bytes of its files |
//! | `record.rs`, `reorder.rs`, `names.rs`, `ioprio.rs` | a request, its order, its process and its priority |
//! | `completeness.rs`, `survey.rs`, `error.rs` | missing parts, oddities, errors and warnings |
//! | `transform.rs`, `placement.rs`, `write.rs` | slices and other changes, smaller devices, writing |
//! | `summary/`, `stages/`, `rates/` | descriptions of a trace; times in each stage; tables of iostat and sar |
//! | `text.rs`, `plain.rs`, `table.rs`, `grouped.rs`, `unit.rs` | the common part of line formats; text files; output of tables, numbers and units |
//! | `sample.rs` | a trace that is part of the program |
//! | `fuzz.rs` | entries for fuzzing |
#![forbid(unsafe_code)]

mod blktrace;
mod completeness;
mod decompress;
mod error;
mod events;
mod format;
mod formats;
pub mod fuzz;
mod grouped;
mod input;
mod ioprio;
mod names;
mod open;
mod placement;
mod plain;
mod rates;
mod reader;
mod reading;
mod record;
mod reorder;
mod sample;
mod source;
mod stages;
mod summary;
mod survey;
mod table;
mod text;
mod transform;
mod unit;
mod write;

pub use blktrace::follow::WHOLE_RECORDING;
pub use blktrace::pass::convert_events;
pub use blktrace::writer::EventWriter;
pub use blktrace::{Action, BlkEvent, Category, Payload, ProcessName};
pub use completeness::{Completeness, Gap, LOST_PERCENT_MAX, UNMATCHED_MIN, Unmatched};
pub use decompress::read_text;
pub use error::{Misfit, TraceError, TracePlace, WARNINGS_MAX, Warning, WarningKind, Warnings};
pub use events::EventReader;
pub use format::{Format, FormatSpec, Holds};
pub use formats::{Column, Columns, TableRow, flag_letters, ioprio_text};
pub use grouped::grouped;
pub use ioprio::{ioprio_for_kernel, ioprio_of_kernel};
pub use names::{DeviceNames, Names, ProcessNames};
pub use open::resolve as files;
pub use placement::{Extent, Fit, Placement};
pub use plain::{open_plain, read_plain};
pub use rates::{
    BUSY_PERCENT, DeviceRates, QUEUED_MIN, RATES_BYTES_MAX, RatesSummary, RatesTool, Spread, rates_of, read_rates,
};
pub use reader::TraceReader;
pub use reading::{InCgroup, Ionice, ReadOptions, is_one_of_name};
pub use record::{DeviceName, TraceRequest};
pub use sample::{SAMPLE_NAME, sample};
pub use source::Source;
pub use stages::{
    DISTANCES_MAX, DeviceStages, PlugSummary, SeekSummary, Span, StageSummarizer, StageSummary, Stages,
    summarize_stages,
};
pub use summary::{
    BINS_MAX, Count, DEVICES_MAX, DeviceSummary, LatencySummary, PRIORITIES_MAX, PROCESSES_MAX, ProcessSummary,
    SizeBucket, Summarizer, TimeBin, TraceSummary, summarize,
};
pub use survey::{COARSE_NS, Oddity, StepsBack, Survey, TIMELESS_MIN, common_divisor, decimal_grain};
pub use transform::{Chain, Filter, Step};
pub use unit::TimeUnit;
pub use write::{TraceWriter, WriteReport, convert, convert_with};
