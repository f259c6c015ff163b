//! Frontend streams: who left, after how many events and how long, and what the root made of it; TTFT and event rates.

use super::{Bar, Block, Cell, Mark, Pane, PlotKind, Room, nothing, quantiles, said, scale, terms};
use crate::lifecycle::stage::{Origin, Outcome};
use crate::store::rollup::Streams;
use crate::store::rollup::values::Values;
use crate::view::data::Seen;
use crate::view::{Nothing, Tone, format, outcome_tone};

/// Ways of ending whose curves are drawn, at most.
const MOST_CURVES: usize = 6;

pub(super) fn pane(seen: &Seen<'_>, room: Room) -> Pane {
    let rollup = &*seen.rollup;
    let streams = &rollup.streams;
    let open = open(streams);
    let may_stream = streams.open + streams.may_be_open > 0;
    let summary = match streams.count {
        0 if rollup.requests.told == 0 => String::new(),
        count => format::counted(count, "stream", "streams"),
    };
    if streams.count == 0 && !may_stream && streams.ttft.count() + streams.ttft_records.count() == 0 {
        return Pane::one(summary, vec![Block::text(0, vec![Cell::label(nothing(seen, "no streams"))])]);
    }
    let classes =
        if room.zoomed { usize::from(room.column() / 6).max(4) } else { usize::from(room.columns / 6).clamp(4, 12) };
    if room.is_tight() {
        let mut cells = abandoned(seen, false);
        cells.extend(ttft(streams, true));
        return Pane::one(summary, vec![leaving(streams, classes), Block::text(0, cells)]);
    }
    let mut rest = open;
    rest.push(Cell::label("· events/s"));
    rest.extend(quantiles(&streams.event_rates, format::count));
    let rates = Block::text(2, rest);
    let blocks = vec![
        Block::text(0, abandoned(seen, true)),
        leaving(streams, classes),
        Block::text(1, ttft(streams, false)),
        rates,
    ];
    if !room.zoomed {
        return Pane::one(summary, blocks);
    }
    let [line, leaving, ttfts, rates] = match <[Block; 4]>::try_from(blocks) {
        Ok(blocks) => blocks,
        Err(blocks) => return Pane::one(summary, blocks),
    };
    let left = vec![
        line,
        leaving.titled("who leaves when, by events"),
        by_age(streams, classes).titled("who leaves when, by time"),
        still_there(streams, room, &EVENTS),
        still_there(streams, room, &TIME),
    ];
    let right = vec![
        ttfts,
        ttft_plot(streams, classes).titled("TTFT"),
        rates,
        outcomes(streams).titled("streams by how they ended"),
        durations(streams, classes).titled("duration of streams"),
    ];
    Pane::two(summary, room, left, right)
}

/// `open 3`, and of how many it is not known.
fn open(streams: &Streams) -> Vec<Cell> {
    let open = match (streams.open, streams.may_be_open) {
        (0, 1..) => Nothing::NotYet.mark().into(),
        (open, _) => {
            Cell::count(open, Tone::Running).finding_any(open, "state:in_flight streaming:true -stream.time:*")
        }
    };
    let mut cells = vec![Cell::label("open"), open];
    if streams.may_be_open > 0 {
        // Of these nothing has said yet whether their clients stream.
        cells.push(Cell::label(format!("({} not known)", format::count(streams.may_be_open))));
    }
    cells
}

/// Whether anything says how streams ended.
fn says_outcomes(streams: &Streams) -> bool {
    streams.outcomes.iter().any(|(outcome, _)| !outcome.is_empty())
}

