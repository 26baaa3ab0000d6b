use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::roots::Roots;
use crate::state::StateDirectory;

const FILE_BYTES: u64 = 8192;

/// A directory for a target, next to files of another user.
struct Place {
    here: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let here = tempfile::tempdir().unwrap();
        for name in ["data", "victim", "victim/0"] {
            fs::create_dir(here.path().join(name)).unwrap();
        }
        for name in ["0/0", "0/disk", "disk", "1"] {
            fs::write(here.path().join("victim").join(name), "precious").unwrap();
        }
        Self { here }
    }

    fn target(&self) -> Target {
        let state = StateDirectory::at(&self.here.path().join("state"));
        Target::directory(&Roots::default(), &self.here.path().join("data"), &state).unwrap()
    }

    /// Returns the directory that iosched created.
    fn own_directory(&self) -> PathBuf {
        fs::read_dir(self.here.path().join("data")).unwrap().next().unwrap().unwrap().path()
    }

    /// Acts as an attacker: replaces `path` by a symbolic link to the victim's files.
    fn exchange(&self, path: &Path) {
        fs::rename(path, self.here.path().join("moved")).unwrap();
        symlink(self.here.path().join("victim"), path).unwrap();
    }

    fn is_untouched(&self) -> bool {
        let victim = self.here.path().join("victim");
        let is_whole = |name: &str| fs::read(victim.join(name)).is_ok_and(|text| text == b"precious");
        let names = |path: PathBuf| fs::read_dir(path).unwrap().count();
        ["0/0", "0/disk", "disk", "1"].iter().all(|name| is_whole(name))
            && (names(victim.clone()), names(victim.join("0"))) == (3, 2)
    }
}

fn files() -> Need {
    Need::Files(vec![(0, FILE_BYTES), (FILE_BYTES, FILE_BYTES)])
}

fn names_the_exchange(error: &ExecuteError) -> bool {
    error.to_string().contains("replaced or moved")
}

#[test]
fn fill_writes_nothing_through_an_exchanged_directory() {
    for depth in ["", "0"] {
        let place = Place::new();
        let target = place.target();
        let ground = Ground::new(&target, files()).unwrap();
        place.exchange(&if depth.is_empty() { place.own_directory() } else { place.own_directory().join(depth) });
        let error = ground.fill(None).unwrap_err();
        assert!(names_the_exchange(&error), "{error}");
        drop(ground);
        drop(target);
        assert!(place.is_untouched(), "{depth:?}");
    }
}

#[test]
fn open_fails_after_its_directory_is_exchanged() {
    let place = Place::new();
    let target = place.target();
    let ground = Ground::new(&target, files()).unwrap();
    ground.fill(None).unwrap();
    place.exchange(&place.own_directory());
    let opened = ground.open(0, Access { write: true, ..Access::default() });
    assert!(opened.err().is_some_and(|error| names_the_exchange(&error)));
    assert!(ground.drop_cached().err().is_some_and(|error| names_the_exchange(&error)));
}

#[test]
fn file_that_became_a_symlink_is_not_followed() {
    let place = Place::new();
    let target = place.target();
    let ground = Ground::new(&target, files()).unwrap();
    let file = place.own_directory().join("0/0");
    fs::remove_file(&file).unwrap();
    symlink(place.here.path().join("victim/1"), &file).unwrap();
    assert!(ground.fill(None).is_err());
    assert!(ground.open(0, Access { write: true, ..Access::default() }).is_err());
    assert!(place.is_untouched());
}

#[test]
fn ground_end_removes_nothing_via_an_exchanged_directory() {
    let place = Place::new();
    let target = place.target();
    let ground = Ground::new(&target, files()).unwrap();
    place.exchange(&place.own_directory());
    drop(ground);
    drop(target);
    assert!(place.is_untouched());
    assert_eq!(fs::read_dir(place.here.path().join("moved")).unwrap().count(), 0, "iosched removes its own files");
}

#[test]
fn kept_file_is_not_reused_from_an_exchanged_directory() {
    let place = Place::new();
    let target = place.target().with_disk_bytes(FILE_BYTES).keeping_disk();
    Ground::new(&target, Need::Disk { reach_bytes: 0 }).unwrap().fill(None).unwrap();
    place.exchange(&place.own_directory().join("0"));
    assert!(Ground::new(&target, Need::Disk { reach_bytes: 0 }).is_err());
    drop(target);
    assert!(place.is_untouched());
}

#[test]
fn an_exchange_after_the_last_run_is_an_error() {
    let place = Place::new();
    let target = place.target();
    let mut ground = Ground::new(&target, files()).unwrap();
    let own_directory = place.own_directory();
    place.exchange(&own_directory.join("0"));
    assert!(names_the_exchange(&ground.remove().unwrap_err()));
    drop(ground);
    fs::remove_dir_all(place.here.path().join("moved")).unwrap();
    place.exchange(&own_directory);
    assert!(target.remove().unwrap_err().to_string().contains("replaced or moved"));
    assert!(place.is_untouched());
}
