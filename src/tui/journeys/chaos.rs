//! Any actions at any sizes on any data: no crash, nothing outside of the frame, no control character on the screen.

use std::cell::Cell;
use std::sync::Arc;

use parking_lot::FairMutex;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::pipeline::take_in;
use crate::source::intake::{Payload, Signal};
use crate::tui::action::{self, Place};

/// Texts that terminals, tables and columns choke on.
const TEXTS: [&str; 12] = [
    "\u{1b}[2J\u{1b}]52;c;AAAA\u{7}",
    "\u{202e}evil\u{2066}",
    "推理服务👩‍🔬🏳️‍🌈",
    "a\nb\tc\rd",
    "e\u{301}\u{301}\u{301}\u{301}",
    "\u{200b}\u{feff}",
    "\0\u{7f}\u{9b}31m",
    "ｶﾞ♻️",
    "",
    "\"quoted\\\" and (open",
    "worker:1 or -",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// Names that evidence stands under.
const NAMES: [&str; 7] = [
    "http-request",
    "request.lifecycle",
    "router.queue",
    "router.selection",
    "kv_router.route_request",
    "handle_payload",
    "\u{1b}[31mred",
];

/// Keys that evidence stands under.
const KEYS: [&str; 8] = [
    "request_id",
    "dynamo.request.id",
    "worker_id",
    "session.id",
    "model",
    "request.outcome",
    "dynamo.request.terminal.outcome",
    "\u{9b}odd\u{202e} key",
];

fn field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    crate::lifecycle::packed::put_bytes(out, number, bytes);
}

/// An export of one hostile span.
fn export(rng: &mut fastrand::Rng, now_ns: u64) -> Vec<u8> {
    let text = |rng: &mut fastrand::Rng| TEXTS[rng.usize(..TEXTS.len())];
    let mut span = Vec::new();
    field(&mut span, 1, &[rng.u8(1..12); 16]);
    field(&mut span, 2, &[rng.u8(1..40); 8]);
    if rng.bool() {
        field(&mut span, 4, &[rng.u8(0..40); 8]);
    }
    let name = if rng.u8(..8) == 0 { text(rng) } else { NAMES[rng.usize(..NAMES.len())] };
    field(&mut span, 5, name.as_bytes());
    let start_ns = [0, now_ns, now_ns - rng.u64(..60_000 * MS), u64::MAX, rng.u64(..)][rng.usize(..5)];
    let end_ns = [0, start_ns, start_ns.saturating_add(rng.u64(..5000 * MS)), u64::MAX, 1][rng.usize(..5)];
    crate::lifecycle::packed::put_fixed64(&mut span, 7, start_ns);
    crate::lifecycle::packed::put_fixed64(&mut span, 8, end_ns);
    for _ in 0..rng.usize(..6) {
        let key = KEYS[rng.usize(..KEYS.len())];
        let value = match rng.u8(..5) {
            0 => Value::Int([i64::MIN, -1, 0, i64::MAX][rng.usize(..4)]),
            1 => Value::Double([f64::NAN, f64::INFINITY, -0.0, 1e300][rng.usize(..4)]),
            _ => Value::Str(text(rng)),
        };
        field(&mut span, 9, &crate::lifecycle::packed::pack(key, value));
    }
    let (mut scope, mut resource, mut request) = (Vec::new(), Vec::new(), Vec::new());
    field(&mut scope, 2, &span);
    field(&mut resource, 2, &scope);
    field(&mut request, 1, &resource);
    request
}

