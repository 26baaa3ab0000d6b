//! The files of a package, and their paths on the target machine.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Recipe, VERSION, done, printed};

/// The maintainer of the package. Nobody reads mail to this address.
pub(super) const MAINTAINER: &str = "the iosched authors <iosched@packages.invalid>";
/// Files that are copied unchanged: path from the root of the repository, and path on the target
/// machine.
const COPIED: [(&str, &str); 17] = [
    ("packaging/systemd/iosched-serve@.service", "usr/lib/systemd/system/iosched-serve@.service"),
    ("packaging/systemd/iosched-serve@.socket", "usr/lib/systemd/system/iosched-serve@.socket"),
    ("packaging/systemd/iosched-mount@.service", "usr/lib/systemd/system/iosched-mount@.service"),
    ("packaging/systemd/iosched-watch.service", "usr/lib/systemd/system/iosched-watch.service"),
    ("packaging/iosched.sysusers", "usr/lib/sysusers.d/iosched.conf"),
    ("packaging/iosched.tmpfiles", "usr/lib/tmpfiles.d/iosched.conf"),
    ("packaging/examples/db.conf", "usr/share/doc/iosched/examples/db.conf"),
    ("packaging/examples/block-device.conf", "usr/share/doc/iosched/examples/block-device.conf"),
    ("packaging/examples/60-iosched.rules", "usr/share/doc/iosched/examples/60-iosched.rules"),
    ("packaging/prometheus/iosched.rules.yml", "usr/share/iosched/prometheus/iosched.rules.yml"),
    ("packaging/prometheus/iosched-watch.rules.yml", "usr/share/iosched/prometheus/iosched-watch.rules.yml"),
    ("packaging/grafana/iosched-kernel-disks.json", "usr/share/iosched/grafana/iosched-kernel-disks.json"),
    ("packaging/grafana/iosched-served-disks.json", "usr/share/iosched/grafana/iosched-served-disks.json"),
    ("packaging/grafana/iosched.yaml", "usr/share/doc/iosched/examples/grafana-iosched.yaml"),
    ("README.md", "usr/share/doc/iosched/README.md"),
    ("LICENSE-APACHE", "usr/share/doc/iosched/LICENSE-APACHE"),
    ("LICENSE-MIT", "usr/share/doc/iosched/LICENSE-MIT"),
];
/// Directory of the included workloads.
const WORKLOADS: &str = "docs/examples";
/// Path of the completions of each shell.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/iosched"),
    ("zsh", "usr/share/zsh/vendor-completions/_iosched"),
    ("fish", "usr/share/fish/vendor_completions.d/iosched.fish"),
];
const DOCUMENTS: &str = "usr/share/doc/iosched";
const MANUAL: &str = "usr/share/man/man1";

/// A directory with all files of a package.
pub(crate) struct Staged {
    pub(crate) directory: PathBuf,
}

impl Staged {
    fn put(&self, place: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let path = self.directory.join(place);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(mode))?)
    }

    /// Copies the files of a directory and of its subdirectories.
    fn put_directory(&self, place: &str, from: &Path) -> Result<()> {
        for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
            let path = entry?.path();
            let place = format!("{place}/{}", path.file_name().context("a file has a name")?.to_string_lossy());
            if path.is_dir() {
                self.put_directory(&place, &path)?;
            } else {
                self.put(&place, &fs::read(&path)?, 0o644)?;
            }
        }
        Ok(())
    }
}

