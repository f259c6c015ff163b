//! What end-to-end tests share: the binary on files, as a listener, and on a terminal of its own.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod mutate;
pub mod own;
pub mod terminal;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

/// Listens on free ports of one loopback.
pub const ANY: [&str; 4] = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];

/// A real capture.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A real capture, inflated.
pub fn inflated(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The binary, with nothing of this environment.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reqtop"));
    command.env_clear();
    command
}

/// The report on files.
pub fn report(files: &[impl AsRef<Path>]) -> Json {
    let output = binary().args(["report", "--json"]).args(files.iter().map(|file| file.as_ref())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A number of a report; 0 where there is none.
pub fn count(report: &Json, path: &[&str]) -> u64 {
    path.iter().fold(report, |at, key| &at[*key]).as_u64().unwrap_or(0)
}

/// A headless command that listens.
pub struct Listening {
    pub child: Child,
    /// What it said before it listened.
    pub before: String,
    pub grpc: SocketAddr,
    pub http: SocketAddr,
}

impl Listening {
    /// `reqtop report --json --listen`.
    pub fn report() -> Self {
        Self::start(&["report", "--json"])
    }

    /// `reqtop export --listen`.
    pub fn export() -> Self {
        Self::start(&["export"])
    }

    /// Starts a headless command on free ports; waits until they are bound.
    pub fn start(command: &[&str]) -> Self {
        let mut child = binary()
            .args(command)
            .args(["--listen", "--for", "300s"])
            .args(ANY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (before, grpc, http) = listening(child.stderr.as_mut().unwrap());
        Self { child, before, grpc, http }
    }

    /// Waits until it ends by itself; gives how it ended.
    pub fn ended(self) -> Output {
        self.child.wait_with_output().unwrap()
    }

    /// Ends it by this signal; gives how it ended.
    pub fn ended_by(self, name: &str) -> Output {
        signal(self.child.id(), name);
        self.child.wait_with_output().unwrap()
    }

    /// Ends it; gives what it printed.
    pub fn end(self) -> Output {
        let output = self.ended_by("TERM");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Ends it; gives the JSON it printed.
    pub fn json(self) -> Json {
        serde_json::from_slice(&self.end().stdout).unwrap()
    }

    /// Ends it; gives the spans it printed, with the resource of each.
    pub fn spans(self) -> Vec<Json> {
        spans(&self.end().stdout)
    }
}

/// Waits until a listener says where it listens: gRPC and HTTP.
pub fn addresses(stderr: &mut impl Read) -> (SocketAddr, SocketAddr) {
    let (_, grpc, http) = listening(stderr);
    (grpc, http)
}

/// Likewise, with what it says before.
pub fn listening(stderr: &mut impl Read) -> (String, SocketAddr, SocketAddr) {
    let mut before = String::new();
    let line = loop {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while stderr.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let line = String::from_utf8(line).unwrap();
        if line.is_empty() || line.contains("listening: ") {
            break line;
        }
        before += &line;
    };
    let address = |after: &str| {
        let rest = line.split(after).nth(1).unwrap_or_else(|| panic!("{line}"));
        rest.split([';', ',', '\n']).next().unwrap().trim().parse().unwrap()
    };
    (before, address("grpc "), address("http "))
}

/// The spans in OTLP JSON lines.
pub fn spans(lines: &[u8]) -> Vec<Json> {
    let mut spans = Vec::new();
    for line in String::from_utf8_lossy(lines).lines() {
        let request: Json = serde_json::from_str(line).unwrap();
        for resource in request["resourceSpans"].as_array().unwrap() {
            for scope in resource["scopeSpans"].as_array().unwrap() {
                spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
            }
        }
    }
    spans
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One HTTP exchange on a connection of its own. `head` is the request line, then headers, one a line.
pub fn http(address: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = head.trim().lines().collect::<Vec<_>>().join("\r\n");
    let whole = format!("{head}\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(whole.as_bytes()).unwrap();
    // An answer may come before the body is read; then writing fails and the answer is still there to read.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    answer(&bytes, &head)
}

/// Reads an answer to a request with this head.
pub fn answer(bytes: &[u8], head: &str) -> Answer {
    let at = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or_else(|| panic!("no answer to {head}"));
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[at + 4..].to_vec() }
}

/// Says something that may be answered or hung up on; only what it does to the other side matters. It is all there is to
/// say: the other side need not wait for more.
pub fn shout(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Posts to a path.
pub fn post(address: SocketAddr, path: &str, kind: &str, body: &[u8]) -> Answer {
    http(address, &format!("POST {path} HTTP/1.1\nContent-Type: {kind}"), body)
}

/// Posts spans as JSON.
pub fn post_json(address: SocketAddr, body: &Json) -> Answer {
    post(address, "/v1/traces", "application/json", body.to_string().as_bytes())
}
