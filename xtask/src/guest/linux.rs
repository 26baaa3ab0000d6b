//! The boot files of guests: Debian's kernel, and an initramfs with programs of this machine and
//! the init script.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

pub(crate) const EMULATOR: &str = "qemu-system-x86_64";
/// Arguments of the kernel. The kernel panics if its timer check fails. On a busy machine, an
/// emulated timer can fail this check, so the check is off. After a fault, the kernel would
/// continue and hang later. With these arguments it panics immediately, and the emulator ends.
pub(crate) const KERNEL_ARGUMENTS: &str = "console=ttyS1 panic=-1 oops=panic no_timer_check";
/// Kernels: the series, the directory of the unpacked package, and a package for virtual machines
/// that depends on the newest kernel of the series.
const KERNELS: [(&str, &str, &str); 2] =
    [("6.12", "kernel", "linux-image-6.12-cloud-amd64"), ("6.1", "kernel-6.1", "linux-image-cloud-amd64")];
/// Series of all kernels. The first one is the default.
pub(crate) const SERIES: [&str; 2] = [KERNELS[0].0, KERNELS[1].0];

/// Runs a program and returns its output. If the program fails, returns an error.
fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {}", command.get_program().display(), output.status, text.trim());
    Ok(output)
}

/// Returns the directory of all boot files.
pub(crate) fn folder(target: &Path) -> Result<PathBuf> {
    let folder = target.join("guest");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Returns the directory of the unpacked kernel package. Downloads the package if it is missing.
pub(crate) fn kernel(folder: &Path, series: &str) -> Result<PathBuf> {
    let known = KERNELS.iter().find(|(of, _, _)| *of == series);
    let &(_, directory, metapackage) = known.with_context(|| format!("no guest has Linux {series}"))?;
    let kernel = folder.join(directory);
    if kernel.is_dir() {
        return Ok(kernel);
    }
    let depends = output(Command::new("apt-cache").args(["depends", metapackage]))?;
    let depends = String::from_utf8(depends.stdout)?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.with_context(|| format!("{metapackage} is not known here: apt-get update?"))?;
    ensure!(package.starts_with(&format!("linux-image-{series}.")), "{metapackage} is {package}, not Linux {series}");
    println!("fetching {package}");
    output(Command::new("apt-get").args(["-q", "download", package]).current_dir(folder))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let file = entries(folder)?.into_iter().find(is_package).context("apt-get has left no package")?;
    // Because of the rename, the directory appears completely or not at all.
    let unpacked = folder.join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    output(Command::new("dpkg").arg("-x").args([&file, &unpacked]))?;
    fs::rename(&unpacked, &kernel)?;
    fs::remove_file(file)?;
    Ok(kernel)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?)
}

/// Returns the path of the kernel image.
pub(crate) fn image(kernel: &Path) -> Result<PathBuf> {
    let is_image = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"));
    entries(&kernel.join("boot"))?.into_iter().find(is_image).context("the package has no kernel")
}

/// The contents of a guest's initramfs.
pub(crate) struct Contents<'a> {
    /// Programs of this machine, and the packages that have them.
    pub(crate) programs: &'a [(&'a str, &'a str)],
    /// Path of the iosched command. `None` if the guest does not need it.
    pub(crate) iosched: Option<&'a Path>,
    /// Drivers, as files of the kernel's package.
    pub(crate) modules: &'a [&'a str],
    /// The init script.
    pub(crate) init: &'a str,
    /// Names and texts of further scripts.
    pub(crate) parts: &'a [(&'a str, &'a str)],
}

impl Contents<'_> {
    /// Makes an initramfs with these contents and with the libraries of the programs.
    pub(crate) fn pack(&self, folder: &Path, name: &str, kernel: &Path) -> Result<PathBuf> {
        let root = folder.join(format!("{name}-root"));
        let _ = fs::remove_dir_all(&root);
        for directory in ["bin", "dev", "host", "mnt", "proc", "sys", "tmp"] {
            fs::create_dir_all(root.join(directory))?;
        }
        let mut files = BTreeSet::new();
        for (name, package) in self.programs {
            let found = found(name).with_context(|| format!("{name} is not here: install {package}"))?;
            let folder = if *name == "busybox" { "bin" } else { "host" };
            fs::copy(&found, root.join(folder).join(name))?;
            files.extend(libraries(&found)?);
        }
        if let Some(program) = self.iosched {
            // Most of the file is debug information, which the guest does not need.
            output(Command::new("strip").arg(program).arg("-o").arg(root.join("host/iosched")))?;
            files.extend(libraries(program)?);
        }
        for file in files {
            let place = root.join(file.strip_prefix("/")?);
            fs::create_dir_all(place.parent().unwrap_or(&root))?;
            fs::copy(&file, place)?;
        }
        let modules = entries(&kernel.join("lib/modules"))?.pop().context("the package has no modules")?;
        for module in self.modules.iter().map(Path::new) {
            let place = root.join(module.file_name().context("a module has a name")?);
            let (plain, packed) = (modules.join(module), modules.join(module).with_extension("ko.xz"));
            if packed.is_file() {
                fs::write(place, output(Command::new("xz").arg("-dc").arg(packed))?.stdout)?;
            } else if plain.is_file() {
                fs::copy(plain, place)?;
            }
            // If there is no file, the driver is built in, or this kernel does not have it.
        }
        for (name, text) in self.parts {
            fs::write(root.join(format!("{name}.sh")), text)?;
        }
        let init = root.join("init");
        fs::write(&init, self.init)?;
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
        let archive = folder.join(format!("{name}-initramfs"));
        let pack = "find . | cpio --quiet -o -H newc";
        let packed =
            Command::new("sh").args(["-c", pack]).current_dir(&root).stdout(File::create(&archive)?).status()?;
        ensure!(packed.success(), "the initramfs cannot be packed: install cpio");
        Ok(archive)
    }
}

fn found(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let administrators = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(administrators).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Returns the absolute paths of a program's shared libraries.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    // ldd fails for a static program.
    let linked = Command::new("ldd").arg(program).output()?;
    let linked = String::from_utf8(linked.stdout)?;
    Ok(linked.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}