/// Creates all files in `directory`. The program itself writes its man pages and completions.
/// `licences` is the text of the licences of its dependencies.
pub(crate) fn stage(recipe: &Recipe, program: &Path, licences: &str, directory: &Path) -> Result<Staged> {
    let root = &recipe.root;
    let _ = fs::remove_dir_all(directory);
    let staged = Staged { directory: directory.to_owned() };
    staged.put("usr/bin/iosched", &fs::read(program)?, 0o755)?;
    for (from, to) in COPIED {
        staged.put(to, &fs::read(root.join(from)).with_context(|| from.to_owned())?, 0o644)?;
    }
    staged.put_directory(&format!("{DOCUMENTS}/examples"), &root.join(WORKLOADS))?;
    staged.put(
        &format!("{DOCUMENTS}/copyright"),
        copyright(&fs::read_to_string(root.join("LICENSE-MIT"))?).as_bytes(),
        0o644,
    )?;
    staged.put(&format!("{DOCUMENTS}/changelog.gz"), &gzipped(&fs::read(root.join("CHANGELOG.md"))?)?, 0o644)?;
    staged.put(&format!("{DOCUMENTS}/third-party-licences.gz"), &gzipped(licences.as_bytes())?, 0o644)?;
    let debian = debian_changelog(root)?;
    staged.put(&format!("{DOCUMENTS}/changelog.Debian.gz"), &gzipped(debian.as_bytes())?, 0o644)?;
    for (shell, place) in COMPLETIONS {
        staged.put(place, printed(Command::new(program).args(["completions", shell]))?.as_bytes(), 0o644)?;
    }
    manual(&staged, program)?;
    // The permissions must not depend on the umask of this process.
    done(Command::new("chmod").args(["-R", "u+rw,go-w,a+rX"]).arg(directory))?;
    Ok(staged)
}

/// Adds a man page for every command.
fn manual(staged: &Staged, program: &Path) -> Result<()> {
    let written = staged.directory.with_extension("man");
    let _ = fs::remove_dir_all(&written);
    done(Command::new(program).args(["man", "--dir"]).arg(&written))?;
    for entry in fs::read_dir(&written)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        staged.put(&format!("{MANUAL}/{name}.gz"), &gzipped(&fs::read(&path)?)?, 0o644)?;
    }
    Ok(fs::remove_dir_all(&written)?)
}

/// Compresses like `gzip -9n`, so that equal input gives equal bytes.
fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Returns the licences in Debian's format:
/// <https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/>.
fn copyright(mit: &str) -> String {
    let owner = mit.lines().find_map(|line| line.strip_prefix("Copyright (c) ")).unwrap_or("the iosched authors");
    let terms = mit.split_once("\n\n").and_then(|(_, rest)| rest.split_once("\n\n")).map_or(mit, |(_, terms)| terms);
    let terms: Vec<String> = terms
        .trim_end()
        .lines()
        .map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: iosched\n\n\
         Files: *\nCopyright: {owner}\nLicense: Apache-2.0 or MIT\n\n\
         License: Apache-2.0\n On Debian systems, the text of the Apache License, Version 2.0, is in\n \
         /usr/share/common-licenses/Apache-2.0.\n\n\
         License: MIT\n{}\n",
        terms.join("\n")
    )
}

/// Returns a changelog with one entry, from which Debian's tools read the version. The date of the
/// entry is the date of the last commit.
fn debian_changelog(root: &Path) -> Result<String> {
    let date = printed(Command::new("git").current_dir(root).args(["log", "-1", "--format=%cD"]))?;
    Ok(format!(
        "iosched ({VERSION}-1) unstable; urgency=medium\n\n  * What has changed is in changelog.gz.\n\n -- {}  {}\n",
        MAINTAINER,
        date.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_copyright_is_made_from_the_licence_file() {
        let text = copyright("MIT License\n\nCopyright (c) 2026 somebody\n\nPermission\nis granted\n\nTHE END\n");
        assert!(text.contains("Copyright: 2026 somebody\n"), "{text}");
        assert!(text.ends_with("License: MIT\n Permission\n is granted\n .\n THE END\n"), "{text}");
    }

    #[test]
    fn a_directory_is_copied_with_its_subdirectories() {
        let here = tempfile::tempdir().unwrap();
        let from = here.path().join("from");
        fs::create_dir_all(from.join("plan")).unwrap();
        fs::write(from.join("job.fio"), "job").unwrap();
        fs::write(from.join("plan/intents.toml"), "intents").unwrap();
        let staged = Staged { directory: here.path().join("package") };
        staged.put_directory("examples", &from).unwrap();
        assert_eq!(fs::read_to_string(staged.directory.join("examples/job.fio")).unwrap(), "job");
        assert_eq!(fs::read_to_string(staged.directory.join("examples/plan/intents.toml")).unwrap(), "intents");
    }

    #[test]
    fn compression_is_reproducible() {
        assert_eq!(gzipped(b"page").unwrap(), gzipped(b"page").unwrap());
    }
}
