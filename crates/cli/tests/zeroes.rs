//! Tests of zeroes, holes and trims on every backing: the data that a client reads, and the room
//! that stays allocated.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use common::{Loop, Mount, Mounted, Server, directory, has_fuse, has_program, image, is_root, sh};

const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const NO_HOLE: u16 = 2;

const SIZE: usize = 8 << 20;

/// A client that has one request in flight, or sends many requests and then reads the replies.
struct Client(UnixStream);

impl Client {
    fn send(&mut self, command: u16, flags: u16, offset: usize, length: usize, data: &[u8]) {
        let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend((offset as u64).to_be_bytes());
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend(data);
        self.0.write_all(&bytes).unwrap();
    }

    fn succeeded(&mut self) {
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], [0; 4], "the request has failed");
    }

    fn ask(&mut self, command: u16, flags: u16, offset: usize, length: usize, data: &[u8]) {
        self.send(command, flags, offset, length, data);
        self.succeeded();
    }

    fn read_all(&mut self) -> Vec<u8> {
        self.ask(0, 0, 0, SIZE, &[]);
        let mut data = vec![0; SIZE];
        self.0.read_exact(&mut data).unwrap();
        data
    }
}

/// The properties that differ between backings.
#[derive(Clone, Copy)]
struct Expected {
    /// Whether trimmed or zeroed ranges use no room.
    holes: bool,
    /// Whether trimmed ranges keep their data.
    keeps_trimmed: bool,
}

const HOLES: Expected = Expected { holes: true, keeps_trimmed: false };

fn zeroes_and_trims(here: &Path, backing: &str, file: Option<&Path>, expected: Expected) {
    let server = Server::serving(here, &[backing]);
    let mut client = Client(server.connect());
    let mut data: Vec<u8> = (0..SIZE).map(|at| (at / 512 * 7 + at) as u8 | 1).collect();
    let allocated = |client: &mut Client| {
        client.ask(FLUSH, 0, 0, 0, &[]);
        file.map_or(0, |file| fs::metadata(file).unwrap().blocks() * 512)
    };
    client.ask(WRITE, 0, 0, SIZE, &data);
    let whole = allocated(&mut client);

    // Many requests at once, aligned and unaligned. If the backing lacks the operation, each of
    // these requests gets this error.
    for number in 0..32 {
        let place = number * 40_000..number * 40_000 + 30_001;
        client.send(WRITE_ZEROES, NO_HOLE, place.start, place.len(), &[]);
        data[place].fill(0);
    }
    (0..32).for_each(|_| client.succeeded());
    assert!(client.read_all() == data, "{backing}: wrong data after WRITE_ZEROES with NO_HOLE");
    assert!(allocated(&mut client) >= whole, "{backing}: WRITE_ZEROES with NO_HOLE made a hole");

    for number in 0..8 {
        let place = (2 << 20) + number * 200_003..(2 << 20) + number * 200_003 + 150_000;
        client.send(WRITE_ZEROES, 0, place.start, place.len(), &[]);
        data[place].fill(0);
    }
    (0..8).for_each(|_| client.succeeded());
    assert!(client.read_all() == data, "{backing}: wrong data after WRITE_ZEROES");
    let left = allocated(&mut client);
    if expected.holes && file.is_some() {
        assert!(left < whole - 8 * 140_000, "{backing}: {left} of {whole} bytes are left");
    }

    let trimmed = 6 << 20..7 << 20;
    client.ask(TRIM, 0, trimmed.start, trimmed.len(), &[]);
    if !expected.keeps_trimmed {
        data[trimmed].fill(0);
    }
    assert!(client.read_all() == data, "{backing}: wrong data after TRIM");
    if expected.holes && file.is_some() {
        assert!(allocated(&mut client) + (1 << 20) <= left, "{backing}: TRIM made no hole");
    }
    // Writing into holes does not run out of room.
    client.ask(WRITE, 0, 0, SIZE, &vec![5; SIZE]);
    assert!(client.read_all() == [5; SIZE], "{backing}");
    drop(client);
    assert_eq!(server.stop(), Some(0));
}

