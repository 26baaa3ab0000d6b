//! Tests of file systems on a loop device over a mounted disk, and of programs that use these file
//! systems. All data must be intact at the end.

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{Loop, Mount, Mounted, available, directory, has_fuse, has_program, image, is_root, output, sh};

/// Returns whether everything that these tests need is available.
fn has_all(programs: &[&str]) -> bool {
    has_fuse() && is_root() && programs.iter().all(|program| has_program(program))
}

/// Creates a file system, runs programs on it, and checks it.
fn is_clean_after_use(kind: &str, image_bytes: u64, check: &str) {
    if !has_all(&[&format!("mkfs.{kind}"), "git", "fs_mark"]) {
        return;
    }
    let here = directory(&format!("filesystem-{kind}"));
    let image = image(&here, "disk.img", image_bytes);
    let mounted = Mounted::new(&here, "sda", image.to_str().unwrap(), &[]);
    let Some(below) = Loop::new(&mounted.disk()) else { return };
    sh(&format!("mkfs.{kind} -q \"$1\""), &[&below.device]);
    let mount = Mount::new(kind, &below.device, here.join("inner"));

    let repository = here.join("repository");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let commit = "git init -q \"$1\"; cp -r \"$2\" \"$1\"; cd \"$1\"; git add .\n\
                  git -c user.name=t -c user.email=t@localhost commit -qm all";
    sh(commit, &[&repository, &source]);
    // Several threads call fsync while git clones a repository. Removed files make holes.
    let script = "cd \"$1\"; mkdir marks\n\
                  fs_mark -d marks -t 4 -n 100 -s 10240 -L 2 -k -l \"$3/fs_mark.log\" > \"$3/fs_mark.out\" 2>&1 & marks=$!\n\
                  git clone -q --no-local \"file://$2\" clone; cp -r \"$2\" copy; sync; rm -r copy\n\
                  wait $marks; fstrim .";
    sh(script, &[&mount.at, &repository, &here]);
    mount.end();

    let mount = Mount::new(kind, &below.device, here.join("inner"));
    let script = "git -C \"$1/clone\" fsck --strict; [ -z \"$(git -C \"$1/clone\" status --porcelain)\" ]\n\
                  diff -r \"$2\" \"$1/clone/src\"; [ \"$(find \"$1/marks\" -type f -size 10240c | wc -l)\" = 800 ]";
    sh(script, &[&mount.at, &source]);
    mount.end();
    sh(check, &[&below.device]);
    drop(below);
    assert_eq!(mounted.end(), 0);
    // The flushed data is in the image.
    sh(check, &[&image]);
}

#[test]
fn ext4_is_clean_after_use() {
    is_clean_after_use("ext4", 128 << 20, "fsck.ext4 -fn \"$1\"");
}

#[test]
fn xfs_is_clean_after_use() {
    is_clean_after_use(
        "xfs",
        512 << 20,
        "if [ -b \"$1\" ]; then xfs_repair -n \"$1\"; else xfs_repair -n -f \"$1\"; fi",
    );
}

/// A database server that is stopped at the end of the test.
struct Postgres {
    programs: PathBuf,
    user: (u32, u32),
    folder: PathBuf,
}

impl Postgres {
    /// Creates a database in `folder`, with checksums. Returns `None` if PostgreSQL is not
    /// installed.
    fn new(folder: PathBuf) -> Option<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("pgbench").exists());
        let id = |option| output(Command::new("id").args([option, "postgres"]))?.trim().parse().ok();
        available(programs.is_some(), "PostgreSQL").then_some(())?;
        let user = (id("-u")?, id("-g")?);
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(user.0), Some(user.1)).unwrap();
        let postgres = Self { programs: programs?, user, folder };
        postgres.run("initdb", &["-k", "-D", "data", "-A", "trust", "-U", "postgres"]);
        Some(postgres)
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder).uid(self.user.0).gid(self.user.1).args(args);
        command.env("PGHOST", &self.folder).env("PGUSER", "postgres").env("PGDATABASE", "postgres").env("LC_ALL", "C");
        command
    }

    #[track_caller]
    fn run(&self, program: &str, args: &[&str]) -> String {
        output(&mut self.command(program, args)).expect("PostgreSQL is installed")
    }

    #[track_caller]
    fn start(&self) {
        let options = format!("-c listen_addresses= -c unix_socket_directories={}", self.folder.display());
        self.run("pg_ctl", &["start", "-w", "-D", "data", "-l", "log", "-o", &options]);
    }

    #[track_caller]
    fn stop(&self, mode: &str) {
        self.run("pg_ctl", &["stop", "-w", "-D", "data", "-m", mode]);
    }

    fn bench(&self) -> Child {
        let args = ["-c", "8", "-j", "2", "-T", "4", "-n"];
        self.command("pgbench", &args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Asserts that the sums agree. Each transaction adds the same amount to an account, a teller
    /// and a branch, and adds a record of it.
    #[track_caller]
    fn is_consistent(&self) {
        let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), \
                    (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history), \
                    (SELECT count(*) FROM pgbench_history)";
        let shown = self.run("psql", &["-At", "-F", " ", "-c", sums]);
        let numbers: Vec<i64> = shown.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!(numbers[..4].iter().all(|sum| *sum == numbers[0]) && numbers[4] > 0, "{shown}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The server has been stopped, unless the test failed.
        let stop = ["stop", "-w", "-D", "data", "-m", "immediate"];
        let _ = self.command("pg_ctl", &stop).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_database_is_consistent_after_its_crash() {
    if !has_all(&["mkfs.ext4", "id"]) {
        return;
    }
    let here = directory("filesystem-database");
    let image = image(&here, "disk.img", 512 << 20);
    let mounted = Mounted::new(&here, "sda", image.to_str().unwrap(), &[]);
    let Some(below) = Loop::new(&mounted.disk()) else { return };
    sh("mkfs.ext4 -q \"$1\"", &[&below.device]);
    // A directory that another user can access. Its path is short enough for sockets.
    let place = std::env::temp_dir().join(format!("iosched-database-{}", std::process::id()));
    let mount = Mount::new("ext4", &below.device, place.clone());
    let Some(postgres) = Postgres::new(mount.at.join("pg")) else { return };
    postgres.start();
    postgres.run("pgbench", &["-i", "-q", "-s", "2"]);
    assert!(postgres.bench().wait().unwrap().success());
    postgres.is_consistent();
    postgres.stop("fast");
    postgres.run("pg_checksums", &["--check", "-D", "data"]);

    postgres.start();
    let mut bench = postgres.bench();
    thread::sleep(Duration::from_secs(2));
    postgres.stop("immediate");
    bench.wait().unwrap();
    postgres.start();
    let log = fs::read_to_string(postgres.folder.join("log")).unwrap();
    assert!(log.contains("automatic recovery in progress"), "{log}");
    postgres.is_consistent();
    postgres.stop("fast");
    postgres.run("pg_checksums", &["--check", "-D", "data"]);
    drop(postgres);
    mount.end();
    fs::remove_dir(place).unwrap();
    sh("fsck.ext4 -fn \"$1\"", &[&below.device]);
    drop(below);
    assert_eq!(mounted.end(), 0);
}
