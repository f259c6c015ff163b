//! The latest decisions with their candidates, read from the requests themselves: as many as are shown.

use super::{Block, Cell, Dot, DotKind, Mark, terms};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Leg, Selection, State};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::record::{RecordBody, SelectionRecord};
use crate::lifecycle::request::RequestView;
use crate::lifecycle::stage::{Origin, Phase};
use crate::view::data::{Data, Seen};
use crate::view::list::{from, margin_piece};
use crate::view::{Tone, format, request_name};

/// One choice.
pub(super) struct Decision {
    time_ns: u64,
    request: String,
    ended: bool,
    /// What it was made for, as it stands on screen.
    leg: String,
    phase: Phase,
    selection: Selection,
    candidates: Vec<Candidate>,
    /// The term that finds its request.
    pub term: String,
}

/// A rank that could be chosen.
struct Candidate {
    worker: Worker,
    cost: f64,
    /// What made its cost: name and value, in the producer's order.
    inputs: Vec<(String, f64)>,
}

impl Decision {
    /// Whether a worker was among its candidates.
    pub fn has(&self, worker: Worker) -> bool {
        self.candidates.iter().any(|candidate| candidate.worker == worker)
    }

    fn kind(&self, worker: Worker) -> DotKind {
        let is = |choice: Option<crate::lifecycle::facts::Choice>| choice.is_some_and(|choice| choice.worker == worker);
        match (is(self.selection.selected), is(self.selection.best)) {
            (true, true) => DotKind::ChosenBest,
            (true, false) => DotKind::Chosen,
            (false, true) => DotKind::Best,
            (false, false) => DotKind::Other,
        }
    }
}

/// The newest requests' choices, the latest first.
pub(super) fn latest(data: &dyn Data, most: usize) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for key in data.seen().newest.take(4 * most) {
        if decisions.len() >= most {
            break;
        }
        let Some(facts) = data.facts(key).filter(|facts| facts.legs.iter().any(|leg| leg.selection.is_some())) else {
            continue;
        };
        let Some(request) = data.request(key) else { continue };
        for leg in &facts.legs {
            let Some(selection) = &leg.selection else { continue };
            let mut candidates = candidates_of(&request, leg, selection);
            for choice in [selection.selected, selection.best].into_iter().flatten() {
                if let (false, Some(cost)) = (candidates.iter().any(|c| c.worker == choice.worker), choice.cost) {
                    candidates.push(Candidate { worker: choice.worker, cost, inputs: Vec::new() });
                }
            }
            candidates.sort_by(|one, other| one.cost.total_cmp(&other.cost));
            let term = match facts.trace {
                _ if !facts.request_id.is_empty() => terms::is("request", &facts.request_id),
                Some(trace) => terms::is("trace", &trace.to_string()),
                None => continue,
            };
            decisions.push(Decision {
                time_ns: selection.time_ns,
                request: request_name(facts),
                ended: facts.state != State::InFlight,
                leg: from(leg.phase_origin, leg.phase.word()),
                phase: leg.phase,
                selection: (**selection).clone(),
                candidates,
                term,
            });
        }
    }
    decisions.sort_by_key(|decision| std::cmp::Reverse(decision.time_ns));
    decisions.truncate(most);
    decisions
}

