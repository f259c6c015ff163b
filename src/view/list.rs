//! The request list: its columns as one table of definitions, and the rows on screen.
//!
//! Owns: what each column shows, what kind of nothing stands where a value is not, which columns fit a width.
//! Keeps out: which requests and in what order (`index`), drawing (`tui`).

use compact_str::CompactString;

use super::{Nothing, Piece, Tone, format, request_name, standing_piece};
use crate::lifecycle::facts::{Closeness, Facts, Leg, Queue, State};
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::{Layout, Mode, Origin, Outcome, Phase};

/// Names a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs, reason = "the titles of COLUMNS say it")]
pub enum ColumnId {
    Age,
    Request,
    Session,
    Model,
    Outcome,
    Attempts,
    Queued,
    Deferred,
    Margin,
    Prefill,
    Decode,
    Ttft,
    Total,
    Events,
    Marks,
}

impl ColumnId {
    /// Display columns of a shortened id.
    const SHORT_ID: usize = 8;
}

/// What a column sorts by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue {
    /// Large first.
    Number(f64),
    /// A to Z.
    Text(CompactString),
    /// No value: last, both ways.
    None,
}

/// One column.
pub struct Column {
    /// Which.
    pub id: ColumnId,
    /// Its title.
    pub title: &'static str,
    /// What it shows, for the sort menu.
    pub doc: &'static str,
    /// Display columns it needs.
    pub width: u16,
    /// Display columns it can use.
    pub most: u16,
    /// 0 stays longest when room is short.
    pub rank: u8,
    /// Whether numbers stand at its right edge.
    pub right: bool,
    /// Its cell for a request at a time.
    pub cell: fn(&Facts, u64) -> Piece,
    /// What it sorts by.
    pub sort: fn(&Facts, u64) -> SortValue,
}

macro_rules! columns {
    ($($id:ident $title:literal $doc:literal $width:literal..$most:literal rank $rank:literal $side:ident $cell:expr, $sort:expr;)+) => {
        /// Every column, from left to right.
        pub static COLUMNS: &[Column] = &[
            $(Column {
                id: ColumnId::$id, title: $title, doc: $doc, width: $width, most: $most, rank: $rank,
                right: stringify!($side).len() == "right".len(), cell: $cell, sort: $sort,
            }),+
        ];
    };
}

columns! {
    Age "age" "time since it began" 6..7 rank 0 right age, |f, _| SortValue::Number(f.start_ns as f64);
    Request "request" "request id" 8..8 rank 0 left request, |f, _| text(&f.request_id);
    Session "session" "agent session" 8..14 rank 9 left session, |f, _| text(if f.session_fallback { "" } else { &f.session_id });
    Model "model" "model asked for" 10..24 rank 11 left model, |f, _| text(&f.model);
    Outcome "outcome" "how it ended, as the root says" 13..14 rank 0 left |f, _| standing_piece(f), |f, _| text(f.outcome_text());
    Attempts "att" "dispatch attempts" 3..3 rank 7 right attempts, |f, _| SortValue::Number(f64::from(f.attempts()));
    Queued "queued" "wait in the router's queue, all legs" 7..9 rank 2 right queued, |f, _| number(f.queue_wait_ns());
    Deferred "deferred" "why it was deferred or refused" 12..20 rank 8 left deferred, |f, _| f.reason().map_or(SortValue::None, text);
    Margin "margin" "runner-up's cost minus the best's; the closest choice" 7..8 rank 4 right margin, |f, _| f.margin().map_or(SortValue::None, SortValue::Number);
    Prefill "prefill" "prefill worker" 7..9 rank 6 left |f, _| worker(f, Phase::Prefill), |f, _| leg_text(f, Phase::Prefill);
    Decode "decode" "decode worker" 7..15 rank 3 left |f, _| worker(f, Phase::Decode), |f, _| leg_text(f, Phase::Decode);
    Ttft "TTFT" "time to first token" 7..8 rank 1 right ttft, |f, _| number(f.ttft_ns.map(|(ns, _)| ns));
    Total "total" "from start to end" 7..8 rank 1 right total, |f, now| number(f.total_ns().or_else(|| (f.start_ns > 0).then(|| now.saturating_sub(f.start_ns))));
    Events "events" "stream events, else output tokens" 8..10 rank 5 right events, |f, _| number(event_count(f));
    Marks "⚑" "what is odd about it" 2..6 rank 10 left marks, |f, _| SortValue::Number(f.marks.words().count() as f64);
}

