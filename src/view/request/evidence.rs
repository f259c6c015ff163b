//! The typed evidence of one span: the catalogue's fields with their units, the candidate table of a selection, and
//! what is missing, said as what kind of missing it is (design §1.2).

use super::detail::{Detail, Opens, typed, worker};
use crate::lifecycle::body::Attr;
use crate::lifecycle::catalogue::{Field, ROWS};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::{RequestView, SpanView};
use crate::lifecycle::stage::{Layout, Mode, Stage};
use crate::view::{Nothing, Piece, Tone, format};

/// Fields that a stage carries in the evidence layout.
static EXPECTED: &[(Stage, &[Field])] = &[
    (Stage::Root, &[Field::Outcome, Field::TerminalError, Field::TerminalTime]),
    (
        Stage::Queue,
        &[Field::QueueClass, Field::QueuePolicy, Field::DepthIn, Field::DepthOut, Field::Deferred, Field::QueueOutcome],
    ),
    (Stage::Selection, &[Field::Candidates, Field::Eligible, Field::Filtered, Field::SelectedWorker, Field::Margin]),
    (Stage::Dispatch, &[Field::DispatchRoute, Field::DispatchPhase, Field::DestinationWorker, Field::DispatchResult]),
    (Stage::Admission, &[Field::Transport, Field::PayloadBytes, Field::AdmissionResult]),
];

/// Fields that a stage carries in investigation mode only.
static INVESTIGATION: &[(Stage, &[Field])] = &[
    (Stage::Preprocessing, &[Field::Checkpoint, Field::StageOutcome]),
    (Stage::Streaming, &[Field::StreamEvents, Field::StageOutcome]),
    (Stage::Selection, &[Field::TopK]),
];

/// Identity and capture fields say little on this screen; they come last.
fn is_common(field: Field) -> bool {
    matches!(
        field,
        Field::Schema
            | Field::Profile
            | Field::Mode
            | Field::Component
            | Field::Instance
            | Field::Epoch
            | Field::IdentityState
            | Field::CaptureState
            | Field::DetailSchema
            | Field::OperationId
            | Field::Role
            | Field::RequestId
    )
}

/// The evidence of a span.
pub fn evidence(span: &SpanView<'_>, request: &RequestView<'_>) -> Vec<Detail> {
    let attrs: Vec<Attr<'_>> = span.body.attrs().collect();
    // The last of repeated keys holds (spec lifecycle-spans §2).
    let last = |field: Field| attrs.iter().enumerate().rfind(|(_, attr)| attr.field == field);
    let (mut rows, mut common) = (Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|row| !matches!(row.field, Field::Boilerplate | Field::TopK)) {
        if let Some((index, attr)) = last(row.field) {
            let mut detail = Detail::new(row.label, typed(row, attr.value));
            detail.opens = Some(Opens::Attribute(index));
            if is_common(row.field) { common.push(detail) } else { rows.push(detail) }
        }
    }
    if let Some((_, attr)) = last(Field::TopK) {
        rows.extend(candidates(attr.value, span));
    }
    rows.extend(lacking(span, request, |field| last(field).is_some()));
    if span.stage == Stage::Schedule || (span.stage == Stage::Route && request.facts.layout == Layout::Base) {
        rows.push(Detail::new("taken for", vec![Piece::dim(inferred(span.stage))]));
    }
    if rows.is_empty() {
        rows.push(Detail::new("evidence", vec![Nothing::NoSuch.sentence()]));
    }
    rows.append(&mut common);
    rows
}

fn inferred(stage: Stage) -> &'static str {
    if stage == Stage::Schedule { "the queue wait (inferred)" } else { "the dispatch attempt (inferred)" }
}

