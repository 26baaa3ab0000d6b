//! Tests of a disk that grows while a guest uses it.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::Server;
use super::guest::{Guest, OUT};

const MIB: u64 = 1 << 20;

#[test]
fn guest_is_notified_of_growth_and_uses_the_new_space() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8 * MIB).unwrap();
    let server = Server::new(file.path().to_str().unwrap(), &["vm"]);
    let rescan = || server.served.as_ref().unwrap().handle.control(|disk, _| disk.rescan().map_err(|e| e.to_string()));
    let (mut notified, channel) = UnixStream::pair().unwrap();
    let (mut guest, mut deaf) = (Guest::new(1), Guest::new(1));
    guest.channel = Some(channel);
    guest.connect(&server.socket(0));
    let sectors = |guest: &mut Guest| u64::from_le_bytes(guest.config(0, 8).try_into().unwrap());
    assert_eq!(sectors(&mut guest), 8 * MIB / 512);
    assert!(guest.call(OUT, 8 * MIB / 512, &[1; 512], 0).is_err());
    notified.set_nonblocking(true).unwrap();

    assert_eq!(rescan().unwrap(), Ok(8 * MIB), "nothing has changed");
    assert!(guest.call(OUT, 0, &[1; 512], 0).is_ok());
    assert!(notified.read(&mut [0; 12]).is_err(), "no notification is sent");

    file.as_file().set_len(16 * MIB + 100).unwrap();
    assert_eq!(rescan().unwrap(), Ok(16 * MIB));
    notified.set_nonblocking(false).unwrap();
    notified.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut message = [0xff; 12];
    notified.read_exact(&mut message).unwrap();
    assert_eq!(message, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], "CONFIG_CHANGE_MSG, version 1, without payload");
    assert_eq!(sectors(&mut guest), 16 * MIB / 512);
    guest.write(16 * MIB / 512 - 1, &[7; 512]);
    assert_eq!(guest.read(16 * MIB / 512 - 1, 512), [7; 512]);
    guest.disconnect();

    // A frontend without a channel must read the new size itself.
    deaf.connect(&server.socket(0));
    file.as_file().set_len(24 * MIB).unwrap();
    rescan().unwrap().unwrap();
    assert_eq!(sectors(&mut deaf), 24 * MIB / 512);

    file.as_file().set_len(12 * MIB).unwrap();
    let refused = rescan().unwrap().unwrap_err();
    assert!(refused.contains("has shrunk to 12582912 bytes, but clients see 25165824"), "{refused}");
    assert_eq!(sectors(&mut deaf), 24 * MIB / 512);
}