fn text(value: &str) -> SortValue {
    if value.is_empty() { SortValue::None } else { SortValue::Text(value.into()) }
}

fn number(value: Option<u64>) -> SortValue {
    value.map_or(SortValue::None, |value| SortValue::Number(value as f64))
}

/// What is said of a value that is not there.
fn absent(facts: &Facts, otherwise: Nothing) -> Piece {
    Nothing::of(facts, otherwise).mark()
}

/// A text with the mark of where it comes from: nothing for a span of its own, `~` before what is worked out from other
/// evidence, `ʳ` after what a record says (design §1; spec lifecycle-spans §6).
pub fn from(origin: Origin, text: &str) -> String {
    match origin {
        Origin::Span => text.to_owned(),
        Origin::Record => format!("{text}ʳ"),
        Origin::Inferred => format!("~{text}"),
    }
}

/// Whether its legs went through the KV router, which queues and scores; other routes do neither.
fn is_kv(facts: &Facts) -> bool {
    facts.legs.iter().any(|leg| {
        leg.queue.is_some()
            || leg.selection.is_some()
            || leg.dispatch.as_ref().is_some_and(|dispatch| dispatch.route.is_empty() || dispatch.route == "kv")
    })
}

fn age(facts: &Facts, now_ns: u64) -> Piece {
    match facts.start_ns {
        0 => Nothing::Missing.mark(),
        start => Piece::plain(format::age(now_ns.saturating_sub(start))),
    }
}

fn request(facts: &Facts, _: u64) -> Piece {
    let tone = if facts.request_id.is_empty() { Tone::Dim } else { Tone::Plain };
    Piece::new(request_name(facts), tone)
}

fn session(facts: &Facts, _: u64) -> Piece {
    match &*facts.session_id {
        "" if facts.has_root || facts.has_record => Nothing::NoSuch.mark(),
        "" => absent(facts, Nothing::NoSuch),
        _ if facts.session_fallback => Nothing::NoSuch.mark(),
        session => Piece::plain(session),
    }
}

fn model(facts: &Facts, _: u64) -> Piece {
    match facts.model.as_str() {
        // Spans name the model only while lifecycle tracing is off; the record and the log do (spec lifecycle-spans §4).
        "" => absent(facts, Nothing::Layout(facts.layout)),
        model => Piece::plain(model),
    }
}

fn attempts(facts: &Facts, _: u64) -> Piece {
    match facts.attempts() {
        0 if facts.state == State::InFlight || facts.spans == 0 => absent(facts, Nothing::NoSuch),
        0 => Piece::plain("0"),
        count => {
            let mut origins = facts.legs.iter().filter_map(|leg| Some(leg.dispatch.as_ref()?.origin));
            let (text, tone) = if count > 1 { (format!("↻{count}"), Tone::Warn) } else { ("1".into(), Tone::Plain) };
            Piece::new(from(origins.next_back().unwrap_or(Origin::Span), &text), tone)
        }
    }
}

fn queued(facts: &Facts, _: u64) -> Piece {
    match facts.queue_wait_ns() {
        Some(wait) => {
            let mut origins = facts.legs.iter().filter_map(|leg| Some(leg.queue.as_ref()?.origin));
            Piece::plain(from(origins.next_back().unwrap_or(Origin::Span), &format::duration(wait)))
        }
        None if is_kv(facts) => absent(facts, Nothing::Missing),
        None => absent(facts, Nothing::NoSuch),
    }
}

