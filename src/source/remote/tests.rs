//! Both stores, faked from their documentation, on a loopback port: what is asked, what is made of the answers.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};

use super::client::Base;
use super::*;
use crate::lifecycle::batch::Batch;
use crate::source::intake::Signal;
use crate::source::otlp::json::{Shape, transcode};
use crate::source::otlp::wire;

mod lacks;
mod pushed;

/// An answer of the fake: status, content type, body.
type Answer = (u16, &'static str, Vec<u8>);

/// A store that answers with what a function makes of the path and its parameters.
struct Fake {
    base: Base,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn new(answer: impl Fn(&str, &[(String, String)]) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Base::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Self { base, asked }
    }

    /// One that speaks TLS; gives its certificate, too.
    fn secure(answer: impl Fn(&str, &[(String, String)]) -> Answer + Send + Sync + 'static) -> (Self, String) {
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Base::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                serve(rustls::StreamOwned::new(connection, stream), &log, &answer);
            }
        });
        (Self { base, asked }, own.cert.pem())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn settings(&self, kind: Kind, since_ns: u64, until: Until) -> Settings {
        let limits = Limits {
            page: 4,
            most: 64,
            pause: Duration::from_millis(1),
            patience: Duration::from_secs(5),
            ..Limits::default()
        };
        Settings {
            kind,
            base: self.base.clone(),
            headers: HeaderMap::from_iter([client::header("Authorization=Bearer hush").unwrap()]),
            authority: None,
            search: Search::default(),
            since_ns,
            until,
            limits,
        }
    }
}

/// Answers a path with its query.
type Answering = dyn Fn(&str, &[(String, String)]) -> Answer;

fn serve(stream: impl Read + Write, log: &Mutex<Vec<String>>, answer: &Answering) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut authorized = false;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            authorized |= line.trim().eq_ignore_ascii_case("authorization: bearer hush");
            if line.trim().is_empty() {
                break;
            }
        }
        let target = first.split(' ').nth(1).unwrap().to_owned();
        log.lock().unwrap().push(target.clone());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query: Vec<(String, String)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), unescape(value)))
            .collect();
        let (status, kind, body) = if authorized { answer(path, &query) } else { (401, "text/plain", b"no".to_vec()) };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: {kind}; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = reader.get_mut();
        if stream.write_all(&[head.as_bytes(), &body].concat()).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

fn unescape(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            out.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            out.push(byte);
            rest = after;
        }
    }
    String::from_utf8(out).unwrap()
}

fn parameter<'a>(query: &'a [(String, String)], key: &str) -> &'a str {
    query.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
}

/// What a reader was given.
#[derive(Default)]
struct Taken {
    spans: Vec<(String, String)>,
    problems: Vec<String>,
    /// How many of these were left out, and of how many nobody knows the trace.
    left_out: [usize; 2],
    /// Traces of which something is missing.
    torn: Vec<String>,
    /// Spans refused for themselves.
    refused: u64,
    progress: Vec<Progress>,
    /// Stops when this many spans are there.
    enough: usize,
}

