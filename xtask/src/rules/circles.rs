//! Rule against files that import each other in a circle, because no file of a circle can be read,
//! tested or moved alone.
//!
//! The rule reads the code without comments and tests. An import is a path that begins with
//! `crate::` or `super::`, or any `use` of a child or of `self`. A path leads to the file of its
//! longest module name. If a file re-exports an item with `pub use`, the item belongs to this file.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, SourceFile};

/// The checked directories. `crates/machine` is not checked. In it, the frames of a modelled kernel
/// task push one another, so the circle is part of the model.
const FOLDERS: &[&str] = &[
    "crates/advise/src/",
    "crates/attributes/src/",
    "crates/check/src/",
    "crates/cli/src/",
    "crates/disk/src/",
    "crates/golden/src/",
    "crates/iosched/src/",
    "crates/judge/src/",
    "crates/kernel/src/",
    "crates/lab/src/",
    "crates/live/src/",
    "crates/nbd/src/",
    "crates/plan/src/",
    "crates/report/src/",
    "crates/sim/src/",
    "crates/system/src/",
    "crates/terminal/src/",
    "crates/trace/src/",
    "crates/workload/src/",
    "xtask/src/",
];
/// Largest number of files in one circle: the main file of a directory and a few files that extend
/// it.
const FILES_MAX: usize = 5;

/// Map from the path of a module to the number of its file.
type Modules = BTreeMap<Vec<String>, usize>;

/// Returns the module of a file.
fn module(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib" || last == "main") {
        parts.pop();
    }
    parts
}

/// Returns the code of a file, without comments and without the tests at its end.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Adds the paths in a text. For example, `a::{b, c::d}` has two paths. Returns the length of the
/// text that was read.
fn paths(text: &str, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let name = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut path = before.to_vec();
    path.push(text[..name].to_owned());
    if !text[name..].starts_with("::") {
        found.push(path);
        return name;
    }
    let mut at = name + 2;
    if !text[at..].starts_with('{') {
        return at + paths(&text[at..], &path, found);
    }
    at += 1;
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        at += match next {
            '}' => return at + 1,
            next if next.is_alphanumeric() || next == '_' => paths(&text[at..], &path, found),
            next => next.len_utf8(),
        };
    }
    at
}

/// Returns the files that a file imports.
fn imports(file: usize, module: &[String], text: &str, modules: &Modules) -> BTreeSet<usize> {
    let code = code(text);
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == ':';
    let starts = ["crate::", "super::", "self::"].iter().flat_map(|start| code.match_indices(start));
    let starts = starts.map(|(at, _)| at).filter(|&at| !code[..at].ends_with(part_of_name));
    // The path in the visibility of an item is not an import.
    let starts = starts.filter(|&at| !code[..at].ends_with("pub(in "));
    let mut found = Vec::new();
    for at in starts.collect::<BTreeSet<_>>() {
        paths(&code[at..], &[], &mut found);
    }
    // The path of a child has no prefix. The same name may also belong to another crate.
    for line in code.match_indices("use ").map(|(at, _)| &code[at + "use ".len()..]) {
        let mut named = Vec::new();
        paths(line, &["self".to_owned()], &mut named);
        found.extend(named.into_iter().filter(|path| modules.contains_key(&[module, &path[1..2]].concat())));
    }
    let absolute = found.into_iter().map(|path| {
        let mut from = module.to_vec();
        let mut rest = path.as_slice();
        if rest[0] == "crate" {
            (from, rest) = (Vec::new(), &rest[1..]);
        }
        while let Some(first) = rest.first().filter(|first| ["super", "self"].contains(&first.as_str())) {
            if first == "super" {
                from.pop();
            }
            rest = &rest[1..];
        }
        [from.as_slice(), rest].concat()
    });
    let target = |path: Vec<String>| (0..=path.len()).rev().find_map(|length| modules.get(&path[..length])).copied();
    absolute.filter_map(target).filter(|&to| to != file).collect()
}

/// Returns the files that imports reach from a file, directly and indirectly.
fn reach(from: usize, imports: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut reached, mut ahead) = (BTreeSet::new(), vec![from]);
    while let Some(file) = ahead.pop() {
        ahead.extend(imports[file].iter().filter(|&&next| reached.insert(next)));
    }
    reached
}