fn deferred(facts: &Facts, _: u64) -> Piece {
    let mut waits = facts.legs.iter().filter_map(|leg| leg.queue.as_ref());
    let refused = waits.clone().any(Queue::left_unserved);
    match (facts.reason(), facts.deferred()) {
        (Some(reason), _) => Piece::new(reason, if refused { Tone::Rejected } else { Tone::Queue }),
        (None, None) if waits.next().is_none() => absent(facts, Nothing::NoSuch),
        (None, Some(false)) if !refused => Nothing::NoSuch.mark(),
        (None, _) if facts.layout != Layout::Evidence => Nothing::Layout(facts.layout).mark(),
        (None, None) if !refused => absent(facts, Nothing::Missing),
        (None, _) => Piece::new("reason missing", Tone::Warn),
    }
}

/// How a margin is shown: `tie` at zero with more than one candidate, `0.04!` near it.
pub fn margin_piece(margin: f64, candidates: Option<u64>) -> Piece {
    match Closeness::of(margin, candidates) {
        Closeness::Only if margin == 0.0 => Piece::dim("only"),
        Closeness::Tie if margin == 0.0 => Piece::new("tie", Tone::Warn),
        Closeness::Near => Piece::new(format!("{}!", format::cost(margin)), Tone::Warn),
        Closeness::Only | Closeness::Tie | Closeness::Clear => Piece::plain(format::cost(margin)),
    }
}

fn margin(facts: &Facts, _: u64) -> Piece {
    let closest = facts
        .legs
        .iter()
        .filter_map(|leg| leg.selection.as_ref())
        .filter_map(|selection| Some((selection.margin?, selection)))
        .min_by(|(left, _), (right, _)| left.total_cmp(right));
    match closest {
        Some((margin, choice)) => {
            let shown = margin_piece(margin, choice.candidates);
            Piece { text: from(choice.origin, &shown.text), ..shown }
        }
        // Refused or left while queued: no selection follows (spec lifecycle-spans §3).
        None if !is_kv(facts) || facts.legs.iter().all(|leg| leg.dispatch.is_none()) => absent(facts, Nothing::NoSuch),
        None => absent(facts, Nothing::unrecorded(facts)),
    }
}

/// The workers of a phase's legs, with an arrow where the work moved.
fn worker(facts: &Facts, phase: Phase) -> Piece {
    let Some(last) = facts.last_leg(phase) else {
        let other = facts.legs.iter().any(|leg| leg.phase == Phase::Aggregated);
        return if other { Nothing::NoSuch.mark() } else { absent(facts, Nothing::NoSuch) };
    };
    let Some(worker) = last.worker() else {
        // Whoever was refused, or for whom nobody could be chosen, has none.
        let refused = last.queue.as_ref().is_some_and(Queue::left_unserved);
        let failed = last.selection.as_ref().is_some_and(|selection| selection.chose_none());
        let has_none = (refused || failed) && last.dispatch.is_none();
        return absent(facts, if has_none { Nothing::NoSuch } else { Nothing::Missing });
    };
    let before = facts.legs.iter().rfind(|leg| same_phase(leg, last) && leg.attempt < last.attempt);
    match before.and_then(Leg::worker) {
        Some(left) if left != worker => Piece::plain(format!("{}↷{}", left.short(), worker.short())),
        _ => Piece::plain(worker.short()),
    }
}

fn same_phase(leg: &Leg, last: &Leg) -> bool {
    leg.phase == last.phase
}

fn leg_text(facts: &Facts, phase: Phase) -> SortValue {
    facts.last_leg(phase).and_then(Leg::worker).map_or(SortValue::None, |worker| SortValue::Text(worker.short().into()))
}

fn ttft(facts: &Facts, _: u64) -> Piece {
    match facts.ttft_ns {
        Some((ns, origin)) => Piece::plain(from(origin, &format::duration(ns))),
        None if facts.outcome == Some(Outcome::Success) && facts.streaming == Some(true) => {
            absent(facts, Nothing::Missing)
        }
        None => absent(facts, Nothing::NoSuch),
    }
}

