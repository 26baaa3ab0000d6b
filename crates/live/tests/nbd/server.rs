//! A small NBD server with its data in memory, for tests with clients that are separate programs.
//! Each connection has its own thread.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use iosched_live::nbd::{Received, ServerConfig, Transport};
use iosched_nbd::{
    Decoder, Event, Extent, Handshake, Negotiated, Offer, Progress, Replies, Request, RequestKind, TlsMode,
};

/// State that all connections share.
pub(crate) struct Served {
    pub(crate) offers: Arc<[Offer]>,
    pub(crate) tls: TlsMode,
    pub(crate) config: Option<Arc<ServerConfig>>,
    pub(crate) memory: Mutex<Vec<u8>>,
}

/// A socket in a new directory. The server serves connections until the test ends.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    pub(crate) served: Arc<Served>,
}

impl Server {
    pub(crate) fn start(served: Served) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let served = Arc::new(served);
        let server = Self { folder, served: Arc::clone(&served) };
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let served = Arc::clone(&served);
                // A client may disconnect at any time, so errors are ignored.
                std::thread::spawn(move || drop(Connection::serve(socket, &served)));
            }
        });
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

struct Connection {
    socket: UnixStream,
    transport: Transport,
    received: Vec<u8>,
    plain: Vec<u8>,
}

impl Connection {
    fn serve(socket: UnixStream, served: &Served) -> io::Result<()> {
        let (received, plain) = (Vec::new(), Vec::new());
        let mut connection = Self { socket, transport: Transport::Plain, received, plain };
        let Some(Negotiated { offer, terms }) = connection.shake_hands(served)? else { return Ok(()) };
        let decoder = Decoder::new(&served.offers[offer], terms);
        connection.transmit(decoder, Replies::new(terms), served)
    }

    /// Receives more plain bytes. Returns `false` at the end of the input.
    fn receive(&mut self) -> io::Result<bool> {
        let mut out = Vec::new();
        let had = self.plain.len();
        while self.plain.len() == had {
            if self.received.is_empty() {
                let mut buffer = [0; 50_000];
                let bytes = self.socket.read(&mut buffer)?;
                if bytes == 0 {
                    return Ok(false);
                }
                self.received.extend_from_slice(&buffer[..bytes]);
            }
            let mut input = &self.received[..];
            let received = self.transport.receive(&mut input, &mut self.plain, 100_000, &mut out);
            self.socket.write_all(&out)?;
            out.clear();
            let left = input.len();
            self.received.drain(..self.received.len() - left);
            if received.map_err(io::Error::other)? == Received::Closed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self, mut plain: &[u8]) -> io::Result<()> {
        let mut out = Vec::new();
        while !plain.is_empty() {
            self.transport.send(&mut plain, &mut out, 100_000).map_err(io::Error::other)?;
            self.socket.write_all(&out)?;
            out.clear();
        }
        Ok(())
    }

    fn shake_hands(&mut self, served: &Served) -> io::Result<Option<Negotiated>> {
        let mut out = Vec::new();
        let mut handshake = Handshake::new(Arc::clone(&served.offers), served.tls, &mut out);
        loop {
            let mut input = &self.plain[..];
            let progress = handshake.advance(&mut input, &mut out);
            let left = input.len();
            self.plain.drain(..self.plain.len() - left);
            self.send(&out)?;
            out.clear();
            match progress {
                Progress::NeedMore if !self.receive()? => return Ok(None),
                Progress::NeedMore | Progress::Replied => {}
                Progress::StartTls => {
                    self.received = std::mem::take(&mut self.plain);
                    let config = served.config.clone().ok_or(io::ErrorKind::NotFound)?;
                    self.transport = Transport::tls(config).map_err(io::Error::other)?;
                }
                Progress::Negotiated(negotiated) => return Ok(Some(negotiated)),
                Progress::Close(_) => return Ok(None),
            }
        }
    }

    fn transmit(&mut self, mut decoder: Decoder, replies: Replies, served: &Served) -> io::Result<()> {
        let (mut out, mut write, mut at) = (Vec::new(), None, 0);
        loop {
            let plain = std::mem::take(&mut self.plain);
            let mut input = &plain[..];
            loop {
                match decoder.advance(&mut input) {
                    Event::NeedMore => break,
                    Event::Request(request) if request.kind == RequestKind::Write => {
                        (write, at) = (Some(request.reply_to()), request.offset as usize);
                    }
                    Event::Request(request) => {
                        carry_out(&request, replies, &mut served.memory.lock().unwrap(), &mut out)
                    }
                    Event::Data(data) => {
                        served.memory.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
                        at += data.len();
                        if let (Some(to), 0) = (write, decoder.data_wanted()) {
                            replies.done(&mut out, to);
                        }
                    }
                    Event::Refused(refusal) => {
                        replies.failed(&mut out, refusal.to, refusal.code, refusal.message);
                    }
                    Event::Disconnect | Event::Broken(_) => return self.send(&out),
                }
            }
            self.send(&out)?;
            out.clear();
            if !self.receive()? {
                return Ok(());
            }
        }
    }
}

fn carry_out(request: &Request, replies: Replies, memory: &mut [u8], out: &mut Vec<u8>) {
    let &Request { kind, offset, length, .. } = request;
    let to = request.reply_to();
    let range = offset as usize..offset as usize + length as usize;
    match kind {
        RequestKind::Read => {
            replies.data(out, to, length);
            return out.extend_from_slice(&memory[range]);
        }
        RequestKind::BlockStatus => return replies.extents(out, to, [Extent { length, state: 0 }].into_iter()),
        RequestKind::Trim | RequestKind::WriteZeroes => memory[range].fill(0),
        RequestKind::Flush | RequestKind::Write | RequestKind::Cache => {}
    }
    replies.done(out, to);
}