/// Returns the circles with too many files.
pub(super) fn too_large(sources: &[SourceFile]) -> Vec<Breach> {
    FOLDERS.iter().flat_map(|folder| too_large_in(folder, sources)).collect()
}

fn too_large_in(folder: &str, sources: &[SourceFile]) -> Vec<Breach> {
    let files: Vec<_> = sources.iter().filter_map(|file| Some((file.path.strip_prefix(folder)?, file))).collect();
    let modules: Modules = files.iter().zip(0..).map(|((path, _), number)| (module(path), number)).collect();
    let imports: Vec<_> = files
        .iter()
        .zip(0..)
        // Imports of the crate's main file do not count, because this file only re-exports items.
        .map(|((path, file), number)| match *path {
            "lib.rs" | "main.rs" => BTreeSet::new(),
            path => imports(number, &module(path), &file.text, &modules),
        })
        .collect();
    let reached: Vec<_> = (0..files.len()).map(|file| reach(file, &imports)).collect();
    let circle = |file: usize| -> Vec<usize> {
        reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect()
    };
    let mut breaches = Vec::new();
    for file in 0..files.len() {
        let circle = circle(file);
        if circle.len() > FILES_MAX && circle.first() == Some(&file) {
            let names: Vec<_> = circle.iter().map(|&file| files[file].0).collect();
            let what = format!(
                "{} files import each other in a circle, {FILES_MAX} are allowed; take what they share below them: {}",
                circle.len(),
                names.join(", ")
            );
            breaches.push(Breach::new(&files[file].1.path, 0, what));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn imported(path: &str, text: &str) -> Vec<String> {
        let names = ["a/mod.rs", "a/b.rs", "a/c.rs", "d.rs", "lib.rs"];
        let modules: Modules = names.iter().zip(0..).map(|(path, number)| (module(path), number)).collect();
        let number = names.iter().position(|name| *name == path).expect("a file of the list");
        imports(number, &module(path), text, &modules).into_iter().map(|file| names[file].to_owned()).collect()
    }

    #[test]
    fn imports_of_a_file_are_found() {
        assert_eq!(imported("a/b.rs", "use crate::d::X;"), ["d.rs"]);
        assert_eq!(imported("a/b.rs", "use super::c::{X, Y};"), ["a/c.rs"]);
        assert_eq!(imported("a/b.rs", "use super::X;"), ["a/mod.rs"]);
        assert_eq!(imported("d.rs", "use crate::{\n    a::{X, b::Y, c},\n};"), ["a/mod.rs", "a/b.rs", "a/c.rs"]);
        assert_eq!(imported("a/mod.rs", "use b::X;\npub(crate) use c::Y;"), ["a/b.rs", "a/c.rs"]);
        assert_eq!(imported("a/b.rs", "fn f() -> crate::d::X {}"), ["d.rs"]);
        assert_eq!(imported("a/b.rs", "use crate::X;"), ["lib.rs"]);
    }

    #[test]
    fn comments_macros_and_tests_are_not_imports() {
        assert!(imported("a/b.rs", "//! See [`crate::d::X`].\nuse std::d::X; // crate::d").is_empty());
        assert!(imported("a/b.rs", "$crate::d::X").is_empty(), "a path in a macro belongs to the user of the macro");
        assert!(imported("a/b.rs", "mod d;\n#[cfg(test)]\nmod tests { use crate::d::X; }").is_empty());
        assert!(imported("a/b.rs", "pub(in crate::d) struct X;").is_empty());
        assert!(imported("a/b.rs", "use super::b::X;").is_empty(), "a file does not import itself");
    }

    #[test]
    fn too_large_circle_is_one_breach() {
        let ring = |files: usize| {
            let of = |number: usize| {
                file(&format!("{}f{number}.rs", FOLDERS[0]), &format!("use crate::f{}::X;", (number + 1) % files))
            };
            (0..files).map(of).chain([file(&format!("{}lib.rs", FOLDERS[0]), "pub use f0::X;")]).collect::<Vec<_>>()
        };
        assert!(too_large(&ring(FILES_MAX)).is_empty());
        let breaches = too_large(&ring(FILES_MAX + 1));
        assert_eq!(breaches.len(), 1, "one for the whole circle");
        assert!(breaches[0].what.contains("f0.rs, f1.rs, f2.rs, f3.rs, f4.rs, f5.rs"), "{}", breaches[0].what);
    }
}
