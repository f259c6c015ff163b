//! Peers that take their time, and peers that are gone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqtop::source::notices::Notice;
use reqtop::source::otlp::{Settings, Times};

use crate::Form;
use crate::common;
use crate::house::{DEADLINE, House, one_span, say, wait_closed};
use crate::http2::{Client, END_HEADERS, HEADERS, PING, export_headers, frame};

const MS: Duration = Duration::from_millis(1);

/// Every limit on waiting, short enough to see it.
fn hurried() -> House {
    let times = Times { silence: 400 * MS, pong: 200 * MS, opening: 300 * MS, body: 500 * MS, stall: 300 * MS };
    House::with(Settings { times, ..Settings::default() })
}

/// Writes byte by byte, as slowly as goes unnoticed by whoever looks at single bytes, until closed; gives what was answered.
fn drip(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    let begun = Instant::now();
    let mut said = Vec::new();
    stream.set_read_timeout(Some(20 * MS)).unwrap();
    for byte in bytes.iter().cycle() {
        let mut read = [0; 1024];
        match stream.read(&mut read) {
            Ok(0) => return said,
            Ok(count) => said.extend_from_slice(&read[..count]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return said,
        }
        if stream.write_all(&[*byte]).is_err() {
            return said;
        }
        assert!(begun.elapsed() < DEADLINE, "still open");
    }
    said
}

/// Whatever drips is ended by the clock, not by the next byte.
pub fn slow_writers(form: Form) -> String {
    let house = hurried();
    let json = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
    let (http, grpc) = (house.http, house.grpc);
    std::thread::scope(|scope| {
        for _ in 0..form.pick(4, 64) {
            // A head, its first bytes alone, a body, the beginning of HTTP/2, a body over gRPC.
            scope.spawn(move || drip(&mut say(http, b"POST /v1/traces HTTP/1.1\r\n"), b"X-Y: z\r\n"));
            scope.spawn(move || drip(&mut say(http, b""), b"PRI * HTTP/2.0\r\n\r\nSM\r\n"));
            scope.spawn(move || {
                let said = drip(&mut say(http, json.as_bytes()), b" ");
                assert!(String::from_utf8_lossy(&said).starts_with("HTTP/1.1 408"), "{said:?}");
            });
            scope.spawn(move || {
                let mut client = Client::open(grpc);
                client.send(&frame(HEADERS, END_HEADERS, 1, &export_headers()));
                let begun = Instant::now();
                while client.frames.iter().all(|frame| frame.stream != 1 || frame.kind != HEADERS) {
                    client.send(&frame(crate::http2::DATA, 0, 1, b"\0"));
                    client.read(20 * MS, |_| false);
                    assert!(!client.closed && begun.elapsed() < DEADLINE, "gRPC");
                }
            });
            // Nothing at all.
            scope.spawn(move || wait_closed(&mut say(grpc, b"")));
        }
        // Others are served meanwhile.
        house.serves();
    });
    let exports = u64::from(2 * form.pick(4u32, 64));
    assert!(house.notices.count(Notice::TooSlow) >= exports);
    assert!(house.notices.lost() >= exports, "what did not come in time may be missed");
    house.wait_deserted();
    assert_eq!(house.spans(), 1);
    house.serves();
    "ended by the clock; those with a request are told 408 or DEADLINE_EXCEEDED".into()
}

/// A peer that asks on and on and reads no answer is let go.
pub fn slow_readers(form: Form) -> String {
    let house = hurried();
    let body = one_span(0).to_string();
    let request = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let burst = request.repeat(100);
    let count = form.pick(1, 30);
    let held: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(house.http).unwrap();
            stream.set_write_timeout(Some(200 * MS)).unwrap();
            // Until the other side takes no more: it waits for us to read.
            while stream.write_all(burst.as_bytes()).is_ok() {}
            stream
        })
        .collect();
    house.wait_deserted();
    house.serves();
    drop(held);
    format!("{count} let go; others served")
}

/// A peer that is gone without a word: no answer to a ping, no byte, no end.
pub fn half_open(form: Form) -> String {
    let house = hurried();
    let count = form.pick(10, 500);
    let mut gone = Vec::new();
    for _ in 0..count {
        let mut client = Client::open(house.grpc);
        client.export(1, b"\0\0\0\0\0");
        assert_eq!(client.answered(&[1]), 1);
        // Its answers to pings will never come.
        gone.push(client.stream);
    }
    let idle: Vec<TcpStream> = (0..count)
        .map(|at| {
            let body = one_span(at).to_string();
            let head = format!("POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut stream = say(house.http, head.as_bytes());
            let _ = stream.read(&mut [0; 1024]);
            stream
        })
        .collect();
    house.wait_deserted();
    drop((gone, idle));
    house.serves();
    format!("{} let go", 2 * count)
}

/// Many pings on an idle connection are fine, and pings of ours are answered: one connection serves both exports.
pub fn keepalive(form: Form) -> String {
    // In its short form a sixtieth of the time, and as many more pings.
    let (idle, every) = form.pick((Duration::from_secs(1), 50 * MS), (Duration::from_secs(60), Duration::from_secs(10)));
    let times = form.pick(Times { silence: 200 * MS, pong: 200 * MS, ..Times::default() }, Times::default());
    let house = House::with(Settings { times, ..Settings::default() });
    let mut client = Client::open(house.grpc);
    client.export(1, b"\0\0\0\0\0");
    assert_eq!(client.answered(&[1]), 1);
    let (begun, mut pings) = (Instant::now(), 0usize);
    while begun.elapsed() < idle {
        client.send(&frame(PING, 0, 0, &[1; 8]));
        pings += 1;
        client.read(every, |_| false);
    }
    let pongs = client.frames.iter().filter(|frame| frame.kind == PING && frame.flags == 1).count();
    let asked = client.frames.iter().filter(|frame| frame.kind == PING && frame.flags == 0).count();
    let secret = [export_headers(), crate::http2::headers(&[("authorization", "Bearer s3cret"), ("x-scope-orgid", "t")])];
    client.send(&frame(HEADERS, END_HEADERS, 3, &secret.concat()));
    client.send(&frame(crate::http2::DATA, crate::http2::END_STREAM, 3, b"\0\0\0\0\0"));
    assert_eq!((client.answered(&[3]), client.goaway(), client.closed), (1, None, false));
    assert!(pongs >= pings - 1 && asked > 0, "{pings} pings, {pongs} answers, asked {asked} times");
    let _ = common::ANY;
    format!("{pings} pings in {idle:?} idle, {asked} of ours, both exports on one connection")
}
