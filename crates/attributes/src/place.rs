//! Places of disks, by the names that users give: `sda`, `/dev/sda`, a mount point, a file,
//! `live:NAME`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use iosched_kernel::{BlockDevice, Roots};

use crate::AttributesError;
use crate::error::{failed, wrong};

/// Prefix of the name of a served disk. The name is also the name of its control socket.
pub(crate) const LIVE: &str = "live:";
/// File extension of named control sockets.
const SOCKET: &str = "control";
/// Directory of the administrator's control sockets.
const OF_ADMINISTRATORS: &str = "/run/iosched";

/// Returns whether a word of a command line names a place of disks and not an attribute.
pub(crate) fn is_place(word: &str) -> bool {
    word.starts_with(LIVE)
        || ["/", "./", "../"].iter().any(|begin| word.starts_with(begin))
        || (!word.contains('/') && BlockDevice::named(&Roots::default(), word).is_ok())
        // A relative path of a mounted disk's directory or of a control socket.
        || Path::new(word).join("block").is_dir()
        || iosched_live::control::is_socket(Path::new(word))
}

/// Returns the directories of named control sockets. The first directory is the runtime directory
/// that systemd gives a service. Then come the administrator's and the user's directory. For users
/// other than root, the user's directory comes before the administrator's. This process creates its
/// sockets in the first directory of the list.
fn directories() -> Vec<PathBuf> {
    let of_service = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(|of_user| Path::new(&of_user).join("iosched"));
    let mut all = vec![PathBuf::from(OF_ADMINISTRATORS)];
    all.extend(of_user);
    if !rustix::process::geteuid().is_root() {
        all.reverse();
    }
    of_service.into_iter().chain(all).collect()
}

/// Returns the control socket of a served disk if `given` has the prefix `live:`. Fails if no such
/// served disk exists.
pub(crate) fn live(given: &Path) -> Result<Option<PathBuf>, AttributesError> {
    let Some(name) = given.to_str().and_then(|given| given.strip_prefix(LIVE)) else { return Ok(None) };
    let file = file(name)?;
    let found = directories().into_iter().map(|directory| directory.join(&file));
    found.into_iter().find(|path| iosched_live::control::is_socket(path)).map(Some).ok_or_else(|| {
        let there = lives();
        let meant = iosched_lab::nearest(name, there.iter().map(String::as_str));
        wrong(match (meant, there.as_slice()) {
            (Some(meant), _) => format!("{LIVE}{name}: there is no such served disk; did you mean {LIVE}{meant}?"),
            (None, []) => {
                format!(
                    "{LIVE}{name}: there is no such served disk; start one with iosched serve DISK --control \
                     {LIVE}{name}"
                )
            }
            (None, there) => {
                format!("{LIVE}{name}: there is no such served disk; served disks are {}", there.join(", "))
            }
        })
    })
}

/// Returns the names of served disks that this process can find.
#[must_use]
pub fn lives() -> Vec<String> {
    let entries =
        directories().into_iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| iosched_live::control::is_socket(path));
    let names = sockets.filter(|path| path.extension().is_some_and(|extension| extension == SOCKET));
    let mut names: Vec<_> = names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the path for a new control socket. For a name, this is a path in the first directory of
/// sockets, which the function creates. Any other path is returned unchanged.
///
/// # Errors
/// The name is not one word, or the directory cannot be created.
pub fn socket_to_make(given: &Path) -> Result<PathBuf, AttributesError> {
    let Some(name) = given.to_str().and_then(|given| given.strip_prefix(LIVE)) else { return Ok(given.to_owned()) };
    let file = file(name)?;
    let Some(directory) = directories().into_iter().next() else {
        return Err(wrong(format!("{LIVE}{name}: there is no directory for named sockets; give a path to --control")));
    };
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    created.map_err(|error| failed(format!("{LIVE}{name}: {}: {error}", directory.display())))?;
    Ok(directory.join(file))
}

fn file(name: &str) -> Result<String, AttributesError> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return Err(wrong(format!(
            "{LIVE}{name}: the name of a served disk is one word without slashes, such as \
             {LIVE}db"
        )));
    }
    Ok(format!("{name}.{SOCKET}"))
}
