//! `--listen`: the metrics by HTTP, for a Prometheus that scrapes them.
//!
//! Each connection is one request and one answer, on a thread of its own. Everything is bounded: connections, the
//! bytes of a request, the time for it and for its answer. One reading goes on at a time. Who asks meanwhile gets
//! what comes of it.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_acceptconn;

use super::exposition::{Exposition, Format};

/// Connections at a time. One more gets the answer to come again later.
const MOST: usize = 128;
/// Bytes of a request with its headers.
const LONGEST: usize = 8192;
/// Lines of headers.
const HEADERS: usize = 64;
/// The time for a request, and then for its answer to be read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a thread's stack, of which only what is used takes memory.
const STACK: usize = 2 << 20;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    At(SocketAddr),
    /// On the socket that is the standard input: systemd's `StandardInput=socket`.
    Stdin,
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        if let Ok(port) = text.parse() {
            return Ok(Self::At(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self::At).map_err(|_| "expected ADDRESS:PORT, PORT or -")
    }
}

/// The last reading, when it ended, and its text in each format that was asked for. Clients share the texts.
struct Last {
    ended: Instant,
    all: Exposition,
    texts: [Option<Arc<str>>; 2],
}

impl Last {
    fn text(&mut self, format: Format) -> Arc<str> {
        let [prometheus, open] = &mut self.texts;
        let text = if format == Format::Openmetrics { open } else { prometheus };
        Arc::clone(text.get_or_insert_with(|| self.all.text(format).into()))
    }
}

/// Serves what `read` gives, until the process is ended. An error is that nothing can be served.
pub(super) fn serve(
    listen: Listen,
    read: &mut (dyn FnMut() -> Exposition + Send),
) -> io::Result<core::convert::Infallible> {
    let listener = match listen {
        Listen::At(address) => TcpListener::bind(address)?,
        Listen::Stdin => TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?),
    };
    let address = listener.local_addr()?;
    if !socket_acceptconn(&listener)? {
        return Err(io::Error::other("standard input is no socket that listens"));
    }
    listener.set_nonblocking(false)?;
    // If stderr is closed, nobody wants to know.
    let _ = writeln!(io::stderr(), "uverbs: serving http://{address}/metrics");
    let (open, reading) = (AtomicUsize::new(0), Mutex::new((read, None)));
    let current = |since: Instant, format: Format| {
        // A reading that panicked left nothing half done that the next one needs.
        let mut reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, last) = &mut *reading;
        if last.as_ref().is_none_or(|last: &Last| last.ended < since) {
            let all = read();
            *last = Some(Last { ended: Instant::now(), all, texts: [None, None] });
        }
        last.as_mut().map(|last| last.text(format)).unwrap_or_default()
    };
    thread::scope(|scope| {
        loop {
            let mut stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // No file is left, or the client has gone.
                Err(_) if socket_acceptconn(&listener)? => {
                    thread::sleep(Duration::from_millis(50));
                    continue;
                }
                // Another process ended it.
                Err(error) => return Err(error),
            };
            if open.fetch_add(1, Ordering::SeqCst) >= MOST {
                open.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.set_write_timeout(Some(Duration::from_millis(50)));
                let refused = Reply::refusal("503 Service Unavailable", "too many connections");
                let _ = stream.write_all((refused.head + &refused.text).as_bytes());
                continue;
            }
            let (open, current) = (&open, &current);
            let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                // Who has gone needs no answer.
                let _ = answer(&mut stream, current);
                open.fetch_sub(1, Ordering::SeqCst);
            });
            if started.is_err() {
                open.fetch_sub(1, Ordering::SeqCst);
            }
        }
    })
}

/// The text of a reading that ends at this time or later: one that goes on already is not begun again.
type Current<'c> = &'c (dyn Fn(Instant, Format) -> Arc<str> + Sync);

fn answer(stream: &mut TcpStream, current: Current<'_>) -> io::Result<()> {
    let mut buffer = [0; LONGEST];
    let mut reply = match request(stream, &mut buffer)? {
        Ok(asked) => asked.reply(current),
        Err(refused) => refused,
    };
    if buffer.trim_ascii_start().starts_with(b"HEAD ") {
        reply.text = Arc::default();
    }
    let end = Instant::now() + PATIENCE;
    for mut rest in [reply.head.as_bytes(), reply.text.as_bytes()] {
        while !rest.is_empty() {
            stream.set_write_timeout(Some(left(end)?))?;
            let written = stream.write(rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// The time that is left; an error if there is none.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    is_metrics: bool,
    format: Format,
}

impl Request {
    fn reply(&self, current: Current<'_>) -> Reply {
        if !self.is_metrics {
            return Reply::refusal("404 Not Found", "the metrics are at /metrics");
        }
        let text = current(Instant::now(), self.format);
        let kind = match self.format {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::Openmetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        };
        Reply { head: head("200 OK", kind, text.len()), text }
    }
}

/// What is sent.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    head: String,
    text: Arc<str>,
}

impl Reply {
    /// A reply without metrics.
    fn refusal(status: &str, why: &str) -> Self {
        let head = head(status, "text/plain; charset=utf-8", why.len() + 1);
        Self { head, text: format!("{why}\n").into() }
    }

    fn too_long() -> Self {
        Self::refusal(
            "431 Request Header Fields Too Large",
            "the request has more than 8192 bytes or 64 headers",
        )
    }
}

fn head(status: &str, kind: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n"
    )
}

/// Reads a request; or the reply to what is none.
fn request(
    stream: &mut TcpStream,
    buffer: &mut [u8; LONGEST],
) -> io::Result<Result<Request, Reply>> {
    let end = Instant::now() + PATIENCE;
    let mut length = 0;
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        let read = stream.read(buffer.get_mut(length..).unwrap_or_default())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        length += read;
        match parse(buffer.get(..length).unwrap_or_default()) {
            Some(parsed) => return Ok(parsed),
            None if length == LONGEST => return Ok(Err(Reply::too_long())),
            None => {}
        }
    }
}