/// Expected fields that are not there, with the kind of nothing.
fn lacking(span: &SpanView<'_>, request: &RequestView<'_>, has: impl Fn(Field) -> bool) -> Vec<Detail> {
    let (layout, mode) = (request.facts.layout, request.facts.mode);
    let of = |table: &'static [(Stage, &'static [Field])]| {
        table.iter().filter(|(stage, _)| *stage == span.stage).flat_map(|(_, fields)| fields.iter().copied())
    };
    let always = of(EXPECTED).map(|field| (field, false));
    let by_mode = of(INVESTIGATION).map(|field| (field, true));
    let nothing_chosen = span.stage == Stage::Selection && !has(Field::SelectedWorker);
    always
        .chain(by_mode)
        .filter(|(field, _)| !has(*field))
        .filter_map(|(field, investigation)| {
            let nothing = match (layout, mode) {
                _ if span.stage == Stage::Root => Nothing::Missing,
                (Layout::Base, _) => Nothing::Layout(layout),
                (_, Mode::Core) if investigation => Nothing::Mode(mode),
                // A failed selection has counts and no choice (spec lifecycle-spans §3).
                _ if nothing_chosen => Nothing::NoSuch,
                _ => Nothing::Missing,
            };
            Some(Detail::new(field.row()?.label, vec![nothing.sentence()]))
        })
        .collect()
}

/// The candidate table: cost with a bar, and the inputs that made it, in the producer's order.
fn candidates(value: Value<'_>, span: &SpanView<'_>) -> Vec<Detail> {
    let rows: Option<Vec<serde_json::Map<String, serde_json::Value>>> =
        value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let Some(rows) = rows else {
        return vec![Detail::new(
            "candidates",
            vec![Piece::new("not a list of candidates: see attributes", Tone::Warn)],
        )];
    };
    let number = |row: &serde_json::Map<String, serde_json::Value>, field: &str| {
        row.get(field).and_then(|value| value.as_f64().or_else(|| value.as_str()?.parse().ok()))
    };
    let id = |row: &serde_json::Map<String, serde_json::Value>, field: &str| {
        row.get(field).and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
    };
    let named = |worker: Field, rank: Field| {
        let rank = span.number(rank).and_then(|rank| u32::try_from(rank).ok());
        span.number(worker).map(|id| Worker { id, rank })
    };
    let chosen = named(Field::SelectedWorker, Field::SelectedRank);
    let best = named(Field::BestWorker, Field::BestRank);
    let most = rows.iter().filter_map(|row| number(row, "score")).fold(0.0, f64::max);
    let mut details = vec![Detail::heading(format!("Candidates  {} shown, lowest cost first", rows.len()))];
    for row in &rows {
        let who = id(row, "worker_id")
            .map(|id_| Worker { id: id_, rank: id(row, "dp_rank").and_then(|rank| u32::try_from(rank).ok()) });
        let is_chosen =
            row.get("selected").and_then(serde_json::Value::as_bool).unwrap_or(who.is_some() && who == chosen);
        let name = who.map_or("?".into(), |who| worker(who.id, who.rank));
        let sign = if is_chosen { "▸" } else { " " };
        let said = [(is_chosen, "chosen"), (who.is_some() && who == best, "best")];
        let said: Vec<&str> = said.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect();
        let tone = if is_chosen { Tone::Accent } else { Tone::Plain };
        let score = number(row, "score");
        let mut value = vec![score.map_or(Piece::dim("–"), |score| Piece::plain(format::cost(score)))];
        if !said.is_empty() {
            value.push(Piece::new(said.join(", "), tone));
        }
        for (field, part) in row {
            if matches!(field.as_str(), "worker_id" | "dp_rank" | "selected" | "score") {
                continue;
            }
            value.push(Piece::dim(format!("{}={part}", field.replace('_', " "))));
        }
        details.push(Detail {
            label: Piece::new(format!("{sign} {name}"), tone),
            value,
            bar: score.filter(|_| most > 0.0).map(|score| (score / most, tone)),
            opens: None,
        });
    }
    details
}
