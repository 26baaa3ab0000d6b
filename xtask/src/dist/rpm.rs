//! Makes the RPM package from the same files as the Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::stage::Staged;
use super::{Recipe, VERSION, done, printed};

/// Spec file of the package, without its list of files.
const SPEC: &str = "packaging/rpm/iosched.spec";
/// Files that only Debian packages have.
const OF_DEBIAN: [&str; 2] = ["usr/share/doc/iosched/copyright", "usr/share/doc/iosched/changelog.Debian.gz"];
/// Files that have another directory in other distributions.
const MOVED: [(&str, &str); 1] = [("usr/share/zsh/vendor-completions", "usr/share/zsh/site-functions")];

/// Returns the name of the package.
pub(crate) fn name() -> String {
    format!("iosched-{VERSION}-1.{}.rpm", std::env::consts::ARCH)
}

/// Makes the package with rpmbuild.
pub(crate) fn rpm(recipe: &Recipe, staged: &Staged) -> Result<PathBuf> {
    let work = recipe.output.join("rpm");
    let _ = fs::remove_dir_all(&work);
    let tree = work.join("tree");
    fs::create_dir_all(&work)?;
    done(Command::new("cp").arg("-a").args([&staged.directory, &tree]))?;
    OF_DEBIAN.into_iter().try_for_each(|file| fs::remove_file(tree.join(file)))?;
    MOVED.into_iter().try_for_each(|(from, to)| fs::rename(tree.join(from), tree.join(to)))?;
    let files = printed(Command::new("find").current_dir(&tree).args(["usr", "-type", "f", "-printf", "/%p\\n"]))?;
    let spec = work.join("iosched.spec");
    let text = fs::read_to_string(recipe.root.join(SPEC)).context(SPEC)?;
    fs::write(&spec, format!("{text}\n%files\n{}", listed(&files)))?;

    let payload = if recipe.is_light { "w1.gzdio" } else { "w19.zstdio" };
    let mut rpmbuild = recipe.command("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", std::env::consts::ARCH, "--buildroot"]).arg(work.join("root"));
    for (name, value) in [
        ("_topdir", work.display().to_string()),
        ("iosched_version", VERSION.to_owned()),
        ("iosched_tree", tree.display().to_string()),
        ("_binary_payload", payload.to_owned()),
        // These values make packages of equal files equal.
        ("_buildhost", "localhost".to_owned()),
        ("use_source_date_epoch_as_buildtime", "1".to_owned()),
        ("clamp_mtime_to_source_date_epoch", "1".to_owned()),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    done(rpmbuild.arg(&spec)).context("rpmbuild is in the package rpm or rpm-build")?;
    let file = recipe.output.join(name());
    fs::copy(work.join("RPMS").join(std::env::consts::ARCH).join(name()), &file)?;
    fs::remove_dir_all(&work)?;
    Ok(file)
}

/// Returns the lines of the list of files. The list also has directories that only this package
/// uses.
fn listed(files: &str) -> String {
    let mut lines: Vec<String> = files.lines().map(str::to_owned).collect();
    let ours = |directory: &Path| directory.file_name().is_some_and(|name| name == "iosched");
    let mut directories: Vec<String> = Vec::new();
    for file in &lines {
        let mut within = Path::new(file).ancestors().skip(1).collect::<Vec<_>>();
        within.retain(|directory| directory.ancestors().any(ours));
        directories.extend(within.iter().map(|directory| format!("%dir {}", directory.display())));
    }
    lines.append(&mut directories);
    lines.sort();
    lines.dedup();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpm_list_has_directories_of_the_package_only() {
        let list = listed("/usr/bin/iosched\n/usr/share/doc/iosched/examples/db.conf\n");
        assert_eq!(
            list,
            "%dir /usr/share/doc/iosched\n%dir /usr/share/doc/iosched/examples\n/usr/bin/iosched\n\
             /usr/share/doc/iosched/examples/db.conf\n"
        );
    }
}