fn on_file(name: &str, folder: &Path, expected: Expected) {
    let here = directory(name);
    let file = image(folder, "disk.img", SIZE as u64);
    zeroes_and_trims(&here, file.to_str().unwrap(), Some(&file), expected);
}

#[test]
fn zeroes_and_trims_work_on_memory_and_modelled_disks() {
    for backing in ["memory:8M", "model:sata-ssd,size=8M"] {
        zeroes_and_trims(&directory("zeroes-memory"), backing, None, HOLES);
    }
}

#[test]
fn zeroes_and_trims_work_on_files_on_disk_and_in_memory() {
    on_file("zeroes-file", &directory("zeroes-file-disk"), HOLES);
    let shared = PathBuf::from(format!("/dev/shm/iosched-zeroes-{}", std::process::id()));
    if fs::create_dir(&shared).is_ok() {
        let ended = std::panic::catch_unwind(|| on_file("zeroes-shared", &shared, HOLES));
        fs::remove_dir_all(&shared).unwrap();
        ended.unwrap();
    }
}

#[test]
fn zeroes_and_trims_work_on_ext2_with_holes_only() {
    if !is_root() || !has_program("mkfs.ext2") {
        return;
    }
    let here = directory("zeroes-ext2");
    let image = image(&here, "ext2.img", 32 << 20);
    let Some(below) = Loop::new(&image) else { return };
    sh("mkfs.ext2 -q \"$1\"", &[&below.device]);
    let mount = Mount::new("ext2", &below.device, here.join("ext2"));
    on_file("zeroes-on-ext2", &mount.at, HOLES);
    mount.end();
}

#[test]
fn zeroes_and_trims_work_on_ramfs_without_holes() {
    if !is_root() {
        return;
    }
    let here = directory("zeroes-ramfs");
    let mount = Mount::new("ramfs", Path::new("none"), here.join("ramfs"));
    on_file("zeroes-on-ramfs", &mount.at, Expected { holes: false, keeps_trimmed: true });
    // A hole in the mounted disk also reads as zeroes.
    if has_fuse() {
        let image = image(&mount.at, "mounted.img", 1 << 20);
        fs::write(&image, vec![7; 1 << 20]).unwrap();
        let mounted = Mounted::new(&here, "sda", image.to_str().unwrap(), &[]);
        sh("fallocate --punch-hole --offset 10000 --length 100000 \"$1\"", &[&mounted.disk()]);
        let mut expected = vec![7; 1 << 20];
        expected[10_000..110_000].fill(0);
        assert!(fs::read(mounted.disk()).unwrap() == expected);
        assert_eq!(mounted.end(), 0);
        assert!(fs::read(&image).unwrap() == expected);
    }
    mount.end();
}

#[test]
fn zeroes_and_trims_work_on_block_devices() {
    if !is_root() {
        return;
    }
    let here = directory("zeroes-device");
    let image = image(&here, "disk.img", SIZE as u64);
    let Some(below) = Loop::new(&image) else { return };
    zeroes_and_trims(&here, below.device.to_str().unwrap(), Some(&image), HOLES);
}

#[test]
fn sparse_images_are_copied_without_changes() {
    let here = directory("zeroes-copy");
    let sparse = image(&here, "in", SIZE as u64);
    let data: Vec<u8> = (0..SIZE).map(|at| if at / 300_000 % 3 == 0 { (at / 512 + at) as u8 } else { 0 }).collect();
    fs::write(&sparse, &data).unwrap();
    sh("fallocate --dig-holes \"$1\"", &[&sparse]);
    let disk = image(&here, "disk.img", SIZE as u64);
    let server = Server::serving(&here, &["disk.img"]);
    let uri = "nbd+unix:///?socket=s";
    for program in [
        &["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "in", uri][..],
        &["nbdcopy", "--flush", "in", uri],
        &["nbdcopy", "--flush", "--allocated", "in", uri],
    ] {
        // The old data would show where zeroes were not written.
        Client(server.connect()).ask(WRITE, 0, 0, SIZE, &vec![9; SIZE]);
        if server.client(program[0], &program[1..]).is_some() {
            assert!(fs::read(&disk).unwrap() == data, "{program:?}");
        }
    }
    assert_eq!(server.stop(), Some(0));
}