/// The scored candidates: of the selection span in investigation mode, else of the `router_selection` record that the choice
/// is known from, or that has the chosen one's cost.
fn candidates_of(request: &RequestView<'_>, leg: &Leg, selection: &Selection) -> Vec<Candidate> {
    let span = selection.span.and_then(|id| request.spans.iter().find(|span| span.id == id));
    if let Some(text) = span.map(|span| span.text(Field::TopK)).filter(|text| !text.is_empty()) {
        return top_k(text);
    }
    let mut of_pool = request.records.iter().filter_map(|record| match &record.body {
        RecordBody::Selection(body) if leg.phase.fits_pool(body.pool) => Some((record.time_ms, body)),
        _ => None,
    });
    let is_it = |(time_ms, record): &(u64, &SelectionRecord)| match selection.origin {
        // Which one was chosen may not have come yet.
        Origin::Record => {
            let least = record.candidates.first().map(|(_, cost)| *cost);
            time_ms.saturating_mul(1_000_000) == selection.time_ns
                && Some(record.candidate_count) == selection.candidates
                && least == selection.best.and_then(|best| best.cost)
        }
        Origin::Span | Origin::Inferred => selection.selected.is_some_and(|selected| {
            let has = |(worker, cost): &(Worker, f64)| {
                selected.worker == *worker && selected.cost.is_none_or(|of_selected| of_selected == *cost)
            };
            record.candidates.iter().any(has)
        }),
    };
    let Some((_, record)) = of_pool.find(is_it) else { return Vec::new() };
    let candidate = |(worker, cost): &(Worker, f64)| Candidate { worker: *worker, cost: *cost, inputs: Vec::new() };
    record.candidates.iter().map(candidate).collect()
}

/// Reads the producer's list; numbers may be texts (spec lifecycle-spans §2). What cannot be read is left out: the request
/// screen shows it as it came.
fn top_k(text: &str) -> Vec<Candidate> {
    type Row = serde_json::Map<String, serde_json::Value>;
    let rows: Vec<Row> = serde_json::from_str(text).unwrap_or_default();
    let float = |value: &serde_json::Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let whole =
        |row: &Row, key: &str| row.get(key).and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    let candidate = |row: &Row| {
        let rank = whole(row, "dp_rank").and_then(|rank| u32::try_from(rank).ok());
        let skipped = ["worker_id", "dp_rank", "selected", "score"];
        let inputs = row.iter().filter(|(key, _)| !skipped.contains(&key.as_str()));
        Some(Candidate {
            worker: Worker { id: whole(row, "worker_id")?, rank },
            cost: row.get("score").and_then(float).filter(|cost| cost.is_finite())?,
            inputs: inputs.filter_map(|(key, value)| Some((key.clone(), float(value)?))).collect(),
        })
    };
    rows.iter().filter_map(candidate).collect()
}

const TITLES: [&str; 7] = ["", ">age", "request", "phase", "cost from 0", "chosen", ">margin  regret"];

/// The decisions, one a row, with their candidates as dots on one axis of costs.
pub(super) fn table(latest: &[Decision], seen: &Seen<'_>, chosen: Option<&Decision>) -> Block {
    let costs = || latest.iter().flat_map(|decision| decision.candidates.iter().map(|candidate| candidate.cost));
    // A few dear ones must not press all the others together: those beyond the axis stand at its end.
    let mut sorted: Vec<f64> = costs().collect();
    sorted.sort_by(f64::total_cmp);
    let most = round_up(sorted.get(sorted.len() * 9 / 10).copied().unwrap_or(0.0));
    let rows = latest
        .iter()
        .map(|decision| {
            let mut dots: Vec<Dot> = decision
                .candidates
                .iter()
                .map(|candidate| Dot {
                    at: (candidate.cost / most).clamp(0.0, 1.0),
                    kind: decision.kind(candidate.worker),
                })
                .collect();
            dots.sort_by_key(|dot| dot.kind);
            let selection = &decision.selection;
            let who = match selection.selected {
                Some(selected) => Cell::new(selected.worker.short(), Tone::Plain),
                // A record does not say which one was chosen: the dispatch does, when it comes.
                None if selection.origin == Origin::Record && !decision.ended => Cell::new("…", Tone::Running),
                None => Cell::label("none"),
            };
            let margin = match selection.margin {
                Some(margin) => {
                    let mark = if selection.origin == Origin::Record { "ʳ" } else { "" };
                    format!("{}{mark}", margin_piece(margin, selection.candidates).text)
                }
                None => "–".into(),
            };
            let (regret, tone) = match selection.regret() {
                Some(regret) if regret > 0.0 => (format::cost(regret), Tone::Warn),
                Some(_) => ("0".into(), Tone::Plain),
                None => ("–".into(), Tone::Plain),
            };
            let text = format!("{margin}  {regret:>6}");
            let is_chosen = chosen.is_some_and(|chosen| std::ptr::eq(chosen, decision));
            vec![
                Cell::new(if is_chosen { "▸" } else { " " }, Tone::Accent),
                Cell::label(format::age(seen.now_ns.saturating_sub(decision.time_ns))),
                Cell::new(format::short_id(&decision.request), Tone::Plain).finding(&*decision.term),
                Cell::new(&*decision.leg, Tone::of_phase(decision.phase)),
                Cell { mark: Mark::Dots(dots), ..Cell::new("", Tone::Plain) },
                who,
                Cell::new(text, tone),
            ]
        })
        .collect();
    Block::table(1, &TITLES, rows)
        .titled(format!("latest decisions  ◉ chosen, best  ● chosen  ○ best  • other · 0 to {}", format::cost(most)))
}