fn total(facts: &Facts, now_ns: u64) -> Piece {
    match (facts.total_ns(), facts.state) {
        (Some(ns), _) => Piece::plain(format::duration(ns)),
        (None, State::InFlight) if facts.start_ns > 0 => {
            Piece::new(format::duration(now_ns.saturating_sub(facts.start_ns)), Tone::Running)
        }
        (None, _) => absent(facts, Nothing::Missing),
    }
}

fn event_count(facts: &Facts) -> Option<u64> {
    facts.stream.as_ref().and_then(|stream| stream.events).or(facts.output_tokens)
}

fn events(facts: &Facts, _: u64) -> Piece {
    let stream = facts.stream.as_ref();
    match (stream.and_then(|stream| stream.events), facts.output_tokens) {
        (Some(events), _) => Piece::plain(format::count(events)),
        (None, Some(tokens)) => Piece::plain(format!("{} tok", format::short_count(tokens))),
        (None, None) if facts.state == State::InFlight || stream.is_none() => absent(facts, Nothing::NoSuch),
        (None, None) if facts.layout == Layout::Base => Nothing::Layout(Layout::Base).mark(),
        (None, None) if facts.mode == Mode::Core => Nothing::Mode(Mode::Core).mark(),
        (None, None) => Nothing::Missing.mark(),
    }
}

/// A sign for each mark; the request screen and the help say what they mean.
fn marks(facts: &Facts, _: u64) -> Piece {
    match facts.marks.set_ones().map(|(sign, _)| sign).collect::<String>() {
        none if none.is_empty() => Piece::default(),
        signs => Piece::new(signs, Tone::Warn),
    }
}

/// A column with the width it gets.
#[derive(Clone, Copy)]
pub struct Fitted {
    /// The column.
    pub column: &'static Column,
    /// Display columns.
    pub width: u16,
}

/// The columns that fit a width, `gap` apart: the ones of lowest rank go first, then what is left over is shared out
/// from left to right.
pub fn fit(width: u16, gap: u16) -> Vec<Fitted> {
    let mut chosen: Vec<&Column> = COLUMNS.iter().collect();
    let needed = |columns: &[&Column]| {
        columns.iter().map(|column| column.width).sum::<u16>() + gap * (columns.len().saturating_sub(1)) as u16
    };
    while chosen.len() > 1 && needed(&chosen) > width {
        let last = chosen.iter().enumerate().max_by_key(|(_, column)| column.rank).map_or(0, |(at, _)| at);
        chosen.remove(last);
    }
    let mut spare = width.saturating_sub(needed(&chosen));
    let mut fitted: Vec<Fitted> =
        chosen.into_iter().map(|column| Fitted { column, width: column.width.min(width) }).collect();
    // Everything gets a little before anything gets much; whole ids come last.
    for step in [2, 6, u16::MAX] {
        for each in &mut fitted {
            let more = (each.column.most - each.column.width.min(each.column.most)).min(step);
            let more = (each.column.width + more).saturating_sub(each.width).min(spare);
            (each.width, spare) = (each.width + more, spare - more);
        }
    }
    if let Some(id) = fitted.iter_mut().find(|each| each.column.id == ColumnId::Request)
        && spare >= WHOLE_ID - id.width.min(WHOLE_ID)
    {
        id.width = WHOLE_ID;
    }
    fitted
}

/// Display columns of a whole request id; anything between eight and this shows eight.
const WHOLE_ID: u16 = 36;

/// One row on screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which request.
    pub key: RequestKey,
    /// A cell for each fitted column.
    pub cells: Vec<Piece>,
    /// Whether it ended; the others keep moving.
    pub ended: bool,
}

