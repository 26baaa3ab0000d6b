//! Makes the Debian package and the tarball from the same files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::stage::{MAINTAINER, Staged};
use super::{Recipe, VERSION, done, printed};

/// Scripts that run before and after files are installed and removed.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Returns Debian's name for the architecture of this machine.
fn architecture() -> Result<&'static str> {
    Ok(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no package is made for {other}"),
    })
}

/// Returns the name of the Debian package.
pub(crate) fn deb_name() -> Result<String> {
    Ok(format!("iosched_{VERSION}-1_{}.deb", architecture()?))
}

/// Makes the package. It has no dependencies, but mounting a served disk needs fuse3.
pub(crate) fn deb(recipe: &Recipe, staged: &Staged) -> Result<PathBuf> {
    let (root, output) = (&recipe.root, &recipe.output);
    let tree = output.join("deb");
    let _ = fs::remove_dir_all(&tree);
    done(Command::new("cp").arg("-a").args([&staged.directory, &tree]))?;
    // Debian itself provides these licences, so the package does not contain them.
    fs::remove_file(tree.join("usr/share/doc/iosched/LICENSE-APACHE"))?;
    fs::remove_file(tree.join("usr/share/doc/iosched/LICENSE-MIT"))?;
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control)?;
    let kib = printed(Command::new("du").args(["-sk", "--apparent-size"]).arg(&tree))?;
    let kib = kib.split_whitespace().next().unwrap_or("0").to_owned();
    let architecture = architecture()?;
    fs::write(
        control.join("control"),
        format!(
            "Package: iosched\nVersion: {VERSION}-1\nSection: admin\nPriority: optional\nArchitecture: {architecture}\n\
             Maintainer: {MAINTAINER}\nInstalled-Size: {kib}\nRecommends: fuse3\nSuggests: blktrace, fio\n\
             Description: choose, tune and run I/O schedulers, with evidence\n \
             Finds the I/O scheduler and the tunables that serve a workload best. It\n \
             compares settings in simulation, or on a real device under the schedulers\n \
             of the kernel. The result shows how certain each difference is.\n .\n \
             iosched can also serve a disk to several clients, and give each client its\n \
             share of the disk.\n"
        ),
    )?;
    for name in SCRIPTS {
        let to = control.join(name);
        fs::copy(root.join("packaging/debian").join(name), &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    md5sums(&tree)?;
    let deb = output.join(deb_name()?);
    // Every version of Debian since buster supports xz.
    let compression: &[&str] = if recipe.is_light { &["-Zgzip", "-z1"] } else { &["-Zxz"] };
    let mut command = recipe.command("dpkg-deb");
    done(command.args(compression).args(["--root-owner-group", "--build"]).args([&tree, &deb]))?;
    fs::remove_dir_all(&tree)?;
    Ok(deb)
}

/// Writes the checksums for `dpkg --verify`.
fn md5sums(tree: &Path) -> Result<()> {
    let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums";
    done(Command::new("sh").args(["-ec", sums]).current_dir(tree))
}

/// Returns the name of the directory in the tarball.
pub(crate) fn tarball_directory() -> String {
    format!("iosched-{VERSION}-{}-linux", std::env::consts::ARCH)
}

/// Makes the tarball. The subdirectories bin, lib and share of its directory have the same files as
/// the Debian package, for /usr/local or any other place.
pub(crate) fn tarball(recipe: &Recipe, staged: &Staged) -> Result<PathBuf> {
    let name = tarball_directory();
    let file = recipe.output.join(format!("{name}.tar.gz"));
    let level = if recipe.is_light { 1 } else { 9 };
    let mut tar = recipe.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", recipe.epoch)).arg(format!("--transform=s,^usr,{name},"));
    tar.arg(format!("--use-compress-program=gzip -n{level}")).arg("-cf").arg(&file);
    done(tar.arg("-C").args([staged.directory.as_path(), Path::new("usr")]))?;
    Ok(file)
}