/// `abandoned 22 % (63 of 288)   root: cancelled 61  success 1  failed 1`.
fn abandoned(seen: &Seen<'_>, roots: bool) -> Vec<Cell> {
    let streams = &seen.rollup.streams;
    if streams.count == 0 {
        return vec![Cell::label(nothing(seen, "no stream has ended"))];
    }
    if !says_outcomes(streams) {
        return vec![Cell::label(if roots {
            "how streams ended is not recorded in this mode or layout"
        } else {
            "ends not recorded"
        })];
    }
    let share = format::percent(streams.abandoned, streams.count);
    let mut cells = vec![
        Cell::label("abandoned"),
        Cell::new(share, Tone::Streaming).finding_any(streams.abandoned, "abandoned:true"),
    ];
    if !roots {
        return cells;
    }
    cells.push(Cell::label(format!("{} of {}", format::count(streams.abandoned), format::count(streams.count))));
    if streams.abandoned == 0 {
        return cells;
    }
    cells.push(Cell::label("· root"));
    for (outcome, count) in Outcome::ALL.into_iter().zip(streams.roots_of_abandoned) {
        if count > 0 {
            cells.push(Cell::label(outcome.word().replace('_', " ")));
            let term = format!("abandoned:true {}", terms::is("outcome", outcome.word()));
            cells.push(Cell::count(count, outcome_tone(outcome)).finding(term));
        }
    }
    let without = streams.abandoned_without_root;
    if without > 0 {
        cells
            .extend([Cell::label("no root"), Cell::count(without, Tone::Running).finding("abandoned:true root:false")]);
    }
    cells
}

/// Who left after how many events; by time where events are not recorded.
fn leaving(streams: &Streams, classes: usize) -> Block {
    if streams.events_at_leaving.count() == 0 && streams.age_at_leaving.count() > 0 {
        return by_age(streams, classes);
    }
    let of = &streams.events_at_leaving;
    let bars = scale::doublings(of.min().zip(of.max()), classes)
        .into_iter()
        .map(|(from, to)| {
            let count = of.between(from, to);
            Bar {
                value: Some(count),
                label: format::short_count(from),
                tone: Tone::Streaming,
                term: (count > 0).then(|| format!("abandoned:true events:{from}..<{to}")),
            }
        })
        .collect();
    Block::plot(1, PlotKind::Bars, "left", bars, vec!["events when they left".into()])
}

fn by_age(streams: &Streams, classes: usize) -> Block {
    let bars = times(&streams.age_at_leaving, classes, Tone::Streaming, |within| {
        format!("abandoned:true stream.time:{within}")
    });
    Block::plot(3, PlotKind::Bars, "left", bars, vec!["streamed when they left".into()])
}

/// How long the streams of one outcome lasted.
struct Curve<'a> {
    outcome: &'a str,
    events: &'a Values,
    time: &'a Values,
}

/// What is known of the streams of each outcome, most first.
fn curves(streams: &Streams) -> Vec<Curve<'_>> {
    let left = Curve { outcome: "abandoned", events: &streams.events_at_leaving, time: &streams.age_at_leaving };
    let lasting = streams.lasting.iter();
    let mut curves: Vec<Curve<'_>> =
        lasting.map(|(outcome, of)| Curve { outcome, events: &of.events, time: &of.time }).collect();
    curves.push(left);
    curves.retain(|curve| curve.time.count() > 0);
    curves.sort_by_key(|curve| std::cmp::Reverse(curve.time.count()));
    curves.truncate(MOST_CURVES);
    curves
}

/// What a share is drawn over.
struct Over {
    what: &'static str,
    of: for<'a> fn(&Curve<'a>) -> &'a Values,
    classes: fn(Option<scale::Class>, usize) -> Vec<scale::Class>,
    label: fn(u64) -> String,
}

const EVENTS: Over =
    Over { what: "events", of: |curve| curve.events, classes: scale::doublings, label: format::short_count };
const TIME: Over = Over { what: "time", of: |curve| curve.time, classes: scale::decades_within, label: scale::time };

/// The share still streaming, over events or over time, a row for each way streams ended.
fn still_there(streams: &Streams, room: Room, over: &Over) -> Block {
    let of = over.of;
    let curves: Vec<Curve<'_>> = curves(streams).into_iter().filter(|curve| of(curve).count() > 0).collect();
    let extent = curves.iter().filter_map(|curve| of(curve).min().zip(of(curve).max()));
    let extent = extent.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let classes = (over.classes)(extent, usize::from(room.column() / 2).clamp(4, 24));
    let wide = (usize::from(room.column() / 2) / classes.len().max(1)).clamp(1, 5);
    let rows = curves
        .iter()
        .map(|curve| {
            let (values, tone) = (of(curve), stream_tone(curve.outcome));
            let share = |from: u64| values.between(from, u64::MAX) as f64 / values.count() as f64;
            let shares = classes.iter().flat_map(|(from, _)| std::iter::repeat_n(share(*from), wide)).collect();
            vec![
                Cell::new(said(curve.outcome, "not recorded"), tone).finding(ended(curve.outcome)),
                Cell { mark: Mark::Spark(shares), ..Cell::new("", tone) },
                Cell::count(values.count(), Tone::Plain),
            ]
        })
        .collect();
    let borders =
        classes.first().zip(classes.last()).map(|(first, last)| ((over.label)(first.0), (over.label)(last.0)));
    let title = match borders {
        Some((first, last)) => {
            format!("share still there after {first} … {last}{}", if over.what == "events" { " events" } else { "" })
        }
        None => format!("share still there over {}", over.what),
    };
    Block::table(5, &["", "", ">n"], rows).titled(title)
}