/// The row of a request.
pub fn row(key: RequestKey, facts: &Facts, violated: Option<(usize, Tone)>, columns: &[Fitted], now_ns: u64) -> Row {
    let cells = columns
        .iter()
        .map(|fitted| {
            let mut cell = (fitted.column.cell)(facts, now_ns);
            if fitted.column.id == ColumnId::Request && fitted.width < WHOLE_ID {
                cell.text = match facts.trace {
                    Some(trace) if facts.request_id.is_empty() => format!("t:{trace}")[..ColumnId::SHORT_ID].to_owned(),
                    _ => format::short_id(&cell.text),
                };
            }
            if let (ColumnId::Marks, Some((count, tone))) = (fitted.column.id, violated) {
                cell = Piece::new(format!("{count}{}", cell.text), tone);
            }
            // Where both workers of a moved leg have no room, the last one says that there was another.
            if let Some(at) = cell.text.find('↷').filter(|_| cell.text.chars().count() > usize::from(fitted.width)) {
                cell.text.drain(..at);
            }
            cell
        })
        .collect();
    Row { key, cells, ended: facts.state != State::InFlight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    #[test]
    fn columns_fit_every_width_and_the_widest_shows_all() {
        for width in 0..=250 {
            let fitted = fit(width, 2);
            let used = fitted.iter().map(|each| each.width).sum::<u16>() + 2 * (fitted.len() as u16 - 1);
            assert!(used <= width || fitted.len() == 1, "{used} of {width}");
        }
        assert_eq!(fit(200, 2).len(), COLUMNS.len());
        let narrow: Vec<_> = fit(76, 2).iter().map(|each| each.column.id).collect();
        use ColumnId::*;
        assert_eq!(narrow, [Age, Request, Outcome, Queued, Margin, Decode, Ttft, Total]);
    }

    #[test]
    fn ties_near_ties_and_single_candidates_look_different() {
        let texts = [(0.0, Some(3)), (0.0, Some(1)), (0.04, Some(3)), (1.25, Some(3))]
            .map(|(margin, candidates)| margin_piece(margin, candidates).text);
        assert_eq!(texts, ["tie", "only", "0.04!", "1.25"]);
    }
    /// For whom nobody could be chosen, or who left while queued, has no worker to miss.
    #[test]
    fn who_was_sent_to_nobody_misses_no_worker() {
        let told = |outcome: &str, chose: bool, sent: bool| {
            let mut leg = fixture::leg(Phase::Prefill, 0, 0.1, "", fixture::PREFILL, 1.0);
            leg.queue.as_mut().unwrap().outcome = outcome.into();
            let selection = leg.selection.as_mut().unwrap();
            (selection.selected, selection.best) = (selection.selected.filter(|_| chose), None);
            if let Some(dispatch) = &mut leg.dispatch {
                dispatch.worker = None;
            }
            leg.dispatch = leg.dispatch.filter(|_| sent);
            let facts = Facts { state: State::Ended, spans: 9, legs: vec![leg], ..Facts::default() };
            worker(&facts, Phase::Prefill).text
        };
        assert_eq!(told("dequeued", false, false), "–");
        assert_eq!(told("dequeued", false, true), "missing", "it went somewhere");
        assert_ne!(told("dequeued", true, false), "–");
    }

    /// Drafts say of no wait that it was deferred, unless with a reason.
    #[test]
    fn what_a_layout_does_not_record_is_not_missing() {
        let told = |layout, outcome: &str, said| {
            let mut leg = fixture::leg(Phase::Decode, 0, 0.1, "", fixture::DECODE, 1.0);
            let queue = leg.queue.as_mut().unwrap();
            (queue.deferred, queue.outcome) = (said, outcome.into());
            leg.selection.as_mut().unwrap().margin = None;
            let facts = Facts { layout, state: State::Ended, spans: 9, legs: vec![leg], ..Facts::default() };
            [deferred(&facts, 0).text, margin(&facts, 0).text]
        };
        assert_eq!(told(Layout::Draft, "admitted", None), ["draft", "draft"]);
        assert_eq!(told(Layout::Base, "", None), ["base", "base"]);
        assert_eq!(told(Layout::Evidence, "dequeued", None), ["missing", "missing"]);
        assert_eq!(told(Layout::Evidence, "dequeued", Some(true))[0], "reason missing");
        assert_eq!(told(Layout::Evidence, "expired", Some(false))[0], "reason missing");
        assert_eq!(told(Layout::Evidence, "dequeued", Some(false))[0], "–");
    }
}
