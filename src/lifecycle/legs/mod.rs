//! A request's legs: each wait, choice and attempt with the others that belong to it.
//!
//! A *pick* is what stands under one `kv_router.select_worker`: the wait and the choice. A leg is a pick with the attempt
//! that followed it. In the evidence layout pool, phase and attempt number say which; in the base layout, where neither
//! is recorded, time does: the last fitting pick before an attempt is its own. Selections come from spans, else from
//! `router_selection` records, which arrive one per pick in order (spec request-trace.md).

mod attempts;
mod picks;
mod records;

use super::catalogue::Field;
use super::facts::Leg;
use super::packed::Value;
use super::record::Record;
use super::request::SpanView;
use super::stage::{Phase, Stage};
use picks::Pick;

/// Spans of a kind that are looked at, at most. A request has a handful of legs; a trace with more than this is something
/// else, and pairing costs the square of them.
pub(super) const MOST: usize = 1024;

/// The kinds, each with the stages it is read from.
const KINDS: [&[Stage]; 4] =
    [&[Stage::Schedule, Stage::Queue, Stage::Selection], &[Stage::Dispatch], &[Stage::Route], &[Stage::Admission]];

/// A leg that is still being put together.
struct Open {
    start_ns: u64,
    leg: Leg,
    /// Its dispatch span, and the route span below or beside it, as indexes of the view.
    span: Option<u32>,
    route: Option<u32>,
}

/// The legs of a request, in the order they began.
pub(super) fn legs(spans: &[SpanView<'_>], records: &[Record]) -> Vec<Leg> {
    if spans.is_empty() && records.is_empty() {
        return Vec::new();
    }
    let mut picks = picks::picks(spans);
    let attempts = attempts::attempts(spans);
    let disaggregated = attempts.iter().any(|attempt| attempt.phase == Phase::Prefill)
        || picks.iter().any(|pick| pick.pool() == Phase::Prefill);
    let mut legs: Vec<Open> = Vec::new();
    for attempt in attempts {
        let fits = |pick: &Pick| {
            pick.start_ns <= attempt.dispatch.start_ns
                && attempt.phase.fits_pool(pick.pool())
                && pick.attempt.is_none_or(|number| number == attempt.number)
        };
        let pick = picks.iter().rposition(fits).map(|at| picks.remove(at));
        let start_ns = pick.as_ref().map_or(attempt.dispatch.start_ns, |pick| pick.start_ns);
        let (queue, selection) = pick.map_or((None, None), |pick| (pick.queue, pick.selection));
        let (phase, number) = (attempt.phase, attempt.number);
        let leg = Leg { phase, attempt: number, queue, selection, dispatch: Some(attempt.dispatch), admission: None };
        legs.push(Open { start_ns, leg, span: Some(attempt.span), route: attempt.route });
    }
    for pick in picks {
        let phase = match pick.pool() {
            Phase::Decode if !disaggregated => Phase::Aggregated,
            pool => pool,
        };
        let leg = Leg {
            phase,
            attempt: pick.attempt.unwrap_or(0),
            queue: pick.queue,
            selection: pick.selection,
            ..Leg::default()
        };
        legs.push(Open { start_ns: pick.start_ns, leg, span: None, route: None });
    }
    legs.sort_by_key(|open| open.start_ns);
    attempts::admissions(spans, &mut legs);
    legs.sort_by_key(|open| open.start_ns);
    let mut legs: Vec<Leg> = legs.into_iter().map(|open| open.leg).collect();
    records::selections(records, &mut legs);
    legs.shrink_to_fit();
    legs
}

/// Whether a request has so many spans of a kind that its legs are not all of them.
pub(super) fn is_cut(spans: &[SpanView<'_>]) -> bool {
    let many = |stages: &[Stage]| spans.iter().filter(|span| stages.contains(&span.stage)).nth(MOST).is_some();
    spans.len() > MOST && KINDS.into_iter().any(many)
}

fn attempt_of(span: &SpanView<'_>) -> Option<u32> {
    span.number(Field::Attempt).and_then(|number| u32::try_from(number).ok())
}

fn rank(value: Value<'_>) -> Option<u32> {
    value.as_u64().and_then(|rank| u32::try_from(rank).ok())
}
