//! Tests of the page on writing an elevator. The page has the same code as the example. A crate
//! with this code builds and runs outside of the workspace. A crate with the code of the tutorial
//! for developers also builds and runs there.
#![allow(clippy::disallowed_methods, reason = "cargo builds the crate in a separate folder")]

use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/elevator-howto.md");
const TUTORIAL: &str = include_str!("../../../docs/tutorials/storage-developer.md");
const EXAMPLE: &str = include_str!("../../iosched/examples/sedf.rs");

/// Returns the code blocks of a page in one language, each with its last newline.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = page.split(opening.as_str()).skip(1);
    blocks.map(|rest| &rest[..rest.find("```").expect("a code block is closed")]).collect()
}

#[test]
fn the_how_to_page_has_the_code_of_the_example() {
    assert_eq!(blocks(PAGE, "rust").join("\n"), EXAMPLE);
    assert!(EXAMPLE.lines().count() < 80, "the page says about eighty lines");
}

#[test]
fn a_crate_from_the_how_to_page_prints_the_shown_output() {
    assert_crate_prints(PAGE, "howto", "");
}

#[test]
fn a_crate_from_the_tutorial_prints_the_shown_output() {
    assert_crate_prints(
        TUTORIAL,
        "tutorial",
        "[package]\nname = \"fair\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n",
    );
}

/// Creates a crate from the code of the page and the manifest, runs it, and compares its output.
#[track_caller]
fn assert_crate_prints(page: &'static str, name: &str, package: &str) {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("iosched");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("src")).expect("a folder for the crate");
    let [manifest] = blocks(page, "toml")[..] else { panic!("the page does not have exactly one manifest") };
    let path = "\"../iosched/crates/iosched\"";
    assert!(manifest.contains(path), "the manifest has the path to the library");
    // The target folder is inside the workspace, so the crate must declare a separate workspace.
    let manifest = package.to_owned() + &manifest.replace(path, &format!("{library:?}")) + "\n[workspace]\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest is written");
    std::fs::write(folder.join("src/main.rs"), blocks(page, "rust").join("\n")).expect("the source is written");
    // Without a network, only the versions in the workspace's lock file are available.
    std::fs::copy(library.join("../../Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file is copied");
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages"))
        .current_dir(&folder)
        .output()
        .expect("cargo runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let [printed] = blocks(page, "text")[..] else { panic!("the page does not have exactly one output") };
    assert_eq!(String::from_utf8_lossy(&run.stdout), printed);
}