/// What a frame must be, whatever was done.
fn assert_drawn(frame: &ratatui::buffer::Buffer, size: (u16, u16)) {
    assert_eq!((frame.area.width, frame.area.height), size);
    for (at, cell) in frame.content.iter().enumerate() {
        let symbol = cell.symbol();
        assert!(crate::lifecycle::text::is_clean(symbol.as_bytes()), "{symbol:?}");
        assert!(!symbol.contains(['\n', '\r', '\t']), "{symbol:?}");
        let column = at as u16 % size.0;
        assert!(usize::from(column) + symbol.width() <= usize::from(size.0), "{symbol:?} beyond column {column}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Key(usize, usize),
    Typed(usize),
    Paste(usize),
    Size(u16, u16),
    Data(u64),
    Notice(usize),
    Clock(i64),
    Records(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop_oneof![
        (0u16..4, 0u16..4),
        (0u16..500, 0u16..200),
        Just((80, 24)),
        Just((500, 200)),
        (60u16..160, 10u16..50),
    ];
    prop_oneof![
        12 => (0..Place::ALL.len(), 0usize..64).prop_map(|(place, key)| Step::Key(place, key)),
        2 => (0..TEXTS.len()).prop_map(Step::Typed),
        1 => (0..TEXTS.len()).prop_map(Step::Paste),
        3 => sizes.prop_map(|(width, height)| Step::Size(width, height)),
        4 => any::<u64>().prop_map(Step::Data),
        1 => (0..TEXTS.len()).prop_map(Step::Notice),
        2 => prop_oneof![-100_000_000_000i64..100_000_000_000, Just(i64::MAX / 4), Just(i64::MIN / 4)].prop_map(Step::Clock),
        1 => any::<u64>().prop_map(Step::Records),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("REQTOP_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_actions_at_any_size_on_any_data(steps in proptest::collection::vec(step(), 1..60), memory in 8usize..400) {
        let store = Store::new(Limits { memory: memory << 10, lost_after_ns: 5_000_000_000 });
        let store = Arc::new(FairMutex::new(store));
        let hub = Shared::new(Arc::clone(&store), Vitals::default());
        let time = Cell::new(NOW);
        let clock = || time.get();
        let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &clock);
        let (mut hands, mut size) = (Hands::default(), (80, 24));
        for step in steps {
            match step {
                Step::Key(place, key) => {
                    // Keys of any place, whether or not they mean something here; the frame must stand.
                    let keys: Vec<&str> = action::rows(Place::ALL[place].0).flat_map(|row| row.keys).copied().collect();
                    let key = Key::parse(keys[key % keys.len()]).unwrap();
                    let modifiers = if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                    // One that ends the program ends nothing here.
                    let _ = app.press(&Event::Key(KeyEvent::new(key.code, modifiers)), &mut hands);
                }
                Step::Typed(text) => for c in TEXTS[text].chars() {
                    let _ = app.press(&Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)), &mut hands);
                },
                Step::Paste(text) => _ = app.press(&Event::Paste(TEXTS[text].into()), &mut hands),
                Step::Size(width, height) => {
                    size = (width, height);
                    let _ = app.press(&Event::Resize, &mut hands);
                }
                Step::Data(seed) => {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    let mut store = store.lock();
                    for _ in 0..rng.usize(1..30) {
                        let bytes = export(&mut rng, time.get());
                        take_in(&mut store, &mut Payload::otlp(Signal::Traces, bytes), time.get()).unwrap();
                    }
                    store.refresh(time.get());
                    store.check(time.get());
                }
                Step::Records(seed) => {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    let id = TEXTS[rng.usize(..TEXTS.len())];
                    let text = serde_json::json!({
                        "event_type": TEXTS[rng.usize(..TEXTS.len())], "event_time_unix_ms": rng.u64(..),
                        "agent_context": {"session_id": TEXTS[rng.usize(..TEXTS.len())]}, "request": {"request_id": id},
                    });
                    if let Ok(record) = crate::lifecycle::record::Record::from_json(text.to_string().as_bytes()) {
                        let batch = crate::lifecycle::batch::Batch { records: vec![record], ..Default::default() };
                        store.lock().ingest(&batch, time.get());
                    }
                }
                Step::Notice(text) => hub.report(|vitals| {
                    vitals.notices.push(crate::lifecycle::text::scrub(TEXTS[text].as_bytes()).into_owned());
                    vitals.busy += 1;
                }),
                Step::Clock(by) => time.set(time.get().saturating_add_signed(by).max(60_000 * MS)),
            }
            assert_drawn(&app.frame(size.0, size.1), size);
        }
    }
}
