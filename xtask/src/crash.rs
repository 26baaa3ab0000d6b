//! `cargo xtask crash`: kills a server of a disk at random moments under load, restarts it, and
//! checks the data of the disk.
//!
//! A client writes numbered versions of numbered blocks, some of them with FUA, and flushes from
//! time to time. The client remembers the versions that the server acknowledged. When a process is
//! killed, the page cache keeps its contents. The test therefore finds acknowledged data that was
//! only in the server's memory. It also finds torn blocks, mixed-up blocks and outdated blocks.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use iosched_check::Random;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 512;
/// Number of requests in flight.
const DEPTH: usize = 24;
const STARTING: Duration = Duration::from_secs(20);

const MAGIC_OPTION: u64 = 0x4948_4156_454f_5054;
const MAGIC_REQUEST: u32 = 0x2560_9513;
const MAGIC_REPLY: u32 = 0x6744_6698;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const FUA: u16 = 1;

/// Kill a served disk at random moments under load, and check that it kept everything that it acknowledged
///
/// A killed process does not lose the contents of the page cache. The test therefore checks two things: the server
/// acknowledged nothing that was only in its own memory, and no block is torn. Another test covers power failures.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of kills
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Seed for the times of the kills and for the data written
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn mix(word: u64) -> u64 {
    Random::new(word).next_word()
}

/// Returns a version of a block. Every word depends on the block and the version, so that the test
/// detects torn or mixed-up data. Version 0 has only zeros.
fn content(block: usize, version: u64) -> Vec<u8> {
    let word = |at: usize| if version == 0 { 0 } else { mix(mix(block as u64) ^ version).wrapping_add(at as u64) };
    let head = [block as u64 * u64::from(version > 0), version];
    let words = head.into_iter().chain((2..BLOCK_BYTES / 8).map(word));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Versions of a block.
#[derive(Clone, Copy, Default)]
struct Block {
    /// The last version that was sent.
    sent: u64,
    /// The last version that was acknowledged.
    acknowledged: u64,
    /// The oldest version that the disk may have.
    promised: u64,
}

enum PendingRequest {
    Write {
        block: usize,
        version: u64,
        fua: bool,
    },
    /// The versions that were acknowledged before the flush was sent.
    Flush(Vec<u64>),
}

/// A connection after its handshake.
struct Client {
    socket: UnixStream,
    cookies: u64,
}

impl Client {
    fn connect(path: &Path) -> io::Result<Self> {
        let mut socket = UnixStream::connect(path)?;
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting)?;
        // Fixed newstyle negotiation without padding zeros, then the export with the empty name.
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(MAGIC_OPTION.to_be_bytes());
        hello.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        socket.write_all(&hello)?;
        let mut export = [0; 10];
        socket.read_exact(&mut export)?;
        Ok(Self { socket, cookies: 0 })
    }

    fn ask(&mut self, command: u16, flags: u16, offset: usize, length: usize, data: &[u8]) -> io::Result<u64> {
        self.cookies += 1;
        let mut request = MAGIC_REQUEST.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(self.cookies.to_be_bytes());
        request.extend((offset as u64).to_be_bytes());
        request.extend((length as u32).to_be_bytes());
        request.extend(data);
        self.socket.write_all(&request)?;
        Ok(self.cookies)
    }

    /// Returns the cookie and the error of the next reply.
    fn answer(&mut self) -> io::Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply)?;
        let (magic, rest) = reply.split_at(4);
        let (error, cookie) = rest.split_at(4);
        if magic != MAGIC_REPLY.to_be_bytes() {
            return Err(io::Error::other("an answer that is none"));
        }
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Ok((word(cookie), word(error) as u32))
    }

    fn read(&mut self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        self.ask(READ, 0, offset, length, &[])?;
        let (_, error) = self.answer()?;
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error as i32));
        }
        let mut data = vec![0; length];
        self.socket.read_exact(&mut data)?;
        Ok(data)
    }
}

