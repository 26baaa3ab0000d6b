//! A program and its options, parsed from a command line.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::option::About;
use crate::app::phased::{Phased, Plan};
use crate::app::{Application, bonnie, dd, fdtree, fs_mark, hdparm, ioping, iozone, sysbench, tpcc};
use crate::error::shortened;
use iosched::IoPriority;

/// Returns the programs that iosched simulates.
#[must_use]
pub const fn programs() -> &'static [About] {
    &[bonnie::ABOUT, dd::ABOUT, fdtree::ABOUT, fs_mark::ABOUT, iozone::ABOUT, sysbench::ABOUT, tpcc::ABOUT]
}

/// Returns the programs that iosched converts to fio jobs with the same I/O.
#[must_use]
pub const fn programs_as_fio() -> &'static [About] {
    &[hdparm::ABOUT, ioping::ABOUT]
}

/// Converts a command line of one of [`programs_as_fio`] into the words of fio's command line.
/// Returns `None` for other programs.
pub(crate) fn as_fio(text: &str) -> Result<Option<Vec<String>>, WorkloadError> {
    let line = Line::new(text);
    match line.program() {
        "hdparm" => hdparm::words(&line).map(Some),
        "ioping" => ioping::words(&line).map(Some),
        _ => Ok(None),
    }
}

/// Options of each program.
#[derive(Clone, Debug)]
enum AppOptions {
    Dd(dd::DdOptions),
    Fdtree(fdtree::FdtreeOptions),
    FsMark(fs_mark::FsMarkOptions),
    Iozone(iozone::IozoneOptions),
    Phased(Box<Plan>),
    Tpcc(tpcc::TpccOptions),
}

/// A program with its options, parsed from a command line.
#[derive(Clone, Debug)]
pub struct Spec {
    line: String,
    name: String,
    options: AppOptions,
    priority: IoPriority,
    limit_ns: Option<u64>,
}

impl Spec {
    /// Returns whether a text is a command line: its first word is the name of a program.
    #[must_use]
    pub fn is_command(text: &str) -> bool {
        text.split_whitespace().next().is_some_and(|word| programs().iter().any(|program| program.name == word))
    }

