//! The program that judges schedulers of the user.

use std::process::ExitCode;

use iosched::Registry;
use iosched_lab::Control;

use crate::cost::{Counter, has_valgrind, run_counted};
use crate::judge::{Part, judge};
use crate::request::{JudgeError, JudgeRequest};

/// Argument of this program when it runs again under valgrind.
const COUNTED: &str = "--counted";

/// Judges the `schedulers` of `registry`, and prints the report cards as Markdown. The exit code is
/// 1 if a scheduler broke a rule, and 2 if a scheduler cannot be judged.
///
/// If valgrind is installed, the program runs itself again with the argument `--counted` to count
/// instructions. Therefore `main` must call this function first.
#[must_use]
pub fn program(registry: &Registry, schedulers: &[&str]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((COUNTED, words)) = arguments.split_first().map(|(first, words)| (first.as_str(), words)) {
        return ended(run_counted(registry, words).map_err(JudgeError::from));
    }
    let mut request = JudgeRequest::new(registry.clone(), schedulers);
    request.counter = Counter::of_this_program(&[COUNTED]).ok().filter(|_| has_valgrind());
    if request.counter.is_none() {
        eprintln!("valgrind is not installed, so the instructions are not counted");
    }
    let control = Control::new(std::thread::available_parallelism().map_or(1, Into::into));
    let (mut number, parts) = (0, request.parts());
    let observe = |part: Part<'_>| {
        number += 1;
        eprintln!("part {number} of {parts}: {}", part.words());
    };
    match judge(&request, &control, observe) {
        Ok(judgement) => {
            print!("{}", judgement.markdown());
            ExitCode::from(u8::from(judgement.is_broken()))
        }
        Err(error) => ended(Err(error)),
    }
}

fn ended(result: Result<(), JudgeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
