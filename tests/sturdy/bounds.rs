//! Requests that are larger than they look, or than they may be.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use reqtop::source::notices::Notice;
use reqtop::source::otlp::Settings;
use serde_json::{Value as Json, json};

use crate::Form;
use crate::common::{self, Listening, post};
use crate::house::{House, mib, one_span, peak_memory, protobuf, say, wait_closed};
use crate::http2::{Client, END_HEADERS, END_STREAM, HEADERS, frame, headers};

const MIB: usize = 1 << 20;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// These bytes in every coding, by the names that HTTP has for them.
fn coded(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(bytes).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
    raw.write_all(bytes).unwrap();
    vec![
        ("gzip", gzip(bytes)),
        ("x-gzip", gzip(bytes)),
        ("zstd", zstd::encode_all(bytes, 1).unwrap()),
        ("deflate", zlib.finish().unwrap()),
        ("deflate", raw.finish().unwrap()),
    ]
}

/// A gRPC message that says it is compressed.
fn grpc_message(bytes: &[u8]) -> Vec<u8> {
    [&[1][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// Sends a compressed gRPC message with this coding; whether it was answered.
fn send_grpc(address: SocketAddr, coding: &str, message: &[u8]) -> bool {
    let mut client = Client::open(address).ready();
    let mut head = crate::http2::export_headers();
    head.extend(headers(&[("grpc-encoding", coding)]));
    client.send(&frame(HEADERS, END_HEADERS, 1, &head));
    for (at, part) in message.chunks(16 << 10).enumerate() {
        let last = (at + 1) * (16 << 10) >= message.len();
        client.send(&frame(crate::http2::DATA, if last { END_STREAM } else { 0 }, 1, part));
    }
    client.answered(&[1]) == 1
}

/// Bombs past the limit are refused; bombs just below it cost the room for a few, however many come at once.
pub fn bombs(form: Form) -> String {
    let listening = Listening::report();
    let pid = listening.child.id();
    let past = vec![0; form.pick(20, 1024) * MIB];
    for (coding, body) in coded(&past) {
        let answer = protobuf(listening.http, &format!("Content-Encoding: {coding}"), &body);
        assert_eq!(answer.status, 413, "{coding}: {answer:?}");
    }
    // As much as fits, compressed, into the window that a client may fill unasked.
    let past = &past[..past.len().min(900 * MIB)];
    let mut dense = GzEncoder::new(Vec::new(), Compression::best());
    dense.write_all(past).unwrap();
    for (coding, body) in [("gzip", dense.finish().unwrap()), ("zstd", zstd::encode_all(past, 1).unwrap())] {
        // A sender that overruns the window is cut off, and whether it does goes by how busy the machine is.
        assert!(body.len() < MIB, "{coding}: {} bytes", body.len());
        assert!(send_grpc(listening.grpc, coding, &grpc_message(&body)), "{coding} over gRPC");
    }
    assert!(peak_memory(pid) < 128 * MIB, "one at a time: {}", mib(peak_memory(pid)));
    let below = gzip(&vec![0; 16 * MIB - 1024]);
    let many = form.pick(96, 1000);
    let (mut answered, mut threads) = (0, Vec::new());
    for at in 0..many {
        let (below, http, grpc) = (below.clone(), listening.http, listening.grpc);
        threads.push(std::thread::spawn(move || match at % 2 {
            0 => usize::from(protobuf(http, "Content-Encoding: gzip", &below).status > 0),
            _ => usize::from(send_grpc(grpc, "gzip", &grpc_message(&below))),
        }));
    }
    for thread in threads {
        answered += thread.join().unwrap();
    }
    assert_eq!(answered, many);
    let peak = peak_memory(pid);
    assert!(peak < 600 * MIB, "{many} at once: {}", mib(peak));
    assert_eq!(common::post_json(listening.http, &one_span(0)).status, 200);
    assert_eq!(listening.json()["spans"]["total"], 1);
    format!("refused in every coding; {many} of 16 MiB at once: peak {}", mib(peak))
}

/// Bombs within bombs, and bodies of a great many compressed nothings.
pub fn nested_bombs(form: Form) -> String {
    let listening = Listening::report();
    let pid = listening.child.id();
    let zeros = vec![0; form.pick(4, 64) * MIB];
    let twice = gzip(&gzip(&zeros));
    assert_eq!(protobuf(listening.http, "Content-Encoding: gzip, gzip", &twice).status, 415);
    assert_eq!(protobuf(listening.http, "Content-Encoding: gzip\nContent-Encoding: gzip", &twice).status, 415);
    // Inflated once, it is no protobuf.
    assert_eq!(protobuf(listening.http, "Content-Encoding: gzip", &twice).status, 400);
    let size = form.pick(1, 15) * MIB;
    let mut slowest = 0.0f64;
    for (coding, nothing) in [("gzip", gzip(b"")), ("zstd", zstd::encode_all(&b""[..], 1).unwrap()), ("deflate", vec![0, 0, 0, 0xff, 0xff])] {
        let body = nothing.repeat(size / nothing.len());
        let begun = std::time::Instant::now();
        let answer = protobuf(listening.http, &format!("Content-Encoding: {coding}"), &body);
        assert!(matches!(answer.status, 200 | 400), "{coding}: {answer:?}");
        slowest = slowest.max(begun.elapsed().as_secs_f64());
    }
    // A zstd frame that asks for the largest window there is.
    let mut wide = zstd::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(27).unwrap();
    wide.long_distance_matching(true).unwrap();
    wide.write_all(&zeros[..MIB]).unwrap();
    let wide = wide.finish().unwrap();
    assert_eq!(protobuf(listening.http, "Content-Encoding: zstd", &wide).status, 400);
    let peak = peak_memory(pid);
    assert!(peak < 128 * MIB, "{}", mib(peak));
    listening.end();
    format!("refused or read; {} of empty members in {slowest:.2} s at most, peak {}", mib(size), mib(peak))
}

/// Heads that are too large are refused in both HTTPs, and those just large enough are not.
pub fn heads(_: Form) -> String {
    let house = House::with(Settings::default());
    let long = |count: usize| "x".repeat(count);
    let head = |head: String| common::http(house.http, &head, b"{}").status;
    assert_eq!(head(format!("POST /{} HTTP/1.1", long(30_000))), 404);
    assert_eq!(head(format!("POST /{} HTTP/1.1", long(66_000))), 431);
    let post = "POST /v1/traces HTTP/1.1\nContent-Type: application/json";
    assert_eq!(head(format!("{post}\nX: {}", long(40_000))), 200);
    assert_eq!(head(format!("{post}\nX: {}", long(80_000))), 431);
    assert_eq!(head(format!("{post}{}", "\nX: y".repeat(50))), 200);
    assert_eq!(head(format!("{post}{}", "\nX: y".repeat(100))), 431);
    // Not HTTP at all, and a line that never ends.
    assert!(common_answer(house.http, b"\0\0\0\0\0\0\0\r\n\r\n").starts_with("HTTP/1.1 400"));
    let mut endless = say(house.http, &vec![b'A'; 1 << 20]);
    wait_closed(&mut endless);
    // HTTP/2: the list is refused, its connection goes on.
    let mut client = Client::open(house.grpc);
    let value = long(20_000);
    let big = [crate::http2::export_headers(), headers(&[("x-big", &value)])].concat();
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &big[..16_000.min(big.len())]));
    client.read(std::time::Duration::from_secs(2), |frames| frames.iter().any(|frame| frame.kind == crate::http2::GOAWAY));
    assert!(client.goaway().is_some(), "half a header block is an error of the connection: {:?}", client.frames);
    let mut client = Client::open(house.grpc);
    client.send(&frame(HEADERS, END_STREAM, 1, &big[..16_000]));
    client.send(&frame(crate::http2::CONTINUATION, END_HEADERS, 1, &big[16_000..]));
    client.export(3, b"\0\0\0\0\0");
    assert_eq!(client.answered(&[3]), 1, "{:?}", client.frames);
    house.serves();
    "431 and RST_STREAM; the next request is served".into()
}

fn common_answer(address: SocketAddr, bytes: &[u8]) -> String {
    String::from_utf8_lossy(&wait_closed(&mut say(address, bytes))).into_owned()
}

/// A body that comes byte by byte costs what it holds.
pub fn crumbs(form: Form) -> String {
    let listening = Listening::report();
    let size = form.pick(64 << 10, 12 * MIB);
    let mut stream = TcpStream::connect(listening.http).unwrap();
    let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-protobuf\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let crumbs = b"1\r\n\x0a\r\n".repeat(4096);
    for _ in 0..size / 4096 {
        stream.write_all(&crumbs).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let answer = common::answer(&wait_closed(&mut stream), "crumbs");
    assert_eq!(answer.status, 400, "{answer:?}");
    let peak = peak_memory(listening.child.id());
    assert!(peak < 64 * MIB + 4 * size, "{}", mib(peak));
    listening.end();
    format!("{} in chunks of one byte: peak {}", mib(size), mib(peak))
}

/// Values as large, as deep and as many as a message can hold.
pub fn huge_values(form: Form) -> String {
    let listening = Listening::start(&["export", "--max-memory", "64MiB"]);
    let pid = listening.child.id();
    let send = |span: Json| {
        let mut body = one_span(0);
        let fields = body.pointer_mut("/resourceSpans/0/scopeSpans/0/spans/0").unwrap().as_object_mut().unwrap();
        fields.extend(span.as_object().unwrap().clone());
        common::post_json(listening.http, &body).status
    };
    let text = |size: usize| json!({"stringValue": "x".repeat(size)});
    assert_eq!(send(json!({"attributes": [{"key": "huge", "value": text(form.pick(4, 15) * MIB)}]})), 200);
    assert_eq!(send(json!({"name": "x".repeat(form.pick(1, 8) * MIB)})), 200);
    assert_eq!(send(json!({"attributes": [{"key": "x".repeat(form.pick(1, 8) * MIB), "value": text(1)}]})), 200);
    let many: Vec<Json> = (0..form.pick(5_000, 200_000)).map(|at| json!({"key": format!("k{at}"), "value": text(9)})).collect();
    assert_eq!(send(json!({"attributes": many})), 200);
    let mut status = Vec::new();
    for depth in [8, 60, 200, 5_000] {
        let open = "{\"arrayValue\":{\"values\":[".repeat(depth);
        let deep = format!("{open}{{\"intValue\":1}}{}", "]}}".repeat(depth));
        let body = one_span(1).to_string().replace("\"name\":", &format!("\"attributes\":[{{\"key\":\"deep\",\"value\":{deep}}}],\"name\":"));
        status.push(post(listening.http, "/v1/traces", "application/json", body.as_bytes()).status);
    }
    assert_eq!(status, [200; 4], "what is too deep costs itself");
    let peak = peak_memory(pid);
    assert!(peak < 400 * MIB, "{}", mib(peak));
    listening.end();
    format!("taken or refused with a reason; 64 MiB to keep: peak {}", mib(peak))
}

/// A request cut at any byte is an error of that sender alone.
pub fn truncated(form: Form) -> String {
    let house = House::with(Settings::default());
    let body = gzip(one_span(7).to_string().as_bytes());
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let whole = [head.as_bytes(), &body].concat();
    let step = form.pick(7, 1);
    let mut cuts = 0;
    for cut in (0..whole.len()).step_by(step) {
        drop(say(house.http, &whole[..cut]));
        // The body itself cut, and said to be whole.
        if cut < body.len() {
            assert_eq!(protobuf(house.http, "Content-Encoding: gzip", &body[..cut]).status, 400);
        }
        cuts += 1;
    }
    let message = [&[0, 0, 0, 0, 40][..], &[0; 40]].concat();
    let head = frame(HEADERS, END_HEADERS, 1, &crate::http2::export_headers());
    let grpc = [head, frame(crate::http2::DATA, END_STREAM, 1, &message)].concat();
    for cut in (0..grpc.len()).step_by(step) {
        Client::open(house.grpc).send(&grpc[..cut]);
        cuts += 1;
    }
    // A message that ends before it says it does.
    for cut in [1, 5, 20] {
        let mut client = Client::open(house.grpc);
        client.export(1, &message[..cut]);
        assert_eq!(client.answered(&[1]), 1);
    }
    assert_eq!(house.spans(), 0);
    house.wait_deserted();
    let (malformed, cut_off) = (house.notices.count(Notice::Malformed), house.notices.count(Notice::CutOff));
    assert!(malformed > 0 && cut_off > 0);
    assert_eq!(house.notices.lost(), malformed + cut_off, "what was cut off may be missed");
    house.serves();
    format!("{cuts} cuts: nothing taken, every connection let go")
}