    /// Parses a command line, such as `iozone -s 64 -e -i 0`. White space separates words; there
    /// are no quotes.
    ///
    /// # Errors
    /// [`WorkloadError::Command`]: the program or an option is unknown, or a value is not valid.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let line = Line::new(text);
        let options = match line.program() {
            "bonnie++" => AppOptions::Phased(bonnie::plan(&line)?.into()),
            "sysbench" => AppOptions::Phased(sysbench::plan(&line)?.into()),
            "dd" => AppOptions::Dd(dd::DdOptions::parse(&line)?),
            "fdtree" => AppOptions::Fdtree(fdtree::FdtreeOptions::parse(&line)?),
            "fs_mark" => AppOptions::FsMark(fs_mark::FsMarkOptions::parse(&line)?),
            "iozone" => AppOptions::Iozone(iozone::IozoneOptions::parse(&line)?),
            "tpcc" => AppOptions::Tpcc(tpcc::TpccOptions::parse(&line)?),
            other => {
                let known = programs().iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
                return Err(line.error(other, "no such program", format!("available: {known}")));
            }
        };
        let (line, name) = (line.text().to_owned(), shortened(line.text()));
        Ok(Self { line, name, options, priority: IoPriority::default(), limit_ns: None })
    }

    /// Sets the I/O priority from ionice or nice, and the time limit from timeout. `text` is the
    /// whole command line.
    #[must_use]
    pub(crate) fn started(self, text: &str, priority: IoPriority, limit_ns: Option<u64>) -> Self {
        let is_plain = priority == IoPriority::default() && limit_ns.is_none();
        let line = if is_plain { self.line } else { text.trim().to_owned() };
        Self { name: shortened(&line), line, priority, limit_ns, ..self }
    }

    /// Returns the I/O priority of the tasks.
    #[must_use]
    pub const fn priority(&self) -> IoPriority {
        self.priority
    }

    /// Returns the time limit, ns since the start. `None`: no limit.
    #[must_use]
    pub const fn limit_ns(&self) -> Option<u64> {
        self.limit_ns
    }

    /// Returns the command line as written.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Returns the command line for display. A long command line is cut.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the program runs for a fixed time, however fast the disk is.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        matches!(&self.options, AppOptions::Phased(plan) if plan.phases.iter().all(|phase| phase.duration_ns.is_some()))
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn task_count(&self) -> usize {
        match &self.options {
            AppOptions::Dd(options) => options.task_count(),
            AppOptions::Fdtree(_) => 1,
            AppOptions::FsMark(options) => options.task_count(),
            AppOptions::Iozone(options) => options.task_count(),
            AppOptions::Phased(plan) => plan.tasks,
            AppOptions::Tpcc(options) => options.task_count(),
        }
    }

    /// Returns the number of disks that the program uses.
    #[must_use]
    pub const fn disks(&self) -> u32 {
        match &self.options {
            AppOptions::Tpcc(_) => 2,
            _ => 1,
        }
    }

    /// Returns the largest total size of the program's files, bytes, without directories.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        match &self.options {
            AppOptions::Dd(options) => options.file_bytes(),
            AppOptions::Fdtree(options) => options.file_bytes(),
            AppOptions::FsMark(options) => options.all_file_bytes(),
            AppOptions::Iozone(options) => options.file_bytes(),
            AppOptions::Phased(plan) => plan.files.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)),
            AppOptions::Tpcc(options) => options.file_bytes(),
        }
    }

    /// Starts the program on a disk of `disk_bytes`. `seed` determines everything that is random in
    /// the original program. Values that the original draws from a fixed seed are the same in all
    /// runs.
    #[must_use]
    pub fn start(&self, seed: u64, disk_bytes: u64) -> Box<dyn Application> {
        match &self.options {
            AppOptions::Dd(options) => Box::new(dd::Dd::new(options, disk_bytes)),
            AppOptions::Phased(plan) => Box::new(Phased::new((**plan).clone(), seed)),
            AppOptions::Fdtree(options) => Box::new(fdtree::Fdtree::new(options, seed)),
            AppOptions::FsMark(options) => Box::new(fs_mark::FsMark::new(options)),
            AppOptions::Iozone(options) => Box::new(iozone::Iozone::new(options)),
            AppOptions::Tpcc(options) => Box::new(tpcc::Tpcc::new(options, seed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::tests::{calls, drive};

    /// Values that are small enough to run quickly.
    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            (0u64..40).prop_map(|number| number.to_string()),
            (0u64..4).prop_map(|number| format!("{number}k")),
            "[ -~]{0,6}",
            Just("é".to_owned()),
            Just("18446744073709551615".to_owned()),
            Just("/dev/zero".to_owned()),
        ]
    }

    fn word(program: About) -> impl Strategy<Value = String> {
        (proptest::sample::select(program.options), value(), any::<bool>()).prop_map(|(option, value, apart)| {
            match (option.name.starts_with('-'), option.value.is_some(), apart) {
                (true, false, _) => option.name.to_owned(),
                (true, true, true) => format!("{} {value}", option.name),
                (true, true, false) => format!("{}{value}", option.name),
                (false, ..) => format!("{}={value}", option.name),
            }
        })
    }

    fn command() -> impl Strategy<Value = String> {
        proptest::sample::select(programs()).prop_flat_map(|program| {
            proptest::collection::vec(word(program), 0..7)
                .prop_map(move |words| format!("{} {}", program.name, words.join(" ")))
        })
    }

    #[test]
    fn size_of_files_is_known_before_a_run() {
        for (line, mib) in [
            ("dd if=/dev/zero of=f bs=1M count=64", 64),
            ("dd if=f of=/dev/null bs=1M count=64", 64),
            // Skipped parts of a file need no space.
            ("dd if=/dev/zero of=f bs=1M count=8 seek=1000", 8),
            ("dd if=/dev/zero of=f bs=1M count=64 jobs=3", 192),
            ("dd if=/dev/zero of=f bs=1M count=64; dd if=f of=g bs=1M", 128),
            ("dd if=/dev/zero of=f bs=1M count=64; dd if=/dev/zero of=f bs=1M count=8", 64),
            ("dd if=/dev/zero of=f bs=1M count=64; dd if=/dev/zero of=f bs=1M count=8 conv=notrunc", 64),
            ("iozone -s 65536 -i 0", 64),
            ("iozone -s 65536 -i 0 -t 2", 128),
            ("fs_mark -n 1024 -s 65536 -t 2", 128),
            ("fdtree -l 0 -d 1 -f 4 -s 256", 4),
            ("sysbench fileio --file-total-size=64M --file-num=4 --file-test-mode=rndrd --time=1 run", 64),
            ("tpcc warehouses=1 log_mb=10", 120),
        ] {
            assert_eq!(Spec::parse(line).unwrap().file_bytes(), mib << 20, "{line}");
        }
    }

    proptest! {
        #[test]
        fn parser_never_panics(text in prop_oneof![command(), "\\PC{0,60}"]) {
            if let Err(error) = Spec::parse(&text) {
                prop_assert!(matches!(error, WorkloadError::Command { .. }), "{error}");
            }
        }

        #[test]
        fn valid_iozone_command_runs_to_its_end(
            size in 1u64..200, record in 1u64..20, test in 0u32..8, flags in "(e|c|o|I|x|R){0,3}", processes in 1u32..4,
        ) {
            let flags: String = flags.chars().map(|flag| format!("-{flag} ")).collect();
            let text = format!("iozone {flags}-s {size} -r {record} -i {test} -t {processes}");
            // The test driver rejects calls that a file system would reject.
            if Spec::parse(&text).is_ok() {
                let report = calls(&text, 1_000_000).1.report();
                prop_assert!(!report.figures.is_empty());
            }
        }

        #[test]
        fn valid_dd_command_runs_to_its_end(
            bytes in 1u64..3_000, count in 1u64..9, skip in 0u64..5, seek in 0u64..5, jobs in 1u64..4,
            conv in proptest::sample::select(&["notrunc", "fsync", "fdatasync,notrunc"][..]),
        ) {
            let text = format!(
                "dd jobs={jobs} if=/dev/zero of=a bs={bytes} count={count} ; \
                 dd jobs={jobs} if=a of=b bs=1000 skip={skip} seek={seek} conv={conv} && dd if=c of=b count={count}"
            );
            if let Ok(spec) = Spec::parse(&text) {
                drive(spec.start(1, 1 << 30).as_mut(), |_| 1_000);
            }
        }
    }

    fn error(text: &str) -> String {
        Spec::parse(text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn first_word_identifies_a_command() {
        assert!(Spec::is_command(" iozone"));
        assert!(Spec::is_command("dd if=x"));
        assert!(!Spec::is_command("ddrescue"));
        assert!(!Spec::is_command(""));
    }

    #[test]
    fn refused_command_line_names_the_option_and_a_remedy() {
        assert!(
            error("postmark -x").starts_with("postmark -x: postmark: no such program; available: bonnie++, dd, fdtree")
        );
        assert!(error("").contains("no such program"));
        for program in programs() {
            let text = error(&format!("{} --frob=1", program.name));
            assert!(text.contains("frob"), "{text}");
            for option in program.options {
                assert!(text.contains(option.name), "{text} does not name {}", option.name);
            }
        }
    }
}
