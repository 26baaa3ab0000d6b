//! Judges a scheduler of the user: `cargo run --release -p iosched-judge --example judge_sedf`.

#[path = "../../iosched/examples/sedf.rs"]
#[allow(dead_code, reason = "the elevator of that example, without its program")]
mod sedf;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut registry = iosched::Registry::linux();
    match registry.add(sedf::SEDF) {
        Ok(()) => iosched_judge::program(&registry, &["sedf"]),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