/// Writes and flushes until the server ends. Returns the number of replies.
fn load(mut client: Client, random: &mut Random, blocks: &mut [Block]) -> Result<u64> {
    let mut pending: BTreeMap<u64, PendingRequest> = BTreeMap::new();
    let mut answers = 0;
    loop {
        if pending.len() < DEPTH {
            let sent = if random.below(20) == 0 {
                let acknowledged = blocks.iter().map(|block| block.acknowledged).collect();
                client.ask(FLUSH, 0, 0, 0, &[]).map(|cookie| (cookie, PendingRequest::Flush(acknowledged)))
            } else {
                let block = random.below(BLOCKS as u64) as usize;
                // A block has only one write in flight, so that its versions stay in order.
                if pending
                    .values()
                    .any(|request| matches!(request, PendingRequest::Write { block: other, .. } if *other == block))
                {
                    continue;
                }
                let fua = random.below(10) == 0;
                blocks[block].sent += 1;
                let version = blocks[block].sent;
                let flags = if fua { FUA } else { 0 };
                let data = content(block, version);
                client
                    .ask(WRITE, flags, block * BLOCK_BYTES, BLOCK_BYTES, &data)
                    .map(|cookie| (cookie, PendingRequest::Write { block, version, fua }))
            };
            if let Ok((cookie, sent)) = sent {
                pending.insert(cookie, sent);
                continue;
            }
        }
        // Replies that arrived before the server ended also count.
        let Ok((cookie, error)) = client.answer() else { return Ok(answers) };
        ensure!(error == 0, "the server answers with error {error}");
        answers += 1;
        match pending.remove(&cookie).context("an answer to what was not asked")? {
            PendingRequest::Write { block, version, fua } => {
                blocks[block].acknowledged = version;
                if fua {
                    blocks[block].promised = version;
                }
            }
            PendingRequest::Flush(acknowledged) => {
                for (block, version) in blocks.iter_mut().zip(acknowledged) {
                    block.promised = block.promised.max(version);
                }
            }
        }
    }
}

/// Checks that the content of every block is intact, was sent, and is not older than promised.
fn verify(client: &mut Client, blocks: &mut [Block]) -> Result<()> {
    let data = client.read(0, BLOCKS * BLOCK_BYTES)?;
    for (number, (block, bytes)) in blocks.iter_mut().zip(data.chunks(BLOCK_BYTES)).enumerate() {
        let version = bytes[8..16].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let Block { sent, promised, .. } = *block;
        ensure!(version <= sent && bytes == content(number, version), "block {number} is torn, or nobody wrote it");
        ensure!(version >= promised, "block {number} is at version {version}; {promised} was promised, {sent} sent");
        // From now on, the block must not become older than this version.
        *block = Block { sent, acknowledged: version, promised: version };
    }
    Ok(())
}

struct Server {
    child: Child,
}

impl Server {
    fn start(program: &Path, folder: &Path) -> Result<(Self, Client)> {
        let mut command = Command::new(program);
        command.args(["serve", "disk.img", "--unix", "s"]).current_dir(folder);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = Self { child: child.with_context(|| program.display().to_string())? };
        let began = Instant::now();
        loop {
            if let Ok(client) = Client::connect(&folder.join("s")) {
                return Ok((server, client));
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended at its start: {status}");
            }
            ensure!(began.elapsed() < STARTING, "the server does not listen");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL. The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the iosched command with the same profile as this program. Returns the path of the
/// command.
pub(crate) fn command() -> Result<PathBuf> {
    let profile: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    let built = Command::new("cargo").args(["build", "--quiet", "-p", "iosched-cli"]).args(profile).status()?;
    ensure!(built.success(), "the command cannot be built");
    Ok(std::env::current_exe()?.with_file_name("iosched"))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let program = command()?;
    let folder = std::env::temp_dir().join(format!("iosched-crash-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::File::create(folder.join("disk.img"))?.set_len((BLOCKS * BLOCK_BYTES) as u64)?;
    let done = kill_often(args, &program, &folder);
    if done.is_ok() {
        std::fs::remove_dir_all(&folder)?;
    } else {
        eprintln!("the disk is left in {}", folder.display());
    }
    done?;
    Ok(ExitCode::SUCCESS)
}

fn kill_often(args: &Args, program: &Path, folder: &Path) -> Result<()> {
    let mut random = Random::new(args.seed);
    let mut blocks = vec![Block::default(); BLOCKS];
    let (mut answers, mut idle) = (0, 0);
    let began = Instant::now();
    for kill in 0..args.kills {
        let (server, mut client) = Server::start(program, folder)?;
        verify(&mut client, &mut blocks).with_context(|| format!("after kill {kill}, seed {}", args.seed))?;
        let lives = Duration::from_micros(random.below(40_000));
        let killer = thread::spawn(move || {
            thread::sleep(lives);
            drop(server);
        });
        let answered = load(client, &mut random, &mut blocks)?;
        killer.join().map_err(|_| anyhow::anyhow!("the server could not be killed"))?;
        answers += answered;
        idle += u32::from(answered == 0);
    }
    let (_server, mut client) = Server::start(program, folder)?;
    verify(&mut client, &mut blocks).context("after the last kill")?;
    println!(
        "crash: {} kills in {:.0} s, {answers} acknowledged writes and flushes, {idle} kills before the first: \
         nothing lost; seed {}",
        args.kills,
        began.elapsed().as_secs_f64(),
        args.seed
    );
    Ok(())
}
