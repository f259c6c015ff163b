//! A request's legs: each wait, choice and attempt with the others that belong to it.
//!
//! A *pick* is what stands under one `kv_router.select_worker`: the wait and the choice. A leg is a pick with the attempt
//! that followed it. In the evidence layout pool, phase and attempt number say which; in drafts, whose dispatches name no
//! phase, their route and worker spans do, else the worker that was chosen; in the base layout, where nothing of this is
//! recorded, time does: the last fitting pick before an attempt is its own. A phase is told by what is said and by who was
//! chosen, never by time. Selections come from spans, else from `router_selection` records, which arrive one per pick in
//! order (spec request-trace.md).

mod attempts;
mod picks;
mod records;

use super::facts::Leg;
use super::packed::Value;
use super::record::Record;
use super::request::SpanView;
use super::stage::{Origin, Phase, Stage};
use attempts::Attempt;
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
    let disaggregated = attempts.iter().any(|attempt| attempt.phase == Some(Phase::Prefill))
        || picks.iter().any(|pick| pick.pool() == Phase::Prefill);
    // Aggregated pools also say decode (spec lifecycle-spans §3).
    let served = |pool: Phase| if pool == Phase::Decode && !disaggregated { Phase::Aggregated } else { pool };
    let mut legs: Vec<Open> = Vec::new();
    for attempt in attempts {
        let fits = |pick: &Pick| is_earlier(pick, &attempt) && attempt.phase.unwrap_or_default().fits_pool(pick.pool());
        let chosen = chosen(&picks, &attempt);
        let pick = chosen.or_else(|| picks.iter().rposition(fits)).map(|at| picks.remove(at));
        let (phase, phase_origin) = match (attempt.phase, chosen.and(pick.as_ref())) {
            (None, Some(pick)) => (served(pick.pool()), Origin::Inferred),
            (said, _) => (said.unwrap_or_default(), Origin::Span),
        };
        let start_ns = pick.as_ref().map_or(attempt.dispatch.start_ns, |pick| pick.start_ns);
        let (queue, selection) = pick.map_or((None, None), |pick| (pick.queue, pick.selection));
        let Attempt { number, span, route, dispatch, .. } = attempt;
        let leg =
            Leg { phase, phase_origin, attempt: number, queue, selection, dispatch: Some(dispatch), admission: None };
        legs.push(Open { start_ns, leg, span: Some(span), route });
    }
    for pick in picks {
        let phase = served(pick.pool());
        let leg = Leg {
            phase,
            phase_origin: if phase == pick.pool() { Origin::Span } else { Origin::Inferred },
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

fn is_earlier(pick: &Pick, attempt: &Attempt) -> bool {
    pick.start_ns <= attempt.dispatch.start_ns && pick.attempt.is_none_or(|number| number == attempt.number)
}

/// The last pick before an attempt of no said phase that chose its worker, when all that did so tell of one known pool.
fn chosen(picks: &[Pick], attempt: &Attempt) -> Option<usize> {
    let worker = attempt.dispatch.worker.filter(|_| attempt.phase.is_none())?;
    let mut those = picks.iter().enumerate().filter(|(_, pick)| is_earlier(pick, attempt) && pick.chose(worker)).rev();
    let (last, pick) = those.next()?;
    let pool = pick.pool();
    (pool != Phase::Unknown && those.all(|(_, other)| other.pool() == pool)).then_some(last)
}

/// Whether a request has so many spans of a kind that its legs are not all of them.
pub(super) fn is_cut(spans: &[SpanView<'_>]) -> bool {
    let many = |stages: &[Stage]| spans.iter().filter(|span| stages.contains(&span.stage)).nth(MOST).is_some();
    spans.len() > MOST && KINDS.into_iter().any(many)
}

/// The number of an attempt or of a rank.
fn number(value: Value<'_>) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}