impl Sink for Taken {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        self.torn.extend(payload.tally.torn.iter().map(|trace| trace.to_string().trim_start_matches('0').to_owned()));
        self.refused += payload.tally.refused_spans;
        let crate::source::intake::Body::Otlp(_, bytes) = payload.body else { panic!() };
        let mut batch = Batch::default();
        wire::traces(&bytes, &mut batch).map_err(Refusal::Malformed)?;
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        self.spans.extend(batch.spans.iter().map(|span| (span.trace.to_string(), name(span.name))));
        Ok(Receipt::of(&batch))
    }

    fn left_out(&mut self, words: String, is_named: bool) {
        self.left_out[0] += 1;
        self.left_out[1] += usize::from(!is_named);
        self.problem(words);
    }

    fn problem(&mut self, words: String) {
        self.problems.push(words);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.progress.push(progress);
        match self.enough {
            0 => ControlFlow::Continue(()),
            enough if self.spans.len() >= enough => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

const SECOND: u64 = 1_000_000_000;
/// When the fakes' traces begin.
const T0: u64 = 1_700_000_000 * SECOND;

/// A trace with these spans, as Jaeger gives it.
fn trace(number: u64, names: &[&str]) -> String {
    let spans = names.iter().enumerate().map(|(at, name)| {
        let parent = if at == 0 { String::new() } else { format!(r#","parentSpanId":"{:016x}""#, 1) };
        format!(
            r#"{{"traceId":"{number:032x}","spanId":"{:016x}","name":"{name}","startTimeUnixNano":"{T0}"{parent}}}"#,
            at + 1
        )
    });
    format!(r#"{{"scopeSpans":[{{"spans":[{}]}}]}}"#, spans.collect::<Vec<_>>().join(","))
}

fn json(text: impl Into<String>) -> Answer {
    (200, "application/json", text.into().into_bytes())
}

fn none_found() -> Answer {
    (404, "text/plain", br#"{"error":{"httpCode":404,"message":"No traces found"}}"#.to_vec())
}

fn nanos(moment: &str) -> u64 {
    u64::try_from(moment.parse::<jiff::Timestamp>().unwrap().as_nanosecond()).unwrap()
}

/// A Jaeger with three services, and traces that begin a second apart.
fn jaeger(count: u64) -> Fake {
    Fake::new(move |path, query| match path {
        "/api/v3/services" => json(r#"{"services":["cart","dynamo-frontend","dynamo-worker"]}"#),
        "/api/v3/operations" => json(match parameter(query, "service") {
            "dynamo-frontend" => r#"{"operations":[{"name":"http-request","spanKind":"server"},{"name":"x"}]}"#,
            "dynamo-worker" => r#"{"operations":[{"name":"handle_payload"}]}"#,
            _ => r#"{"operations":[{"name":"GET /"}]}"#,
        }),
        "/api/v3/traces" => {
            assert_eq!(parameter(query, "query.raw_traces"), "true");
            let (from, to) = (parameter(query, "query.start_time_min"), parameter(query, "query.start_time_max"));
            let limit: usize = parameter(query, "query.num_traces").parse().unwrap();
            let within = (1..=count).filter(|number| (nanos(from)..=nanos(to)).contains(&(T0 + number * SECOND)));
            let traces: Vec<String> = within.take(limit).map(|number| trace(number, &["http-request", "x"])).collect();
            if traces.is_empty() {
                return none_found();
            }
            // Streams of the API come as several documents, one after another.
            let (first, rest) = traces.split_at(1);
            let each = [first, rest].map(|some| format!(r#"{{"result":{{"resourceSpans":[{}]}}}}"#, some.join(",")));
            json(each.join("\n"))
        }
        _ => (404, "text/html", b"<html>".to_vec()),
    })
}

#[test]
fn a_range_of_a_jaeger_is_read_in_pages_and_each_span_once() {
    let fake = jaeger(100);
    let settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + 200 * SECOND));
    let mut taken = Taken::default();
    let progress = read(&settings, &|| T0, &mut taken).unwrap();
    assert_eq!((taken.spans.len(), progress.traces), (200, 100));
    assert_eq!(taken.spans.iter().collect::<HashSet<_>>().len(), 200);
    assert!(taken.problems.is_empty(), "{:?}", taken.problems);
    // Pages are halved when full: never more than the page, never the whole range at once; and progress only grows.
    assert!(fake.asked().len() > 30 && taken.progress.is_sorted_by_key(|progress| progress.done_ns));
    assert_eq!((progress.done_ns, progress.of_ns), (200 * SECOND, 200 * SECOND));
    // Only the service that begins requests was asked for.
    let asked: Vec<String> = fake.asked().into_iter().filter(|target| target.starts_with("/api/v3/traces")).collect();
    assert!(asked.iter().all(|target| target.contains("query.service_name=dynamo-frontend&")));
}

#[test]
fn what_does_not_fit_a_page_of_the_shortest_time_is_told() {
    let fake = Fake::new(|path, query| match path {
        "/api/v3/services" => json(r#"{"services":["f"]}"#),
        "/api/v3/operations" => json(r#"{"operations":[{"name":"request.lifecycle"}]}"#),
        _ => {
            let limit: u64 = parameter(query, "query.num_traces").parse().unwrap();
            let traces: Vec<String> = (1..=limit).map(|number| trace(number, &["request.lifecycle"])).collect();
            json(format!(r#"{{"result":{{"resourceSpans":[{}]}}}}"#, traces.join(",")))
        }
    });
    let settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + 1_000_000));
    let mut taken = Taken::default();
    let progress = read(&settings, &|| T0, &mut taken).unwrap();
    assert_eq!(progress.traces, 64);
    assert!(taken.problems[0].starts_with("more than 64 traces began at 2023-11-14T22:13:20"), "{:?}", taken.problems);
}

/// A Jaeger of one service whose traces are asked for in vain.
fn in_vain(traces: impl Fn() -> Answer + Send + Sync + 'static) -> Fake {
    Fake::new(move |path, _| match path {
        "/api/v3/services" => json(r#"{"services":["f"]}"#),
        "/api/v3/operations" => json(r#"{"operations":[{"name":"request.lifecycle"}]}"#),
        _ => traces(),
    })
}

#[test]
fn a_store_that_never_answers_is_told_and_given_up() {
    // The answer comes once the test is over.
    let (over, end) = std::sync::mpsc::channel::<()>();
    let end = Mutex::new(end);
    let fake = in_vain(move || {
        let _ = end.lock().unwrap().recv();
        none_found()
    });
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + 3_200 * SECOND));
    settings.limits.patience = Duration::from_millis(300);
    let mut taken = Taken::default();
    let error = read(&settings, &|| T0, &mut taken).unwrap_err();
    drop(over);
    assert!(error.ends_with("3 times in a row and at last when asked for 50 s only: given up"), "{error}");
    assert!(error.starts_with(&format!("Jaeger at {} did not answer within 0.3 s", fake.base)), "{error}");
    let told: Vec<&str> = taken.problems.iter().filter_map(|problem| problem.rsplit(": ").next()).collect();
    assert_eq!(told, ["asked for 200 s, asking for 100 s now", "asked for 100 s, asking for 50 s now"]);
}

#[test]
fn a_store_that_answers_with_too_much_whatever_the_range_is_given_up() {
    let fake = in_vain(|| json(" ".repeat(4096)));
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    settings.limits.answer = 1024;
    let mut taken = Taken::default();
    let error = read(&settings, &|| T0, &mut taken).unwrap_err();
    assert!(error.ends_with("16 times in a row and at last when asked for 0.001 s only: given up"), "{error}");
    assert_eq!(taken.problems.len(), 15, "{:?}", taken.problems);
    assert!(taken.problems.iter().all(|problem| problem.ends_with("is left out")), "{:?}", taken.problems);
}

#[test]
fn following_asks_for_what_is_new_and_for_what_is_unfinished() {
    // Looked at every few milliseconds: the second trace begins late, its root comes last, by its id alone.
    let looks = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&looks);
    let fake = Fake::new(move |path, _| {
        let result = |traces: &[String]| json(format!(r#"{{"result":{{"resourceSpans":[{}]}}}}"#, traces.join(",")));
        match path {
            "/api/v3/services" => json(r#"{"services":["f"]}"#),
            "/api/v3/operations" => json(r#"{"operations":[{"name":"request.lifecycle"}]}"#),
            "/api/v3/traces" => match seen.fetch_add(1, Ordering::Relaxed) {
                ..16 => result(&[trace(1, &["request.lifecycle"])]),
                16..20 => result(&[trace(1, &["request.lifecycle"]), trace(2, &["", "router.queue"])]),
                // Then the store is away for a while.
                20..22 => (503, "text/plain", b"down\x1b[31m".to_vec()),
                _ => none_found(),
            },
            path if path.ends_with(&format!("{:032x}", 2)) => {
                result(&[trace(2, &["request.lifecycle", "router.queue", "router.selection"])])
            }
            _ => none_found(),
        }
    });
    let settings = fake.settings(Kind::Jaeger, T0, Until::Ever);
    let mut taken = Taken { enough: 4, ..Taken::default() };
    let now = AtomicU64::new(T0 + SECOND);
    read(&settings, &|| now.fetch_add(SECOND, Ordering::Relaxed), &mut taken).unwrap();
    let names: Vec<&str> = taken.spans.iter().map(|(_, name)| name.as_str()).collect();
    assert!(names.contains(&"router.selection"), "{names:?}");
    assert!(taken.problems.iter().all(|problem| !problem.contains('\x1b')));
}

#[test]
fn a_tempo_is_searched_and_its_traces_fetched() {
    for version in ["/api/v2/traces/", "/api/traces/"] {
        let fake = Fake::new(move |path, query| {
            if path == "/api/search" {
                assert!(parameter(query, "q").contains("name = \"request.lifecycle\""));
                let (start, end) = (parameter(query, "start"), parameter(query, "end"));
                let Ok(start) = start.parse::<u64>() else { return json(r#"{"metrics":{}}"#) };
                let (end, limit): (u64, usize) = (end.parse().unwrap(), parameter(query, "limit").parse().unwrap());
                let t0 = T0 / SECOND;
                let within = (1..=30).filter(|number| (start..=end).contains(&(t0 + number)));
                let traces =
                    within.take(limit).map(|number| format!(r#"{{"traceID":"{number:x}","rootServiceName":"f"}}"#));
                return json(format!(r#"{{"traces":[{}],"metrics":{{}}}}"#, traces.collect::<Vec<_>>().join(",")));
            }
            let Some(id) = path.strip_prefix(version) else {
                return (404, "text/plain", b"404 page not found".to_vec());
            };
            let number = u64::from_str_radix(id, 16).unwrap();
            let text = format!(r#"{{"resourceSpans":[{}]}}"#, trace(number, &["request.lifecycle", "x"]));
            let mut plain = Vec::new();
            transcode(Shape::Request(Signal::Traces), text.as_bytes(), &mut plain).unwrap();
            if version == "/api/traces/" {
                return (200, "application/protobuf", plain);
            }
            // The newer answer: the trace as field 1, a status (of one trace: partial) as field 3.
            let mut wrapped = vec![10, plain.len() as u8 & 0x7f | 0x80, (plain.len() >> 7) as u8];
            wrapped.extend(plain);
            wrapped.extend([0x18, u8::from(number == 7)]);
            (200, "application/protobuf", wrapped)
        });
        let settings = fake.settings(Kind::Tempo, T0, Until::At(T0 + 60 * SECOND));
        let mut taken = Taken::default();
        let progress = read(&settings, &|| T0, &mut taken).unwrap();
        assert_eq!((taken.spans.len(), progress.traces), (60, 30), "{version}: {:?}", taken.problems);
        assert_eq!(taken.spans.iter().collect::<HashSet<_>>().len(), 60);
        assert!(taken.problems.iter().all(|problem| problem.contains("only a part")), "{:?}", taken.problems);
        let partial = usize::from(version.contains("v2"));
        assert_eq!((taken.problems.len(), taken.left_out), (partial, [partial, 0]));
        assert_eq!(taken.torn, vec!["7"; partial], "what is missing of it is missing of no other");
    }
}

#[test]
fn failures_say_what_to_do() {
    let failed = |fake: &Fake, kind| {
        read(&fake.settings(kind, T0, Until::At(T0 + SECOND)), &|| T0, &mut Taken::default()).unwrap_err()
    };
    let html = Fake::new(|_, _| (200, "text/html", b"<!doctype html>".to_vec()));
    let error = failed(&html, Kind::Jaeger);
    assert!(
        error.contains("does not answer as Jaeger's query API v3: GET /api/v3/services gave 200 text/html"),
        "{error}"
    );
    assert!(failed(&html, Kind::Tempo).contains("Tempo's HTTP API"));
    // An answer that fits no document of its API, or holds an error whatever its status, is no empty one.
    for kind in [Kind::Jaeger, Kind::Tempo] {
        assert!(failed(&Fake::new(|_, _| json("[]")), kind).contains("does not answer as"));
    }
    let error = r#"{"error":{"httpCode":400,"message":"bad\u001b query"}}"#;
    assert!(failed(&Fake::new(move |_, _| json(error)), Kind::Jaeger).contains("bad\u{fffd} query"));
    let declining = Fake::new(move |path, _| match path {
        "/api/v3/traces" => (400, "application/json", error.as_bytes().to_vec()),
        "/api/v3/services" => json(r#"{"services":["dynamo-frontend"]}"#),
        _ => json(r#"{"operations":[{"name":"http-request"}]}"#),
    });
    assert!(failed(&declining, Kind::Jaeger).contains("declined: 400 Bad Request"));
    let moved = Fake::new(|_, _| (302, "text/html", Vec::new()));
    assert!(failed(&moved, Kind::Jaeger).contains("not followed"));
    let bad = Fake::new(|_, _| (400, "text/plain", b"invalid TraceQL query: parse error\n\x1b[2J".to_vec()));
    let error = failed(&bad, Kind::Tempo);
    assert!(
        error.contains("declined: 400 Bad Request: invalid TraceQL query: parse error") && !error.contains('\x1b'),
        "{error}"
    );
    let mut locked = html.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    locked.headers.clear();
    let error = probe(&locked).unwrap_err();
    assert!(error.contains("401") && error.contains("--from-header"), "{error}");
    let [free] = crate::own::free();
    locked.base = Base::parse(&free.to_string()).unwrap();
    let error = probe(&locked).unwrap_err();
    assert!(
        error.starts_with(&format!("cannot reach Jaeger at http://{free}: ")) && error.contains("16686"),
        "{error}"
    );
    let long = Fake::new(|_, _| json("x".repeat(4096)));
    let mut settings = long.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    settings.limits.answer = 1024;
    assert_eq!(probe(&settings), Err(Failure::TooLarge(1024).sentence(Kind::Jaeger, &long.base)));
}

#[test]
fn https_is_checked_against_the_authority_that_was_named() {
    let (fake, certificate) = Fake::secure(|path, _| match path {
        "/api/v3/services" => json(r#"{"services":[]}"#),
        _ => none_found(),
    });
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, certificate).unwrap();
    settings.authority = Some(path.clone());
    assert_eq!(probe(&settings), Ok(()));
    assert_eq!(fake.asked(), ["/api/v3/services"]);
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&path, other.cert.pem()).unwrap();
    let error = probe(&settings).unwrap_err();
    assert!(error.contains("certificate is not accepted") && error.contains("--from-ca"), "{error}");
    settings.authority = Some(folder.path().join("none.pem"));
    assert!(probe(&settings).unwrap_err().starts_with("--from-ca "));
}

#[test]
fn a_jaeger_without_requests_says_which_services_there_are() {
    let fake = Fake::new(|path, _| match path {
        "/api/v3/services" => json(r#"{"services":["cart","pay\u001bments"]}"#),
        _ => json(r#"{"operations":[{"name":"GET /"}]}"#),
    });
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    let problem = |settings: &Settings| {
        let mut taken = Taken::default();
        read(settings, &|| T0, &mut taken).unwrap();
        taken.problems.remove(0)
    };
    let told = problem(&settings);
    assert!(told.contains("name one with --service: cart, pay\u{fffd}ments"), "{told}");
    settings.search.services = vec!["frontend".into()];
    assert!(problem(&settings).starts_with("Jaeger knows no service frontend; it knows cart"));
    settings.search = Search { operation: Some("x".into()), ..Search::default() };
    assert!(problem(&settings).starts_with("no service in Jaeger has the operation x"));
}

#[test]
fn a_jaeger_of_more_services_than_are_asked_says_so() {
    let many: Vec<String> = (0..300).map(|number| format!("\"service-{number}\"")).collect();
    let all = format!(r#"{{"services":[{},"dynamo-frontend"]}}"#, many.join(","));
    let fake = Fake::new(move |path, _| match path {
        "/api/v3/services" => json(&all),
        _ => json(r#"{"operations":[{"name":"http-request"}]}"#),
    });
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + SECOND));
    let error = read(&settings, &|| T0, &mut Taken::default()).unwrap_err();
    assert!(error.contains("has 301 services, and of at most 256") && error.contains("--service NAME"), "{error}");
    settings.search.services = vec!["dynamo-frontend".into()];
    assert!(read(&settings, &|| T0, &mut Taken::default()).is_ok());
}
