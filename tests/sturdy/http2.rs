//! An HTTP/2 client that does as it is told, also what no client should.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const ACK: u8 = 1;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The method that takes spans.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A frame as it came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    pub frames: Vec<Frame>,
    waiting: Vec<u8>,
    /// Whether the other side has closed.
    pub closed: bool,
    /// Whether pings are answered.
    pub polite: bool,
}

/// A frame in bytes.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Headers in HPACK, each as a literal.
pub fn headers(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in pairs {
        out.push(0);
        put(&mut out, name);
        put(&mut out, value);
    }
    out
}

/// A text with its length before it (RFC 7541 5.1).
fn put(out: &mut Vec<u8>, text: &str) {
    let mut left = text.len();
    if left < 127 {
        out.push(left as u8);
    } else {
        out.push(127);
        left -= 127;
        while left >= 128 {
            out.push((left % 128 + 128) as u8);
            left /= 128;
        }
        out.push(left as u8);
    }
    out.extend_from_slice(text.as_bytes());
}

/// The headers of a gRPC export.
pub fn export_headers() -> Vec<u8> {
    headers(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", EXPORT),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ])
}

impl Client {
    /// Connects, and says what every client says first.
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream, frames: Vec::new(), waiting: Vec::new(), closed: false, polite: true };
        client.send(PREFACE);
        client.send(&frame(SETTINGS, 0, 0, &[]));
        client
    }

    /// Waits for the other side's settings, and for the room to send that they give.
    pub fn ready(mut self) -> Self {
        let came = |frames: &[Frame], kind| frames.iter().any(|frame| frame.kind == kind && frame.flags & ACK == 0);
        self.read(crate::house::DEADLINE, |frames| came(frames, SETTINGS) && came(frames, WINDOW_UPDATE));
        self
    }

    /// Sends bytes; that the other side has closed shows in reading.
    pub fn send(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// Makes a gRPC export with this body.
    pub fn export(&mut self, stream: u32, body: &[u8]) {
        self.send(&frame(HEADERS, END_HEADERS, stream, &export_headers()));
        self.send(&frame(DATA, END_STREAM, stream, body));
    }

    /// Reads what there is within this time, or until `enough`.
    pub fn read(&mut self, time: Duration, mut enough: impl FnMut(&[Frame]) -> bool) {
        let begun = Instant::now();
        let mut bytes = [0; 16 << 10];
        while !self.closed && begun.elapsed() < time && !enough(&self.frames) {
            self.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            match self.stream.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => self.waiting.extend_from_slice(&bytes[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => self.closed = true,
            }
            while let Some(frame) = self.next() {
                match (frame.kind, frame.flags & ACK) {
                    (SETTINGS, 0) if self.polite => self.send(&self::frame(SETTINGS, ACK, 0, &[])),
                    (PING, 0) if self.polite => self.send(&self::frame(PING, ACK, 0, &frame.payload)),
                    _ => {}
                }
                self.frames.push(frame);
            }
        }
    }

    fn next(&mut self) -> Option<Frame> {
        let head: [u8; 9] = self.waiting.get(..9)?.try_into().ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = self.waiting.get(9..9 + length)?.to_vec();
        self.waiting.drain(..9 + length);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Waits for the answers to these requests; how many came to their end.
    pub fn answered(&mut self, streams: &[u32]) -> usize {
        let ends = |frame: &Frame| {
            streams.contains(&frame.stream) && matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0
        };
        let count = |frames: &[Frame]| frames.iter().filter(|frame| ends(frame)).count();
        self.read(crate::house::DEADLINE, |frames| count(frames) == streams.len());
        count(&self.frames)
    }

    /// The code of the GOAWAY that came, if one did.
    pub fn goaway(&self) -> Option<u32> {
        let frame = self.frames.iter().find(|frame| frame.kind == GOAWAY)?;
        Some(u32::from_be_bytes(frame.payload.get(4..8)?.try_into().ok()?))
    }
}
