//! HTTP/2 as nobody should speak it.

use std::time::{Duration, Instant};

use reqtop::source::otlp::Settings;

use crate::Form;
use crate::common::Listening;
use crate::house::{House, mib, peak_memory};
use crate::http2::{
    CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, export_headers, frame,
};

/// The GOAWAY code of a peer that is asking for too much (RFC 9113 7).
const ENHANCE_YOUR_CALM: u32 = 11;

/// Requests taken back at once: the connection is closed, everybody else is served.
pub fn resets(form: Form) -> String {
    let house = House::with(Settings::default());
    let mut client = Client::open(house.grpc);
    let (mut made, most) = (0u32, form.pick(50_000, 500_000));
    while !client.closed && made < most {
        let mut burst = Vec::new();
        for at in 0..100 {
            let stream = (made + at) * 2 + 1;
            burst.extend(frame(HEADERS, END_HEADERS, stream, &export_headers()));
            burst.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
        }
        made += 100;
        client.send(&burst);
        client.read(Duration::ZERO, |_| true);
        client.read(Duration::from_millis(1), |_| false);
    }
    let closed = client.closed;
    client.read(Duration::from_millis(200), |_| false);
    let goaway = client.goaway();
    assert!(closed || goaway == Some(ENHANCE_YOUR_CALM), "{made} requests were taken back and it goes on");
    drop(client);
    house.wait_deserted();
    house.serves();
    format!("closed after {made} at most; others served")
}

/// Frames that ask for answers or for memory: bounded memory, and the others are served meanwhile.
pub fn floods(form: Form) -> String {
    let listening = Listening::report();
    let pid = listening.child.id();
    let address = listening.grpc;
    let time = form.pick(Duration::from_millis(300), Duration::from_secs(5));
    let start = frame(HEADERS, 0, 1, &export_headers());
    let kinds: [(&str, Vec<u8>, Vec<u8>); 5] = [
        ("ping", Vec::new(), frame(PING, 0, 0, &[7; 8])),
        ("settings", Vec::new(), frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
        ("continuation", start, frame(CONTINUATION, 0, 1, &[0; 4])),
        ("empty data", frame(HEADERS, END_HEADERS, 1, &export_headers()), frame(DATA, 0, 1, &[])),
        ("unknown", Vec::new(), frame(0x77, 0, 0, &[0; 100])),
    ];
    let mut seen = Vec::new();
    for (name, first, then) in kinds {
        let flood = std::thread::spawn(move || {
            let mut client = Client::open(address);
            client.polite = false;
            client.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
            client.send(&first);
            let (burst, begun, mut sent) = (then.repeat(1000), Instant::now(), 0u64);
            while !client.closed && begun.elapsed() < time {
                client.send(&burst);
                sent += 1000;
            }
            (sent, client.closed)
        });
        // Meanwhile others are served.
        while !flood.is_finished() {
            let mut good = Client::open(address);
            good.export(1, b"\0\0\0\0\0");
            assert_eq!(good.answered(&[1]), 1, "{name}");
        }
        let (sent, closed) = flood.join().unwrap();
        seen.push(format!("{name} {}{}", sent, if closed { " (closed)" } else { "" }));
    }
    let peak = peak_memory(pid);
    assert!(peak < 64 << 20, "{}", mib(peak));
    listening.end();
    format!("{}; peak {}", seen.join(", "), mib(peak))
}

/// More requests at once than the other side said it takes.
pub fn streams(form: Form) -> String {
    let house = House::with(Settings::default());
    let most = form.pick(1_000, 20_000);
    let mut client = Client::open(house.grpc);
    // Their bodies never come to an end.
    for at in 0..most {
        client.send(&frame(HEADERS, END_HEADERS, at * 2 + 1, &export_headers()));
        if client.closed {
            break;
        }
    }
    client.read(Duration::from_millis(300), |_| false);
    let refused = client.frames.iter().filter(|frame| frame.kind == RST_STREAM).count();
    assert!(client.closed || client.goaway().is_some() || refused >= most as usize - 128, "{refused} of {most}");
    house.serves();
    drop(client);
    house.wait_deserted();
    // As many as there may be are served.
    let mut client = Client::open(house.grpc);
    let streams: Vec<u32> = (0..128).map(|at| at * 2 + 1).collect();
    streams.iter().for_each(|stream| client.export(*stream, b"\0\0\0\0\0"));
    assert_eq!(client.answered(&streams), streams.len());
    let _ = END_STREAM;
    format!("{most} at once: all but 128 refused or the connection closed")
}