/// What is asked, or the reply to what is no request; `None` if it goes on.
fn parse(bytes: &[u8]) -> Option<Result<Request, Reply>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Some(Err(Reply::too_long())),
        Err(error) => return Some(Err(Reply::refusal("400 Bad Request", &error.to_string()))),
    }
    if !matches!(request.method, Some("GET" | "HEAD")) {
        return Some(Err(Reply::refusal("405 Method Not Allowed", "only GET and HEAD")));
    }
    let path = request.path.and_then(|path| path.split('?').next()).unwrap_or_default();
    // As proxies ask: with the scheme and the host.
    let path = match path.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find('/').and_then(|place| rest.get(place..)).unwrap_or_default()
        }
        _ => path,
    };
    let accepted = request.headers.iter().filter(|own| own.name.eq_ignore_ascii_case("accept"));
    let accepted = accepted.filter_map(|own| std::str::from_utf8(own.value).ok());
    let is_open = accepted.flat_map(|own| own.split(',')).any(accepts_open);
    Some(Ok(Request {
        is_metrics: path == "/metrics",
        format: if is_open { Format::Openmetrics } else { Format::Prometheus },
    }))
}

/// Whether what a client accepts is `OpenMetrics`. With a weight of 0 it is refused.
fn accepts_open(accepted: &str) -> bool {
    let mut parts = accepted.split(';').map(str::trim);
    let is_open = parts.next().is_some_and(|own| own.eq_ignore_ascii_case(OPEN));
    let weights = parts.filter_map(|own| own.strip_prefix("q=").or_else(|| own.strip_prefix("Q=")));
    is_open && !weights.filter_map(|own| own.parse::<f64>().ok()).any(|own| own == 0.0)
}

/// What a client accepts that wants `OpenMetrics`.
const OPEN: &str = "application/openmetrics-text";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let asked = |is_metrics, format| Some(Ok(Request { is_metrics, format }));
        let parsed = |text: &str| {
            let status = |reply: Reply| reply.head.split(' ').nth(1).unwrap().to_owned();
            parse(text.as_bytes()).map(|own| own.map_err(status))
        };
        let plain = Format::Prometheus;
        for text in [
            "GET /metrics HTTP/1.1\r\n\r\n",
            "HEAD /metrics?x=1 HTTP/1.0\r\n\r\n",
            "GET HTTP://x:1/metrics?x=/ HTTP/1.1\r\n\r\n",
            "\r\n\r\nGET /metrics HTTP/1.1\n\r\n",
            "GET /metrics HTTP/1.1\r\n\n",
        ] {
            assert_eq!(parsed(text), asked(true, plain), "{text}");
        }
        for path in ["/", "http://x", "http://x?/metrics", "ftp://x/metrics", "/x/metrics"] {
            assert_eq!(parsed(&format!("GET {path} HTTP/1.1\r\n\r\n")), asked(false, plain));
        }
        for (accepted, format) in [
            ("text/x;q=0.1,Application/OpenMetrics-text;version=1.0.0", Format::Openmetrics),
            ("application/openmetrics-text; q=0.5", Format::Openmetrics),
            ("application/openmetrics-text;version=1.0.0; q=0.0, */*", plain),
            ("application/openmetrics-text;q=0", plain),
            ("application/openmetrics-texts", plain),
        ] {
            let text = format!("GET /metrics HTTP/1.1\r\nACCEPT: {accepted}\r\n\r\n");
            assert_eq!(parsed(&text), asked(true, format), "{text}");
        }
        assert_eq!(parsed("GET /metrics HTTP/1.1\r\n"), None);
        for (text, status) in [
            ("POST /metrics HTTP/1.1\r\n\r\n".to_owned(), "405"),
            ("nonsense\r\n\r\n".to_owned(), "400"),
            ("\0\r\n\r\n".to_owned(), "400"),
            (format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65)), "431"),
        ] {
            assert_eq!(parsed(&text), Some(Err(status.to_owned())), "{text}");
        }
    }

    #[test]
    fn places_to_listen_at() {
        let at = |text: &str| Listen::At(text.parse().unwrap());
        assert_eq!("9879".parse(), Ok(at("127.0.0.1:9879")));
        assert_eq!("[::]:1".parse(), Ok(at("[::]:1")));
        assert_eq!("-".parse(), Ok(Listen::Stdin));
        for odd in ["", "x", "65536", "localhost:1", "127.0.0.1"] {
            assert!(odd.parse::<Listen>().is_err(), "{odd}");
        }
    }
}
