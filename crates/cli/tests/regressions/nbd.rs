//! An NBD client that can send anything, and the server that must survive it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{PATIENCE, Server, wait_for};
use crate::list::Sandbox;

pub(crate) const OPT_EXPORT_NAME: u32 = 1;
pub(crate) const OPT_ABORT: u32 = 2;
pub(crate) const OPT_LIST: u32 = 3;
pub(crate) const OPT_STARTTLS: u32 = 5;
pub(crate) const OPT_GO: u32 = 7;
pub(crate) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(crate) const OPT_META_CONTEXT: u32 = 10;
pub(crate) const OPT_EXTENDED_HEADERS: u32 = 11;

pub(crate) const REP_ACK: u32 = 1;
pub(crate) const ERR_UNSUP: u32 = 0x8000_0001;
pub(crate) const ERR_POLICY: u32 = 0x8000_0002;
pub(crate) const ERR_INVALID: u32 = 0x8000_0003;
pub(crate) const ERR_TLS_REQD: u32 = 0x8000_0005;
pub(crate) const ERR_UNKNOWN: u32 = 0x8000_0006;
pub(crate) const ERR_TOO_BIG: u32 = 0x8000_0009;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;
pub(crate) const FUA: u16 = 1;

pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const ENOMEM: u32 = 12;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;

/// Maximum number of clients that may be connected at the end of a case.
const CLIENTS_MAX: usize = 8;

/// Returns an option in the form in which a client sends it.
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Returns the data of the option GO: an export, and the requested information.
pub(crate) fn go(name: &[u8], facts: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name);
    data.extend((facts.len() as u16).to_be_bytes());
    data.extend(facts.iter().flat_map(|fact| fact.to_be_bytes()));
    data
}

/// Returns the header of a request.
pub(crate) fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Returns a write with its data.
pub(crate) fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(flags, WRITE, cookie, offset, data.len() as u32);
    bytes.extend(data);
    bytes
}

/// A client connection, before, during or after the handshake.
pub(crate) struct Client<S = UnixStream> {
    pub(crate) stream: S,
}

impl<S: Read + Write> Client<S> {
    /// Reads the greeting.
    pub(crate) fn greeted(mut stream: S) -> Self {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        Self { stream }
    }

    /// Creates a client that has sent the flags of the fixed newstyle handshake.
    pub(crate) fn introduced(stream: S) -> Self {
        let mut client = Self::greeted(stream);
        client.send(&[0, 0, 0, 3]);
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes. The server may refuse to receive them.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn number(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    /// Returns the kind and the data of the reply to an option.
    pub(crate) fn replied(&mut self, number: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.bytes(8), 0x0003_e889_0455_65a9_u64.to_be_bytes());
        assert_eq!(self.number(), number);
        let (kind, length) = (self.number(), self.number());
        (kind, self.bytes(length as usize))
    }

    /// Sends an option. Returns the kind of the last reply.
    pub(crate) fn ask(&mut self, number: u32, data: &[u8]) -> u32 {
        self.send(&option(number, data));
        loop {
            let (kind, _) = self.replied(number);
            if kind == REP_ACK || kind >= 1 << 31 {
                return kind;
            }
        }
    }

    /// Chooses an export.
    pub(crate) fn choose_export(mut self, name: &str) -> Self {
        assert_eq!(self.ask(OPT_GO, &go(name.as_bytes(), &[3])), REP_ACK);
        self
    }

    /// Returns the error and the cookie of a simple reply.
    pub(crate) fn reply(&mut self) -> (u32, u64) {
        assert_eq!(self.number(), 0x6744_6698);
        let error = self.number();
        (error, u64::from_be_bytes(self.bytes(8).try_into().unwrap()))
    }

    /// Sends a request for which the reply has no data. Returns the error of the reply.
    pub(crate) fn error_of(&mut self, bytes: &[u8]) -> u32 {
        self.send(bytes);
        self.reply().0
    }

    /// Reads a range. The server must send a simple reply.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.error_of(&request(0, READ, 77, offset, length)) {
            0 => Ok(self.bytes(length as usize)),
            error => Err(error),
        }
    }

    /// Reads all chunks of a structured reply. Returns the data from offset `first` on, or the
    /// error.
    pub(crate) fn chunks(&mut self, first: u64, length: usize) -> Result<Vec<u8>, u32> {
        let (mut data, mut failed) = (vec![0; length], None);
        loop {
            assert_eq!(self.number(), 0x668e_33ef);
            let head = self.bytes(12);
            let (flags, kind, length) = (head[1], u16::from_be_bytes([head[2], head[3]]), self.number() as usize);
            let payload = self.bytes(length);
            if kind == 1 {
                let at = (u64::from_be_bytes(payload[..8].try_into().unwrap()) - first) as usize;
                data[at..at + length - 8].copy_from_slice(&payload[8..]);
            } else {
                failed = Some(u32::from_be_bytes(payload[..4].try_into().unwrap()));
            }
            if flags & 1 != 0 {
                return failed.map_or(Ok(data), Err);
            }
        }
    }

    /// Asserts that the connection ends without further data.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) {
        self.ends_after();
    }

    /// Returns the data until the end of the connection.
    #[track_caller]
    pub(crate) fn ends_after(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the connection should be closed: {error}"),
        }
    }
}

