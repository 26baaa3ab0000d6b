//! Instructions per request, counted by valgrind.
//!
//! Counts need no unit and do not depend on other programs on the machine: all runs of the same
//! program have the same count. A [`Counter`] runs a program twice under valgrind, once with only
//! the warm-up of a load and once with [`REQUESTS`] additional requests. The difference is the
//! count of these requests. The counter adds words to the arguments of the program, and the program
//! calls [`run_counted`] with these words.
//!
//! The column *elevator* counts the calls of the elevator, and its own lookups for merges. The same
//! loop without an elevator is also counted, and this count is subtracted. The column *whole*
//! counts the whole request queue with its driver.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::Command;

use iosched::{Registry, UnknownElevator};
use iosched_lab::Control;
use serde::Serialize;

use crate::load::{Alone, Load, LoadError, Nothing, QueueTarget, SHAPES, Shape, Target};

/// Number of counted requests in a case.
pub const REQUESTS: u64 = 10_000;
/// Upper limit of the warm-up, because valgrind is slow.
const WARM_UP_MAX: u64 = 10_000;
/// The fastest tool of valgrind that counts exactly. callgrind takes 2 times as long, and lackey 20
/// times.
const VALGRIND: &[&str] = &["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
/// Names of the loads in the cost part of a report card.
const COUNTED: [&str; 3] = ["sequential", "random", "random, half writes"];

/// Reason why instructions cannot be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// valgrind is not installed.
    #[error("valgrind is not installed, but it counts the instructions; install it with: apt-get install valgrind")]
    NoValgrind,
    /// valgrind cannot be started.
    #[error("valgrind cannot be started: {0}")]
    Start(std::io::Error),
    /// The counted program failed.
    #[error("valgrind failed with {case}: {output}")]
    Failed {
        /// The scheduler and its load.
        case: String,
        /// The output of valgrind.
        output: String,
    },
    /// The words after `--counted` are wrong.
    #[error(
        "--counted {0}: give the column (loop, elevator, whole), the scheduler, the load and the number of requests"
    )]
    Words(String),
    /// The registry has no scheduler of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownElevator),
    /// The load cannot be created.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The part of the measured program whose instructions are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// The loop of the measurement, without an elevator.
    Loop,
    /// The elevator without a queue.
    Elevator,
    /// The whole request queue.
    Whole,
}

impl Column {
    const ALL: [Self; 3] = [Self::Loop, Self::Elevator, Self::Whole];

    /// Returns the name of the column in arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Elevator => "elevator",
            Self::Whole => "whole",
        }
    }
}

/// Instructions per request of one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Name of the load.
    pub load: &'static str,
    /// Instructions of the elevator's own calls, per request.
    pub elevator: f64,
    /// Instructions of the whole request queue, per request.
    pub whole: f64,
}

/// A program that runs a load if its arguments name a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Path of the program, and arguments that come before the words of a case.
    pub program: Vec<OsString>,
}

impl Counter {
    /// Returns the counter that runs this program again. The counter runs it with `arguments`,
    /// followed by the words of a case. The program must call [`run_counted`] with these words.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub fn of_this_program(arguments: &[&str]) -> Result<Self, CostError> {
        let program = std::env::current_exe().map_err(CostError::Start)?;
        let arguments = arguments.iter().map(OsString::from);
        Ok(Self { program: std::iter::once(program.into_os_string()).chain(arguments).collect() })
    }

    /// Returns the instructions of the program with one load.
    fn count_once(&self, column: Column, scheduler: &str, load: &str, requests: u64) -> Result<u64, CostError> {
        let result = Command::new("valgrind")
            .args(VALGRIND)
            .args(&self.program)
            .args([column.name(), scheduler, load, &requests.to_string()])
            .output();
        let output = match result {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(CostError::NoValgrind),
            result => result.map_err(CostError::Start)?,
        };
        let text = String::from_utf8_lossy(&output.stderr);
        let count = Some(&text).filter(|_| output.status.success()).and_then(|text| instructions_in(text));
        count.ok_or_else(|| CostError::Failed { case: format!("{scheduler}, {load}"), output: text.into_owned() })
    }

    /// Returns the instructions per request.
    ///
    /// # Errors
    /// valgrind is missing, or the program fails.
    pub fn count(&self, column: Column, scheduler: &str, load: &str) -> Result<f64, CostError> {
        let without = self.count_once(column, scheduler, load, 0)?;
        let with = self.count_once(column, scheduler, load, REQUESTS)?;
        Ok((with as f64 - without as f64) / REQUESTS as f64)
    }

    /// Counts the loads of a report card. Returns `None` if `control` was interrupted.
    pub(crate) fn count_all(
        &self,
        registry: &Registry,
        scheduler: &str,
        control: &Control,
    ) -> Result<Option<Vec<Cost>>, CostError> {
        let name = registry.get(scheduler)?.name;
        let mut all = Vec::new();
        for load in COUNTED {
            if control.is_stopping() {
                return Ok(None);
            }
            let elevator = self.count(Column::Elevator, name, load)? - self.count(Column::Loop, name, load)?;
            all.push(Cost { load, elevator, whole: self.count(Column::Whole, name, load)? });
        }
        Ok(Some(all))
    }
}

/// Returns whether valgrind is installed on this machine.
#[must_use]
pub fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the count from the output of cachegrind: `==4711== I   refs:      4,486,782`.
fn instructions_in(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains("refs:") && line.contains(" I "))?;
    let (_, count) = line.split_once("refs:")?;
    count.trim().replace(',', "").parse().ok()
}

/// Runs the load of a case: column, scheduler, load and number of requests.
///
/// # Errors
/// A word is wrong, or the load cannot be created.
pub fn run_counted(registry: &Registry, words: &[String]) -> Result<(), CostError> {
    let wrong = || CostError::Words(words.join(" "));
    let [column, scheduler, load, requests] = words else { return Err(wrong()) };
    let shape = SHAPES.iter().find(|shape| shape.name == load).ok_or_else(wrong)?;
    let requests = requests.parse().map_err(|_| wrong())?;
    let column = Column::ALL.into_iter().find(|known| known.name() == column).ok_or_else(wrong)?;
    match column {
        Column::Loop => go_through::<Nothing>(registry, scheduler, shape, requests),
        Column::Elevator => go_through::<Alone>(registry, scheduler, shape, requests),
        Column::Whole => go_through::<QueueTarget>(registry, scheduler, shape, requests),
    }
}

fn go_through<T: Target>(registry: &Registry, scheduler: &str, shape: &Shape, requests: u64) -> Result<(), CostError> {
    let mut load = Load::<T>::new(registry, scheduler, shape, shape.warm_up().min(WARM_UP_MAX))?;
    load.requests(requests);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_count_is_parsed_from_cachegrind_output() {
        assert_eq!(instructions_in("==1== \n==4711== I   refs:      4,486,782\n"), Some(4_486_782));
        assert_eq!(instructions_in("==1== nothing"), None);
    }

    #[test]
    fn counted_runs_accept_every_column_and_refuse_others() {
        let words = |column: &str| {
            ["x", "bfq", "random", "10"]
                .map(str::to_owned)
                .map(|word| if word == "x" { column.to_owned() } else { word })
        };
        for column in Column::ALL {
            run_counted(&Registry::linux(), &words(column.name())).unwrap();
        }
        let error = run_counted(&Registry::linux(), &words("queue")).unwrap_err();
        assert!(error.to_string().starts_with("--counted queue bfq random 10: give the column"), "{error}");
    }
}
