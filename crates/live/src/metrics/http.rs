//! As much of HTTP as whoever reads metrics needs: a request of one line and some headers, one answer, and the end of
//! the connection.
//!
//! Connections are answered side by side, a few at a time, and none may take long: who stalls or sends something else
//! costs the others nothing.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections at once; who comes beyond that is turned away.
const CONNECTIONS_MAX: usize = 64;
/// What one may take altogether.
const PATIENCE: Duration = Duration::from_secs(10);
/// A request is not longer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Nor has it more headers.
const HEADERS_MAX: usize = 64;
/// A listener that could not accept waits.
const DEAF: Duration = Duration::from_millis(100);

/// What somebody asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HttpRequest {
    /// Without what follows a question mark.
    pub(super) path: String,
    /// What formats are wanted, as the header `Accept` says it; empty if nothing is said.
    pub(super) accept: String,
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Response {
    /// A line that tells why there is nothing else.
    pub(super) fn plain(status: &'static str, line: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{line}\n") }
    }
}

/// Answers at `listener` for as long as the process lives.
///
/// # Errors
/// If the system gives no thread.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&HttpRequest) -> Response + Send + Sync + 'static,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    let open = Arc::new(AtomicUsize::new(0));
    let accept_all = move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Most likely too many files are open.
                std::thread::sleep(DEAF);
                continue;
            };
            let place = ConnectionPermit::take(&open);
            if place.number >= CONNECTIONS_MAX {
                continue;
            }
            let answer = Arc::clone(&answer);
            let talk = move || {
                // Whoever asked may have gone.
                let _ = talk(&stream, answer.as_ref());
                drop(place);
            };
            // Without a thread it is as if there were too many.
            let _ = std::thread::Builder::new().name("metrics of one".to_owned()).spawn(talk);
        }
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(accept_all).map(drop)
}

/// One of the connections that may be open.
struct ConnectionPermit {
    open: Arc<AtomicUsize>,
    /// How many were taken before.
    number: usize,
}

impl ConnectionPermit {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        Self { open: Arc::clone(open), number: open.fetch_add(1, Ordering::SeqCst) }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn talk(stream: &TcpStream, answer: &impl Fn(&HttpRequest) -> Response) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let (response, has_body) = match read_head(stream, deadline)? {
        Ok((request, has_body)) => (answer(&request), has_body),
        Err(refusal) => (refusal, true),
    };
    let Response { status, content_type, body } = response;
    let length = body.len();
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if has_body {
        text += &body;
    }
    write_all(stream, text.as_bytes(), deadline)?;
    stream.shutdown(Shutdown::Write)?;
    // What has come and was not read would have the other end lose the answer.
    let mut rest = [0; 1024];
    for _ in 0..HEAD_BYTES_MAX / rest.len() {
        stream.set_read_timeout(Some(left(deadline)?))?;
        if (&*stream).read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What is asked for and whether the answer has a body, or what to answer to something else.
fn read_head(mut stream: &TcpStream, deadline: Instant) -> io::Result<Result<(HttpRequest, bool), Response>> {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = match stream.read(&mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&bytes[..count]);
        if let Some(parsed) = parse(&head) {
            return Ok(parsed);
        }
        if head.len() > HEAD_BYTES_MAX {
            return Ok(Err(Response::plain("431 Request Header Fields Too Large", "the request is too long")));
        }
    }
}

/// `None` while there is more to come.
fn parse(head: &[u8]) -> Option<Result<(HttpRequest, bool), Response>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(error) => {
            return Some(Err(Response::plain("400 Bad Request", &format!("this is not HTTP: {error}"))));
        }
    }
    let has_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some(Err(Response::plain("405 Method Not Allowed", "only GET is supported"))),
    };
    let accepts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let accepts: Vec<_> = accepts.map(|header| String::from_utf8_lossy(header.value)).collect();
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    Some(Ok((HttpRequest { path, accept: accepts.join(",") }, has_body)))
}

fn write_all(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_whole() {
        let text = b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\nACCEPT: text/plain\r\nAccept: */*;q=0.1\r\n\r\n";
        assert_eq!(parse(&text[..text.len() - 1]), None);
        let request = HttpRequest { path: "/metrics".to_owned(), accept: "text/plain,*/*;q=0.1".to_owned() };
        assert_eq!(parse(text), Some(Ok((request, true))));
    }

    #[test]
    fn malformed_http_requests_get_an_error() {
        let status = |text: &[u8]| match parse(text) {
            Some(Err(Response { status, .. })) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), "400 Bad Request");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
    }
}