/// A server for one case, and its use of memory and files before the case.
pub(crate) struct Target {
    pub(crate) server: Server,
    files: usize,
    resident_kib: u64,
    /// Maximum growth of the server's memory that may remain after the case, KiB.
    grows_kib: u64,
}

impl Target {
    /// Starts a server with 16 MiB of memory as its backing and a budget of 16 MiB.
    pub(crate) fn new(place: &Sandbox) -> Self {
        Self::of(place, &["memory:16M", "--budget-mib", "16"])
    }

    pub(crate) fn of(place: &Sandbox, args: &[&str]) -> Self {
        Self::around(Server::serving(&place.here, args))
    }

    /// Starts a server with metrics. Also returns the address of the metrics.
    pub(crate) fn measured(place: &Sandbox, args: &[&str]) -> (Self, String) {
        let target = Self::of(place, &[args, &["--metrics", "127.0.0.1:0"]].concat());
        let address = target.server.metrics();
        (target, address)
    }

    pub(crate) fn around(server: Server) -> Self {
        let target = Self::secure_around(server);
        target.answers();
        target
    }

    /// Starts a server that requires TLS.
    pub(crate) fn secure(place: &Sandbox, args: &[&str]) -> Self {
        Self::secure_around(Server::serving(&place.here, args))
    }

    fn secure_around(server: Server) -> Self {
        let mut target = Self { server, files: 0, resident_kib: 0, grows_kib: 48 << 10 };
        target.files = target.files();
        target.resident_kib = target.resident_kib();
        target
    }

    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.server.child.id()).into()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.proc("fd")).unwrap().count()
    }

    /// Returns the present memory of the server, KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    /// Returns the growth of the server's memory since it was idle, KiB.
    pub(crate) fn taken_kib(&self) -> u64 {
        self.resident_kib().saturating_sub(self.resident_kib)
    }

    /// Returns the processor time of the server, in ticks of 10 ms.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(self.proc("stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Returns the address space of the server, bytes.
    pub(crate) fn address_space_bytes(&self) -> u64 {
        let status = fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    /// Returns a socket before the greeting.
    pub(crate) fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.server.here.join("s")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns a client that has sent its flags.
    pub(crate) fn handshaking(&self) -> Client {
        Client::introduced(self.raw())
    }

    /// Returns a client of the export with the empty name, with simple replies.
    pub(crate) fn client(&self) -> Client {
        self.handshaking().choose_export("")
    }

    /// Returns a client with structured replies.
    pub(crate) fn structured(&self) -> Client {
        let mut client = self.handshaking();
        assert_eq!(client.ask(OPT_STRUCTURED_REPLY, &[]), REP_ACK);
        client.choose_export("")
    }

    /// Asserts that the server serves a new client.
    #[track_caller]
    pub(crate) fn answers(&self) {
        let mut client = self.client();
        assert!(client.read(0, 4096).is_ok());
        client.send(&request(0, DISC, 0, 0, 0));
        client.is_closed();
    }

    /// Asserts that the server serves other clients, has freed its memory, and ends normally.
    #[track_caller]
    pub(crate) fn serves_and_ends_well(self) {
        self.answers();
        self.ends_well();
    }

    /// Asserts that the server has freed its memory, and ends normally.
    #[track_caller]
    pub(crate) fn ends_well(self) {
        wait_for(|| self.files() <= self.files + CLIENTS_MAX);
        let taken_kib = self.taken_kib();
        assert!(taken_kib <= self.grows_kib, "the server has not freed {taken_kib} KiB");
        assert_eq!(self.server.stop(), Some(0));
    }

    /// Changes limits of the server process with prlimit.
    pub(crate) fn limit(&self, args: &[&str]) {
        let pid = format!("--pid={}", self.server.child.id());
        assert!(Command::new("prlimit").arg(pid).args(args).status().unwrap().success());
    }
}
