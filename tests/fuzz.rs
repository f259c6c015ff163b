//! Every parser against spoiled input, seeded and short; what must hold is in `fuzz/targets.rs`, shared with the long runs.
//!
//! `REQTOP_FUZZ=100000 cargo test --test fuzz` spoils as often for each parser, with other seeds each time; coverage-guided
//! runs are in `tests/fuzz` (README.md, "Tests"). What they found stands in `tests/fixtures/fuzz`, one file each, and is tried first.

mod common;
#[path = "fuzz/targets.rs"]
mod targets;

use std::io::Write;

use common::mutate::Mutator;
use reqtop::lifecycle::packed::varint;

/// Tries of each parser, unless the environment says more.
const TRIES: u64 = 300;

/// Pieces of a capture: lines of JSON, or messages.
fn pieces(name: &str) -> Vec<Vec<u8>> {
    let bytes = common::inflated(name);
    let mut pieces: Vec<Vec<u8>> = if name.contains(".pb.") {
        let (mut rest, mut pieces) = (bytes.as_slice(), Vec::new());
        while let Some(length) = varint(&mut rest) {
            let (message, tail) = rest.split_at(length as usize);
            pieces.push(message.to_vec());
            rest = tail;
        }
        pieces
    } else {
        bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    pieces.retain(|piece| !piece.is_empty() && piece.len() < 24 << 10);
    pieces
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Good input for a parser.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let fixture = |name: &str| std::fs::read(common::fixture(name)).unwrap();
    match target {
        "wire" => [pieces("dev-sim-disagg-http.traces.pb.gz"), pieces("dev-sim.logs.pb.gz")].concat(),
        "json" => [pieces("abort.traces.jsonl.gz"), pieces("dev-sim.logs.jsonl.gz")].concat(),
        "record" => {
            [pieces("abort.request_trace.jsonl.gz"), pieces("dev-sim-disagg-http.request_trace.jsonl.gz")].concat()
        }
        "packed" => {
            use reqtop::lifecycle::packed::{Value, pack};
            let mut corpus: Vec<Vec<u8>> =
                [Value::Str("text"), Value::Int(-7), Value::Double(0.5), Value::Bool(true), Value::Bytes(b"\xff")]
                    .map(|value| pack("key", value))
                    .into();
            // [1, "z", []] and {"k": {"k": false}}.
            corpus.push(b"\x0a\x01a\x12\x0d\x2a\x0b\x0a\x02\x18\x01\x0a\x03\x0a\x01z\x0a\x00".to_vec());
            corpus.push(
                b"\x0a\x01m\x12\x13\x32\x11\x0a\x0f\x0a\x01k\x12\x0a\x32\x08\x0a\x06\x0a\x01k\x12\x02\x10\x00".to_vec(),
            );
            corpus
        }
        "filter" => texts(&[
            r#"outcome:cancelled worker:7587890 phase:prefill queue.wait>100ms margin<0.1 reason:prefill_capacity"#,
            r#"attempt>0 check:violated session:abc "free text" -leg(phase:decode dispatch.result:failed)"#,
            r#"(a:1..5s or not "odd \"key\"":"a \\ b\n") | check:queue.reason:unknown && !x:*"#,
            r#"ttft:10ms..<2s tokens.out>=7 worker:(1,2:3) a!=b name:wo*"#,
        ]),
        "theme" => ["nord", "light"]
            .map(|name| std::fs::read(format!("{}/themes/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap())
            .into(),
        "key" => texts(&["j C-z Enter F12 ↑ S-Tab Space 推", "C-C-C-x", "F999"]),
        "file" => {
            let lines = pieces("dev-sim.logs.jsonl.gz");
            let messages = pieces("dev-sim-disagg-http.traces.pb.gz");
            let framed = |prefix: &dyn Fn(usize) -> Vec<u8>| -> Vec<u8> {
                messages.iter().take(3).flat_map(|message| [prefix(message.len()), message.clone()].concat()).collect()
            };
            let short = lines.iter().take(2).cloned().collect::<Vec<_>>().join(&b'\n');
            let pretty = br#"{
  "resourceSpans": [
    {"scopeSpans": [{"spans": [{"traceId": "0123456789abcdef0123456789abcdef", "spanId": "00000000000000a1", "name": "x"}]}]}
  ]
}
"#;
            vec![
                fixture("abort.request_trace.jsonl.gz"),
                gzip(&short),
                zstd::encode_all(short.as_slice(), 1).unwrap(),
                lines[..lines.len().min(4)].join(&b'\n'),
                framed(&|length| {
                    let mut prefix = Vec::new();
                    reqtop::lifecycle::packed::put_varint(&mut prefix, length as u64);
                    prefix
                }),
                framed(&|length| (length as u32).to_be_bytes().to_vec()),
                pretty.to_vec(),
                [b"[".as_slice(), &lines[0], b",", &lines[0], b"]"].concat(),
                short,
            ]
        }
        "load" => {
            let mut corpus = pieces("aiperf-plain.profile_export.jsonl.gz");
            corpus.push(fixture("aiperf-cancel.phase_manifest.json"));
            corpus.extend(texts(&[
                r#"{"results":{"unary":{"200":7,"429":1},"abort":{"aborted":2}}}"#,
                "outcome.success>=10",
                "queue.reason\n# a word\ndispatch.result request-1\n",
            ]));
            corpus
        }
        "settings" => texts(&[
            "https://user:secret@[::1]:3200/tempo/",
            "HOST:16686",
            "authorization: Bearer x",
            "0123456789abcdef-token\n",
        ]),
        "config" => texts(&[
            &reqtop::settings::default_file().replace("\n#", "\n"),
            "theme = \"nord\"\nmax-memory = \"2GiB\"\n[keys]\npause = [\"F9\", \"Space\"]\n[keys.panes]\nquit = []\n",
        ]),
        "print" => corpus("wire"),
        other => panic!("no corpus for {other}"),
    }
}

/// What was found once, each as a file `target-word`.
fn findings(target: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(common::fixture("fuzz")) else { return Vec::new() };
    let files = entries.map(|entry| entry.unwrap().path());
    let of_target = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{target}-")));
    of_target.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

/// Tells which input it was when a parser panics.
struct Witness<'a>(&'a str, u64, &'a [u8]);

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(target, seed, data) = self;
            let path = std::env::temp_dir().join(format!("{target}-{seed}"));
            let kept =
                std::fs::write(&path, *data).map_or_else(|error| error.to_string(), |()| path.display().to_string());
            eprintln!("{target}, seed {seed}, {} bytes: {kept}", data.len());
        }
    }
}

fn attack(target: &str) {
    let (_, run) = targets::ALL.into_iter().find(|(name, _)| *name == target).unwrap();
    for (path, data) in findings(target) {
        eprintln!("{path}");
        run(&data);
    }
    let corpus = corpus(target);
    if let Some(folder) = std::env::var_os("REQTOP_FUZZ_CORPUS") {
        let folder = std::path::Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (number, piece) in corpus.iter().enumerate() {
            std::fs::write(folder.join(number.to_string()), piece).unwrap();
        }
    }
    let more = std::env::var("REQTOP_FUZZ").ok().map(|tries| tries.parse::<u64>().expect("REQTOP_FUZZ: a number"));
    let from = if more.is_some() { fastrand::u64(..1 << 48) } else { 0 };
    for seed in from..from + more.unwrap_or(TRIES) {
        let data = Mutator::new(seed).from(&corpus);
        let witness = Witness(target, seed, &data);
        run(&data);
        drop(witness);
    }
}

macro_rules! attacks {
    ($($target:ident),+) => {
        $(#[test]
        fn $target() {
            attack(stringify!($target));
        })+

        #[test]
        fn every_target_is_attacked() {
            assert_eq!(targets::ALL.map(|(name, _)| name).as_slice(), [$(stringify!($target)),+]);
        }
    };
}
attacks!(wire, json, record, packed, filter, theme, key, file, load, settings, config, print);