fn times(values: &Values, classes: usize, tone: Tone, term: impl Fn(&str) -> String) -> Vec<Bar> {
    scale::decades(values, classes)
        .into_iter()
        .map(|(from, to)| {
            let count = values.between(from, to);
            let within = format!("{}..<{}", scale::time(from), scale::time(to));
            Bar { value: Some(count), label: scale::time(from), tone, term: (count > 0).then(|| term(&within)) }
        })
        .collect()
}

/// Times to first token: of spans, or of records where there are no others.
fn ttfts(streams: &Streams) -> (&Values, &'static str, String) {
    let both = streams.ttft.count() > 0 && streams.ttft_records.count() > 0;
    match streams.ttft.count() {
        0 => (&streams.ttft_records, "ʳ", String::new()),
        _ if both => (&streams.ttft, "", format!(" {}", terms::is("ttft.origin", Origin::Span.word()))),
        _ => (&streams.ttft, "", String::new()),
    }
}

fn ttft(streams: &Streams, tight: bool) -> Vec<Cell> {
    let (values, mark, _) = ttfts(streams);
    if tight {
        let both = [0.5, 0.99].map(|q| values.quantile(q).map_or("–".into(), format::duration));
        return vec![Cell::label(format!("TTFT{mark}")), Cell::new(both.join("/"), Tone::Plain)];
    }
    let mut cells = vec![Cell::label(format!("TTFT{mark}"))];
    cells.extend(quantiles(values, format::duration));
    let spark = scale::spark(values, &scale::decades(values, 12));
    cells.push(Cell { mark: Mark::Spark(spark), ..Cell::new("", Tone::Streaming) });
    if mark.is_empty() && streams.ttft_records.count() > 0 {
        cells.push(Cell::label(format!("{} ʳ beside", format::count(streams.ttft_records.count()))));
    }
    cells
}

fn ttft_plot(streams: &Streams, classes: usize) -> Block {
    let (values, _, origin) = ttfts(streams);
    let bars = times(values, classes, Tone::Streaming, |within| format!("ttft:{within}{origin}"));
    Block::plot(2, PlotKind::Bars, "requests", bars, vec!["from … on".into()])
}

fn durations(streams: &Streams, classes: usize) -> Block {
    let bars = times(&streams.durations, classes, Tone::Streaming, |within| format!("stream.time:{within}"));
    Block::plot(4, PlotKind::Bars, "streams", bars, vec!["from … on".into()])
}

fn outcomes(streams: &Streams) -> Block {
    let most = streams.outcomes.iter().map(|(_, count)| count).max().unwrap_or(0);
    let rows = streams
        .outcomes
        .ranked()
        .into_iter()
        .map(|(outcome, count)| {
            let (term, tone) = (ended(outcome), stream_tone(outcome));
            vec![
                Cell::new(said(outcome, "not recorded"), tone).finding(term),
                Cell::new("", tone).bar(count, most),
                Cell::count(count, Tone::Plain),
                Cell::label(format::percent(count, streams.count)),
            ]
        })
        .collect();
    Block::table(3, &["", "", ">n", ">"], rows)
}

/// The term that finds streams of an outcome.
fn ended(outcome: &str) -> String {
    match outcome {
        "" => "stream.time:* -stream.outcome:*".into(),
        word => terms::is("stream.outcome", word),
    }
}

fn stream_tone(outcome: &str) -> Tone {
    match outcome {
        "success" => Tone::Good,
        "abandoned" => Tone::Streaming,
        "cancelled" => Tone::Cancelled,
        "failed" => Tone::Bad,
        _ => Tone::Plain,
    }
}
