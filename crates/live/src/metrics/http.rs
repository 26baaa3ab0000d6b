//! The part of HTTP that readers of metrics need: a request of one line and some headers, one
//! answer, and the end of the connection.
//!
//! Connections are answered in parallel, up to a maximum number. Each connection has a time limit.
//! A client that stalls or sends other data does not delay other clients.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of connections at the same time. Further connections are closed.
const CONNECTIONS_MAX: usize = 64;
/// Time limit of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of a request, bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 64;
/// Pause of the listener after a failed accept.
const DEAF: Duration = Duration::from_millis(100);

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HttpRequest {
    /// Path of the request, without the query.
    pub(super) path: String,
    /// Content of the `Accept` headers; empty if there are none.
    pub(super) accept: String,
}

/// Answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Response {
    /// Creates an answer of one line of plain text.
    pub(super) fn plain(status: &'static str, line: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{line}\n") }
    }
}

/// Answers requests at `listener` until the process ends.
///
/// # Errors
/// The system cannot create a thread.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&HttpRequest) -> Response + Send + Sync + 'static,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    let open = Arc::new(AtomicUsize::new(0));
    let accept_all = move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // The most likely cause is too many open files.
                std::thread::sleep(DEAF);
                continue;
            };
            let place = ConnectionPermit::take(&open);
            if place.number >= CONNECTIONS_MAX {
                continue;
            }
            let answer = Arc::clone(&answer);
            let talk = move || {
                // An error means that the client has disconnected.
                let _ = talk(&stream, answer.as_ref());
                drop(place);
            };
            // If no thread can be created, the connection is closed, as if there were too many
            // connections.
            let _ = std::thread::Builder::new().name("metrics of one".to_owned()).spawn(talk);
        }
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(accept_all).map(drop)
}

/// A permit for an open connection. The permit is in use until it is dropped.
struct ConnectionPermit {
    open: Arc<AtomicUsize>,
    /// Number of permits that were in use when this permit was taken.
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
    // A close with unread input would reset the connection, and the client would lose the answer.
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

/// Reads a request. Returns the request and whether the answer has a body. If the request is
/// invalid, returns the answer to the client.
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

/// Parses a request. Returns `None` if the request is incomplete.
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
    fn http_request_is_parsed_once_complete() {
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