/// The next of 1, 2, 5, 10 … that is no less.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let ten = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * ten).find(|step| *step >= value).unwrap_or(value)
}

/// The candidates of one decision: cost and the inputs that made it, as small bars.
pub(super) fn candidates(decision: &Decision) -> Option<Block> {
    let inputs: Vec<&str> = decision.candidates.iter().flat_map(|c| c.inputs.iter().map(|(key, _)| &**key)).fold(
        Vec::new(),
        |mut known, key| {
            if !known.contains(&key) {
                known.push(key);
            }
            known
        },
    );
    if decision.candidates.is_empty() {
        return None;
    }
    let most = |key: &str| {
        let of = |c: &Candidate| c.inputs.iter().find(|(name, _)| name == key).map_or(0.0, |(_, value)| *value);
        decision.candidates.iter().map(of).fold(0.0, f64::max)
    };
    let dearest = decision.candidates.iter().map(|candidate| candidate.cost).fold(0.0, f64::max);
    let share = |value: f64, most: f64| Mark::Bar(if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 });
    let rows = decision
        .candidates
        .iter()
        .map(|candidate| {
            let (word, tone) = match decision.kind(candidate.worker) {
                DotKind::ChosenBest => ("chosen, best", Tone::Accent),
                DotKind::Chosen => ("chosen", Tone::Warn),
                DotKind::Best => ("best", Tone::Good),
                DotKind::Other => ("", Tone::Dim),
            };
            let mut row = vec![
                Cell::new(candidate.worker.short(), tone),
                Cell::new(word, tone),
                Cell { mark: share(candidate.cost, dearest), ..Cell::new(format::cost(candidate.cost), tone) },
            ];
            for key in inputs.iter().take(INPUTS) {
                let value = candidate.inputs.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
                row.push(match value {
                    Some(value) => Cell {
                        mark: share(value, most(key)),
                        ..Cell::new(
                            format!("{} {}", format::short_count(value.round() as u64), short_input(key)),
                            Tone::Dim,
                        )
                    },
                    None => Cell::label("–"),
                });
            }
            row
        })
        .collect();
    let mut titles = vec!["candidate", "", "cost"];
    titles.resize(3 + inputs.len().min(INPUTS), "");
    let of = format::short_id(&decision.request);
    Some(Block::table(3, &titles, rows).titled(format!("candidates of {of} · {}", decision.leg)))
}

/// Inputs shown beside a candidate's cost.
const INPUTS: usize = 5;

/// A name that fits beside a number.
fn short_input(key: &str) -> String {
    match key {
        "cached_tokens" => "cached".into(),
        "device_overlap_blocks" => "device".into(),
        "host_overlap_blocks" => "host".into(),
        "disk_overlap_blocks" => "disk".into(),
        "active_prefill_tokens" => "prefill".into(),
        "decode_cost_blocks" => "decode".into(),
        "active_requests" => "active".into(),
        other => other.replace('_', " "),
    }
}
