//! The header: where reqtop listens, how much comes in, what is held and what was lost.
//!
//! Owns: which figures there are, how they rank when room is short, and the rate over the last seconds. Keeps out: where
//! they are drawn.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::account::Account;
use super::data::Data;
use super::pace::Pace;
use super::window::Window;
use super::{Line, Piece, Tone, format};
use crate::store::Counts;

/// A bound address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `grpc` or `http`.
    pub protocol: &'static str,
    /// What is bound.
    pub address: SocketAddr,
}

/// What keeps others from sending and reading what is sent, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// What there is: `TLS`, `token`.
    pub has: Vec<&'static str>,
    /// What there is not: `no TLS`, `no token`.
    pub lacks: Vec<&'static str>,
}

/// What is being read, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// What is done with it: `reading`, `replaying ×10`.
    pub doing: String,
    /// The file or trace store being read.
    pub name: String,
    /// How far.
    pub done: Done,
}

/// How far something has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Files, by their bytes.
    Bytes {
        /// Bytes read over all files.
        read: u64,
        /// Bytes there are over all files; 0 when not known.
        total: u64,
    },
    /// A trace store, by the time range asked for, nanoseconds.
    Time {
        /// What of it is read.
        done_ns: u64,
        /// The whole range.
        of_ns: u64,
    },
}

/// What the header tells beside what the store holds; kept up to date by the sources.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    /// Bound addresses.
    pub listeners: Vec<Listener>,
    /// What senders have to show there.
    pub guard: Guard,
    /// Payloads answered with *busy*: the sender was told to try again.
    pub busy: u64,
    /// Payloads and lines that could not be read at all.
    pub malformed: u64,
    /// When the last payload came, nanoseconds since the epoch.
    pub last_arrival_ns: Option<u64>,
    /// What is being read; `None` when nothing is, or only what is new.
    pub loading: Option<Loading>,
    /// Whether nothing more comes.
    pub ended: bool,
    /// The trace store that is followed.
    pub store: Option<String>,
    /// Where what is received goes on to.
    pub ways_out: Vec<WayOut>,
    /// Things worth telling once, oldest first: odd paths, bad lines, snake_case fields.
    pub notices: Vec<String>,
}

/// A way out of what is received: a recording, a receiver behind this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayOut {
    /// `rec` or `fwd`.
    pub name: &'static str,
    /// How it stands.
    pub said: String,
    /// Exports that are lost to it.
    pub lost: u64,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

impl WayOut {
    /// All of it, for the notices.
    pub fn in_full(&self) -> String {
        let lost = (self.lost > 0).then(|| format!("lost {}", format::count(self.lost)));
        let parts = [Some(&self.said), lost.as_ref(), self.trouble.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        format!("{}: {}", self.name, parts.join(" · "))
    }
}

/// A figure of the header.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// 0 goes last when room is short.
    pub rank: u8,
    /// In full.
    pub long: Line,
    /// When room is short; empty for what goes before others become short.
    pub short: Line,
    /// Whether it stands at the right end.
    pub right: bool,
}

/// The header's figures, from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The figures.
    pub parts: Vec<Part>,
}

/// How many spans came a second, over the last seconds. Sampled when a frame is made, at most four times a second.
#[derive(Debug, Default)]
pub struct Meter {
    samples: VecDeque<(u64, u64)>,
    bars: VecDeque<u64>,
    /// What had been received when last asked to take note; a sample has it or will.
    newest: u64,
}

/// So much of a way out's trouble is said in the header, characters; the notices have all of it.
const TROUBLE: usize = 40;

/// Over how long the rate is taken.
const WINDOW_NS: u64 = 4_000_000_000;
/// When so long nothing was noted, nothing came.
const SILENCE_NS: u64 = 1_500_000_000;
/// How often is noted at most.
const STEP_NS: u64 = 250_000_000;
/// Bars of the little plot.
const BARS: usize = 8;

impl Meter {
    /// Takes note that `spans` had been received at `now_ns`.
    pub fn sample(&mut self, spans: u64, now_ns: u64) {
        self.newest = spans;
        // A clock that goes back makes no rate: it is taken anew.
        if self.samples.back().is_some_and(|(at, _)| now_ns < *at) {
            self.samples.clear();
        }
        if let Some((at, before)) = self.samples.back().copied() {
            if now_ns - at < STEP_NS {
                return;
            }
            // While nothing comes nothing is noted: it was so until just now.
            let since_ns = now_ns - if now_ns - at > SILENCE_NS { STEP_NS } else { now_ns - at };
            if since_ns > at {
                self.samples.push_back((since_ns, before));
            }
            let elapsed = (now_ns - since_ns) as f64 / 1e9;
            if spans != before || self.bars.back().is_some_and(|bar| *bar > 0) {
                self.bars.push_back((spans.saturating_sub(before) as f64 / elapsed) as u64);
            }
            if self.bars.len() > BARS {
                self.bars.pop_front();
            }
        }
        self.samples.push_back((now_ns, spans));
        while self.samples.len() > 2 && self.samples[1].0 + WINDOW_NS <= now_ns {
            self.samples.pop_front();
        }
    }

    /// Spans a second over the last seconds.
    pub fn rate(&self, now_ns: u64) -> f64 {
        let (Some((first_ns, first)), Some((_, last))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let from_ns = now_ns.saturating_sub(WINDOW_NS).max(*first_ns);
        // What had been received by then: between two notes in proportion.
        let mut before = (*first_ns, *first);
        let mut base = *first as f64;
        for &(at, spans) in self.samples.iter().skip(1) {
            if at > from_ns {
                base += spans.saturating_sub(before.1) as f64 * (from_ns - before.0) as f64 / (at - before.0) as f64;
                break;
            }
            (before, base) = ((at, spans), spans as f64);
        }
        let elapsed = now_ns.saturating_sub(from_ns) as f64 / 1e9;
        if elapsed < 0.25 { 0.0 } else { (*last as f64 - base) / elapsed }
    }

    /// Whether the rate will be another although nothing comes: it falls, or the last ones that came are in none yet.
    pub fn is_moving(&self) -> bool {
        self.samples.front().is_some_and(|(_, first)| *first != self.newest)
    }

    /// The last rates, oldest first.
    pub fn bars(&self) -> impl Iterator<Item = u64> {
        self.bars.iter().copied()
    }
}

/// The steps of a small plot.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A row of block characters, scaled to the largest value; zero is the lowest step.
pub fn sparkline(values: impl Iterator<Item = u64> + Clone) -> String {
    let most = values.clone().max().unwrap_or(0).max(1);
    values.map(|value| STEPS[((value as u128 * 7).div_ceil(u128::from(most)) as usize).min(7)]).collect()
}

/// Builds the header.
pub fn header(data: &dyn Data, vitals: &Vitals, meter: &Meter, pace: Pace, window: Window, now_ns: u64) -> Header {
    let (counts, standing, (held, limit)) = (data.counts(), data.standing(), data.memory());
    let mut parts = vec![Part {
        rank: 0,
        long: vec![Piece::new("reqtop", Tone::Strong)],
        short: vec![Piece::new("reqtop", Tone::Strong)],
        right: false,
    }];
    let mut add = |rank, long: Line, short: Line, right| parts.push(Part { rank, long, short, right });
    if let Some((long, short)) = listeners(&vitals.listeners, &vitals.guard) {
        add(3, long, short, false);
    }
    if let Some((long, short)) = exposure(&vitals.listeners, &vitals.guard) {
        add(1, long, short, false);
    }
    if let (Some(store), None) = (&vitals.store, &vitals.loading) {
        let long = vec![Piece::new("● ", Tone::Good), Piece::dim("following "), Piece::plain(store)];
        add(3, long, vec![Piece::new("● ", Tone::Good), Piece::plain(store.split(' ').next().unwrap_or(""))], false);
    }
    if let Some(loading) = &vitals.loading {
        let (done, of) = match loading.done {
            Done::Bytes { read, total: 0 } => (format::bytes(read), None),
            Done::Bytes { read, total } => (format::percent(read, total), Some(format::bytes(total))),
            Done::Time { done_ns, of_ns } => (format::percent(done_ns, of_ns), Some(format::duration(of_ns))),
        };
        let doing = Piece::dim(format!("{} ", loading.doing));
        let mut long = vec![doing, Piece::plain(&loading.name), Piece::new(format!(" {done}"), Tone::Accent)];
        long.extend(of.map(|of| Piece::dim(format!(" of {of}"))));
        add(2, long, vec![Piece::new(format!("⇣ {done}"), Tone::Accent)], false);
    }
    if !vitals.ended {
        let rate = format::rate(meter.rate(now_ns));
        let plot = sparkline(meter.bars().collect::<Vec<_>>().into_iter());
        let long = vec![Piece::new(plot, Tone::Accent), Piece::plain(format!(" {rate}")), Piece::dim(" spans/s")];
        add(4, long, vec![Piece::plain(&rate), Piece::dim("/s")], false);
    }
    let (total, live) = (format::count(standing.total), format::count(standing.in_flight));
    let requests = format!(" {} · ", format::noun(standing.total, "request", "requests"));
    let long = vec![Piece::plain(&total), Piece::dim(requests), Piece::plain(&live), Piece::dim(" in flight")];
    let short = vec![Piece::plain(&total), Piece::dim(" req "), Piece::plain(&live), Piece::dim(" live")];
    add(1, long, short, false);
    let (held_text, limit_text) = (format::bytes(held as u64), format::bytes(limit as u64));
    let tone = if limit > 0 && held as f64 > 0.95 * limit as f64 { Tone::Warn } else { Tone::Plain };
    let long = vec![Piece::new(&held_text, tone), Piece::dim(format!(" of {limit_text}"))];
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    add(5, long, vec![Piece::new(format!("{}/{}M", mib(held), mib(limit)), tone)], false);
    let (long, short) = lost(vitals, counts);
    add(2, long, short, false);
    for way in &vitals.ways_out {
        let (long, short) = way_out(way);
        add(if way.trouble.is_some() || way.lost > 0 { 2 } else { 5 }, long, short, false);
    }
    if counts.spans_received > 0 {
        let account = Account::of_spans(counts);
        add(7, vec![Piece::dim(account.to_string())], Vec::new(), false);
    }
    if !vitals.notices.is_empty() {
        let number = vitals.notices.len() as u64;
        let (count, notices) = (format::count(number), format::noun(number, " notice", " notices"));
        let long = vec![Piece::new(format!("! {count}"), Tone::Warn), Piece::dim(notices)];
        add(3, long, vec![Piece::new(format!("!{count}"), Tone::Warn)], false);
    }
    let (long, short) = pace.words(window);
    add(1, long, short, true);
    let (long, short) = match vitals.last_arrival_ns.map(format::clock) {
        Some(last) => (vec![Piece::dim("last "), Piece::plain(&last)], vec![Piece::dim(last)]),
        None => (vec![Piece::dim("nothing yet")], vec![Piece::dim("nothing yet")]),
    };
    add(6, long, short, true);
    Header { parts }
}

fn open(listener: &Listener) -> bool {
    !listener.address.ip().to_canonical().is_loopback()
}

/// That others can reach it, the louder the less keeps them out (field case B29).
fn exposure(listeners: &[Listener], guard: &Guard) -> Option<(Line, Line)> {
    if !listeners.iter().any(open) {
        return None;
    }
    let (tone, short) = match guard.lacks.len() {
        0 => (Tone::Warn, "not only local"),
        1 => (Tone::Warn, guard.lacks[0]),
        _ => (Tone::Bad, "open to all"),
    };
    let but = if guard.lacks.is_empty() { "" } else { ": " };
    let long = format!("not only this machine{but}{}", guard.lacks.join(", "));
    Some((vec![Piece::new(long, tone)], vec![Piece::new(short, tone)]))
}

/// `● grpc 127.0.0.1:4317 · http :4318`, with a mark on every address that others can reach.
fn listeners(listeners: &[Listener], guard: &Guard) -> Option<(Line, Line)> {
    let any_open = listeners.iter().any(open);
    let dot = if any_open { Piece::new("◉ ", Tone::Warn) } else { Piece::new("● ", Tone::Good) };
    let (mut long, mut short) = (vec![dot.clone()], vec![dot]);
    let mut ports: Vec<(&str, u16)> = Vec::new();
    let mut last_host = None;
    for listener in listeners {
        let at = (listener.protocol, listener.address.port());
        // The second loopback family of the same protocol and port says nothing new.
        if ports.contains(&at) && !open(listener) {
            continue;
        }
        if !ports.is_empty() {
            long.push(Piece::dim(" · "));
            short.push(Piece::plain(" "));
        }
        ports.push(at);
        let host = listener.address.ip();
        let shown = if last_host == Some(host) {
            format!(":{}", listener.address.port())
        } else {
            listener.address.to_string()
        };
        last_host = Some(host);
        let tone = if open(listener) { Tone::Warn } else { Tone::Plain };
        long.push(Piece::dim(format!("{} ", listener.protocol)));
        long.push(Piece::new(shown, tone));
        short.push(Piece::new(format!(":{}", listener.address.port()), tone));
    }
    if !guard.has.is_empty() {
        long.push(Piece::dim(format!(" ({})", guard.has.join(", "))));
    }
    (!listeners.is_empty()).then_some((long, short))
}

/// `rec 12 MiB`, and loudly what went wrong.
fn way_out(way: &WayOut) -> (Line, Line) {
    let (mut long, mut short) = (vec![Piece::dim(way.name)], vec![Piece::dim(way.name)]);
    if way.trouble.is_some() {
        short = vec![Piece::new(format!("{}!", way.name), Tone::Bad)];
    }
    if way.lost > 0 {
        let lost = Piece::new(format!(" lost {}", format::count(way.lost)), Tone::Bad);
        long.push(lost.clone());
        short.push(lost);
    }
    if let Some(trouble) = &way.trouble {
        let so_much: String = trouble.chars().take(TROUBLE).collect();
        long.push(Piece::new(format!(" {so_much}"), Tone::Bad));
    }
    long.push(if long.len() > 1 {
        Piece::dim(format!(" {}", way.said))
    } else {
        Piece::plain(format!(" {}", way.said))
    });
    (long, short)
}

/// Everything that came and is not there: evicted, rejected, shed, unreadable (a line, or an export that was turned away whole); and how often a sender was told to come
/// again, which loses nothing by itself. In full it says of what kind.
fn lost(vitals: &Vitals, counts: &Counts) -> (Line, Line) {
    let kinds = [
        ("evicted", counts.spans_evicted + counts.records_evicted),
        ("rejected", counts.spans_refused),
        ("shed", counts.spans_shed),
        ("unreadable", vitals.malformed + counts.records_bad),
        ("busy", vitals.busy),
    ];
    let total = kinds.iter().map(|(_, count)| count).sum::<u64>() - vitals.busy;
    let tone = if total + vitals.busy > 0 { Tone::Warn } else { Tone::Plain };
    let short = vec![Piece::dim("lost "), Piece::new(format::short_count(total), tone)];
    let mut long = vec![Piece::dim("lost "), Piece::new(format::count(total), tone)];
    let said: Vec<String> =
        kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, n)| format!("{kind} {}", format::count(*n))).collect();
    if !said.is_empty() {
        long.push(Piece::dim(format!(" ({})", said.join(" "))));
    }
    (long, short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Line) -> String {
        line.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn what_is_bound_is_said_and_marked_when_others_can_reach_it() {
        let at = |protocol, address: &str| Listener { protocol, address: address.parse().unwrap() };
        let loopback = [at("grpc", "127.0.0.1:4317"), at("grpc", "[::1]:4317"), at("http", "127.0.0.1:4318")];
        let (long, short) = listeners(&loopback, &Guard::default()).unwrap();
        assert_eq!(text(&long), "● grpc 127.0.0.1:4317 · http 127.0.0.1:4318".replace("http 127.0.0.1", "http "));
        assert_eq!(text(&short), "● :4317 :4318");
        assert_eq!(exposure(&loopback, &Guard::default()), None);
        let others = [at("grpc", "0.0.0.0:4317")];
        let (long, short) = listeners(&others, &Guard::default()).unwrap();
        assert_eq!((text(&long), text(&short)), ("◉ grpc 0.0.0.0:4317".into(), "◉ :4317".into()));
        for (has, lacks, long, short, tone) in [
            (vec!["TLS", "token"], vec![], "not only this machine", "not only local", Tone::Warn),
            (vec!["token"], vec!["no TLS"], "not only this machine: no TLS", "no TLS", Tone::Warn),
            (vec![], vec!["no TLS", "no token"], "not only this machine: no TLS, no token", "open to all", Tone::Bad),
        ] {
            let said = exposure(&others, &Guard { has, lacks }).unwrap();
            assert_eq!((text(&said.0), text(&said.1), said.0[0].tone), (long.into(), short.into(), tone));
        }
        let guarded = Guard { has: vec!["TLS", "token"], lacks: vec![] };
        let (long, _) = listeners(&loopback, &guarded).unwrap();
        assert!(text(&long).ends_with(" (TLS, token)"), "{}", text(&long));
        assert!(listeners(&[], &Guard::default()).is_none());
    }

    #[test]
    fn trouble_on_a_way_out_is_told_first() {
        let way = |lost: u64, trouble: Option<&str>| {
            let way = WayOut { name: "rec", said: "12.0 MiB".into(), lost, trouble: trouble.map(str::to_owned) };
            let (long, short) = way_out(&way);
            [text(&long), text(&short), way.in_full()]
        };
        assert_eq!(way(0, None), ["rec 12.0 MiB", "rec", "rec: 12.0 MiB"]);
        assert_eq!(way(0, Some("STOPPED")), ["rec STOPPED 12.0 MiB", "rec!", "rec: 12.0 MiB · STOPPED"]);
        assert_eq!(way(59, None), ["rec lost 59 12.0 MiB", "rec lost 59", "rec: 12.0 MiB · lost 59"]);
        let [long, short, in_full] = way(1_059, Some(&"why ".repeat(20)));
        assert_eq!((short.as_str(), long.contains("why why")), ("rec! lost 1,059", true), "{long}");
        assert!(long.len() < 80 && in_full.ends_with(&"why ".repeat(20)), "{in_full}");
    }

    #[test]
    fn what_has_ended_has_no_rate() {
        let mut meter = Meter::default();
        (0..4u64).for_each(|at| meter.sample(at * 500, at * 500_000_000));
        let data = crate::view::fixture::Fixture::default();
        let says = |ended| {
            let vitals = Vitals { ended, ..Vitals::default() };
            let pace = if ended { Pace::Ended } else { Pace::Live };
            let header = header(&data, &vitals, &meter, pace, Window::All, 1_500_000_000);
            header.parts.iter().map(|part| text(&part.long)).collect::<String>()
        };
        assert!(says(false).contains(" spans/s") && !says(true).contains("spans/s"), "{}", says(true));
    }

    /// No frame is drawn while nothing comes, however long that is.
    #[test]
    fn the_rate_after_a_silence_is_of_the_last_seconds() {
        let mut meter = Meter::default();
        let second = 1_000_000_000;
        meter.sample(500, second);
        for tick in 1..=20u64 {
            let now_ns = 60 * second + tick * second / 2;
            meter.sample(500 + tick * 500, now_ns);
            let expected = if tick < 8 { 125.0 * tick as f64 } else { 1_000.0 };
            assert!((meter.rate(now_ns) - expected).abs() < 1.0, "{tick}: {}", meter.rate(now_ns));
        }
    }

    #[test]
    fn the_rate_falls_to_zero_when_nothing_comes() {
        let mut meter = Meter::default();
        let second = 1_000_000_000;
        for tick in 0..=8u64 {
            meter.sample(tick * 100, tick * second / 2);
        }
        assert!((meter.rate(4 * second) - 200.0).abs() < 1.0);
        for tick in 9..=24u64 {
            meter.sample(800, tick * second / 2);
        }
        assert_eq!(meter.rate(12 * second), 0.0);
        assert!(!meter.is_moving());
        // A burst right after a frame: it has its rate at the next, which must come.
        meter.sample(1_600, 12 * second + second / 10);
        assert!(meter.rate(12 * second + second / 10) == 0.0 && meter.is_moving());
        meter.sample(1_600, 13 * second);
        assert!(meter.rate(13 * second) > 0.0 && meter.is_moving());
        (14..=20).for_each(|at| meter.sample(1_600, at * second));
        assert!(!meter.is_moving());
        assert_eq!(meter.bars().count(), BARS);
        // The clock goes back an hour: what comes from then on has its rate at once.
        for tick in 0..=4u64 {
            meter.sample(1_600 + tick * 100, second + tick * second / 2);
        }
        assert!((meter.rate(3 * second) - 200.0).abs() < 1.0);
        assert_eq!(sparkline([0, 1, 50, 100].into_iter()), "▁▂▅█");
    }
}
