//! A request's legs: each wait, choice and attempt with the others that belong to it.
//!
//! A *pick* is what stands under one `kv_router.select_worker`: the wait and the choice. A leg is a pick with the attempt
//! that followed it. In the evidence layout pool, phase and attempt number say which; in the base layout, where neither
//! is recorded, time does: the last fitting pick before an attempt is its own. Selections come from spans, else from
//! `router_selection` records, which arrive one per pick in order (spec request-trace.md).

use compact_str::CompactString;

use super::assemble::text;
use super::catalogue::Field;
use super::facts::{Admission, Choice, Dispatch, Leg, Queue, Selection};
use super::ids::{SpanId, Worker};
use super::packed::Value;
use super::record::{Record, RecordBody, SelectionRecord};
use super::request::{SpanView, Up};
use super::stage::{Origin, Phase, Stage};

/// What stands under one `kv_router.select_worker`.
struct Pick {
    key: PickKey,
    start_ns: u64,
    attempt: Option<u32>,
    queue: Option<Queue>,
    selection: Option<Selection>,
}

/// What holds a pick together: the topmost router span above its parts, or the parent they name while that is missing.
#[derive(PartialEq, Clone, Copy)]
enum PickKey {
    Above(u32),
    Missing(SpanId),
    Alone(u32),
}

impl Pick {
    fn pool(&self) -> Phase {
        self.selection.as_ref().map_or(Phase::Unknown, |selection| selection.pool)
    }
}

/// An attempt, with the indexes of its spans for what hangs below them.
struct Attempt {
    dispatch: Dispatch,
    phase: Phase,
    number: u32,
    span: u32,
    route: Option<u32>,
}

/// The legs of a request, in the order they began.
pub(super) fn legs(spans: &[SpanView<'_>], records: &[Record]) -> Vec<Leg> {
    if spans.is_empty() && records.is_empty() {
        return Vec::new();
    }
    let mut picks = picks(spans);
    let attempts = attempts(spans);
    let disaggregated = attempts.iter().any(|attempt| attempt.phase == Phase::Prefill)
        || picks.iter().any(|pick| pick.pool() == Phase::Prefill);
    // Start, leg, and the spans of its attempt.
    let mut legs: Vec<(u64, Leg, Option<(u32, Option<u32>)>)> = Vec::new();
    for attempt in attempts {
        let fits = |pick: &Pick| {
            pick.start_ns <= attempt.dispatch.start_ns
                && attempt.phase.fits_pool(pick.pool())
                && pick.attempt.is_none_or(|number| number == attempt.number)
        };
        let pick = picks.iter().rposition(fits).map(|at| picks.remove(at));
        let start_ns = pick.as_ref().map_or(attempt.dispatch.start_ns, |pick| pick.start_ns);
        let (queue, selection) = pick.map_or((None, None), |pick| (pick.queue, pick.selection));
        legs.push((
            start_ns,
            Leg {
                phase: attempt.phase,
                attempt: attempt.number,
                queue,
                selection,
                dispatch: Some(attempt.dispatch),
                admission: None,
            },
            Some((attempt.span, attempt.route)),
        ));
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
        legs.push((pick.start_ns, leg, None));
    }
    legs.sort_by_key(|(start_ns, ..)| *start_ns);
    admissions(spans, &mut legs);
    let mut legs: Vec<Leg> = legs.into_iter().map(|(_, leg, _)| leg).collect();
    selection_records(records, &mut legs);
    legs.shrink_to_fit();
    legs
}

fn picks(spans: &[SpanView<'_>]) -> Vec<Pick> {
    let mut picks: Vec<Pick> = Vec::new();
    let mut detached: Vec<u32> = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        if !matches!(span.stage, Stage::Schedule | Stage::Queue | Stage::Selection) {
            continue;
        }
        let key = pick_key(spans, at);
        if matches!(key, PickKey::Alone(_)) && span.stage != Stage::Schedule {
            detached.push(at as u32);
            continue;
        }
        let start_ns = if let PickKey::Above(above) = key { spans[above as usize].start_ns } else { span.start_ns };
        let pick = match picks.iter_mut().position(|pick| pick.key == key) {
            Some(found) => &mut picks[found],
            None => {
                picks.push(Pick { key, start_ns, attempt: None, queue: None, selection: None });
                let last = picks.len() - 1;
                &mut picks[last]
            }
        };
        take_part(pick, span);
    }
    picks.sort_by_key(|pick| pick.start_ns);
    // Drafts wrote router spans as traces of their own: they fill the picks that lack them, in order of time.
    for at in detached {
        let span = &spans[at as usize];
        let number = attempt_of(span);
        let free = |pick: &&mut Pick| {
            let open = match span.stage {
                Stage::Queue => pick.queue.as_ref().is_none_or(|queue| queue.origin == Origin::Inferred),
                _ => pick.selection.is_none(),
            };
            open && (pick.attempt.is_none() || number.is_none() || pick.attempt == number)
        };
        match picks.iter_mut().find(free) {
            Some(pick) => take_part(pick, span),
            None => {
                let mut pick = Pick {
                    key: PickKey::Alone(at),
                    start_ns: span.start_ns,
                    attempt: None,
                    queue: None,
                    selection: None,
                };
                take_part(&mut pick, span);
                picks.push(pick);
            }
        }
    }
    picks.sort_by_key(|pick| pick.start_ns);
    picks
}

/// Climbs to the topmost of the router spans above.
fn pick_key(spans: &[SpanView<'_>], at: usize) -> PickKey {
    let mut top = at;
    loop {
        match spans[top].up {
            Up::At(parent)
                if matches!(spans[parent as usize].stage, Stage::Schedule | Stage::SelectWorker | Stage::Advisory) =>
            {
                top = parent as usize;
            }
            Up::Missing if !matches!(spans[top].stage, Stage::SelectWorker | Stage::Advisory) => {
                return spans[top].parent.map_or(PickKey::Alone(at as u32), PickKey::Missing);
            }
            _ if top == at && spans[at].stage != Stage::Schedule => return PickKey::Alone(at as u32),
            _ => return PickKey::Above(top as u32),
        }
    }
}

fn take_part(pick: &mut Pick, span: &SpanView<'_>) {
    match span.stage {
        Stage::Schedule => {
            pick.queue.get_or_insert_with(|| inferred_queue(span));
        }
        Stage::Queue => {
            if pick.queue.as_ref().is_none_or(|queue| queue.origin == Origin::Inferred) {
                pick.queue = Some(queue(span));
            }
            pick.attempt = pick.attempt.or_else(|| attempt_of(span));
        }
        _ => {
            pick.selection.get_or_insert_with(|| selection(span));
            pick.attempt = pick.attempt.or_else(|| attempt_of(span));
        }
    }
}

fn attempt_of(span: &SpanView<'_>) -> Option<u32> {
    span.number(Field::Attempt).and_then(|number| u32::try_from(number).ok())
}

fn inferred_queue(span: &SpanView<'_>) -> Queue {
    Queue {
        span: span.id,
        start_ns: span.start_ns,
        wait_ns: span.duration_ns(),
        class: CompactString::default(),
        policy: CompactString::default(),
        depth_in: None,
        depth_out: None,
        deferred: None,
        outcome: CompactString::default(),
        reason: CompactString::default(),
        origin: Origin::Inferred,
    }
}

fn queue(span: &SpanView<'_>) -> Queue {
    let mut queue = Queue { origin: Origin::Span, ..inferred_queue(span) };
    for attr in span.body.attrs() {
        match attr.field {
            Field::QueueClass => queue.class = text(attr.value),
            Field::QueuePolicy => queue.policy = text(attr.value),
            Field::DepthIn => queue.depth_in = attr.value.as_u64(),
            Field::DepthOut => queue.depth_out = attr.value.as_u64(),
            Field::Deferred => queue.deferred = attr.value.as_bool(),
            Field::QueueOutcome => queue.outcome = text(attr.value),
            Field::QueueReason => queue.reason = text(attr.value),
            _ => {}
        }
    }
    // Drafts wrote deferred=true on every queue span (spec lifecycle-spans §3): there it says nothing.
    if queue.outcome == "admitted" && queue.reason.is_empty() {
        queue.deferred = None;
    }
    queue
}

/// The parts of a choice as attributes give them.
#[derive(Default)]
struct ChoiceIn {
    id: Option<u64>,
    rank: Option<u32>,
    cost: Option<f64>,
}

impl ChoiceIn {
    fn choice(self) -> Option<Choice> {
        Some(Choice { worker: Worker { id: self.id?, rank: self.rank }, cost: self.cost })
    }
}

fn rank(value: Value<'_>) -> Option<u32> {
    value.as_u64().and_then(|rank| u32::try_from(rank).ok())
}

fn selection(span: &SpanView<'_>) -> Selection {
    let mut read = Selection {
        span: Some(span.id),
        time_ns: span.start_ns,
        pool: Phase::Unknown,
        candidates: None,
        eligible: None,
        filtered: None,
        filtered_parts: [None; 5],
        selected: None,
        best: None,
        margin: None,
        pinned: None,
        policy: CompactString::default(),
        origin: Origin::Span,
    };
    let (mut selected, mut best) = (ChoiceIn::default(), ChoiceIn::default());
    for attr in span.body.attrs() {
        let value = attr.value;
        match attr.field {
            Field::Candidates => read.candidates = value.as_u64(),
            Field::Eligible => read.eligible = value.as_u64(),
            Field::Filtered => read.filtered = value.as_u64(),
            Field::FilteredNotAllowed => read.filtered_parts[0] = value.as_u64(),
            Field::FilteredConstraints => read.filtered_parts[1] = value.as_u64(),
            Field::FilteredOverloaded => read.filtered_parts[2] = value.as_u64(),
            Field::FilteredUnavailable => read.filtered_parts[3] = value.as_u64(),
            Field::FilteredPolicy => read.filtered_parts[4] = value.as_u64(),
            Field::SelectionPolicy => read.policy = text(value),
            Field::Pool => read.pool = Phase::of(value.as_str().unwrap_or("")),
            Field::SelectedWorker => selected.id = value.as_u64(),
            Field::SelectedRank => selected.rank = rank(value),
            Field::SelectedScore => selected.cost = value.as_f64(),
            Field::BestWorker => best.id = value.as_u64(),
            Field::BestRank => best.rank = rank(value),
            Field::BestScore => best.cost = value.as_f64(),
            Field::Margin => read.margin = value.as_f64(),
            _ => {}
        }
    }
    read.selected = selected.choice();
    read.best = best.choice();
    read
}

fn attempts(spans: &[SpanView<'_>]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        if span.stage == Stage::Dispatch && !is_worker_side(spans, span) {
            attempts.push(dispatch(at as u32, span));
        }
    }
    for (at, span) in spans.iter().enumerate() {
        if span.stage != Stage::Route {
            continue;
        }
        let phase = Phase::of(span.text(Field::RoutePhase));
        let number = attempt_of(span).unwrap_or(0);
        let below = attempts.iter().position(|attempt| span.up == Up::At(attempt.span));
        // Before 2026-10-21 the route span stood beside its dispatch.
        let beside = || {
            attempts.iter().position(|attempt| {
                attempt.route.is_none() && attempt.number == number && attempt.phase.fits_pool(phase)
            })
        };
        match below.or_else(beside) {
            Some(found) => {
                let attempt = &mut attempts[found];
                if attempt.route.is_none() {
                    attempt.route = Some(at as u32);
                    read_route(&mut attempt.dispatch, span);
                }
            }
            None => {
                let mut alone = new_dispatch(span, Origin::Inferred);
                read_route(&mut alone, span);
                attempts.push(Attempt { dispatch: alone, phase, number, span: at as u32, route: Some(at as u32) });
            }
        }
    }
    attempts.sort_by_key(|attempt| attempt.dispatch.start_ns);
    attempts
}

/// The base layout has `request.dispatch` below the worker's operation, without fields of its own: no attempt.
fn is_worker_side(spans: &[SpanView<'_>], span: &SpanView<'_>) -> bool {
    matches!(span.up, Up::At(parent) if spans[parent as usize].stage == Stage::Operation)
        || span.text(Field::Component) == "worker"
}

fn new_dispatch(span: &SpanView<'_>, origin: Origin) -> Dispatch {
    Dispatch {
        span: span.id,
        start_ns: span.start_ns,
        duration_ns: span.duration_ns(),
        route: CompactString::default(),
        worker: None,
        result: CompactString::default(),
        attempt_outcome: CompactString::default(),
        error: CompactString::default(),
        retry: None,
        migration_reason: CompactString::default(),
        from_worker: None,
        tokens_carried: None,
        origin,
    }
}

fn dispatch(at: u32, span: &SpanView<'_>) -> Attempt {
    let mut read = new_dispatch(span, Origin::Span);
    let (mut id, mut worker_rank, mut phase, mut number) = (None, None, Phase::Unknown, 0);
    for attr in span.body.attrs() {
        match attr.field {
            Field::DispatchRoute => read.route = text(attr.value),
            Field::DispatchPhase => phase = Phase::of(attr.value.as_str().unwrap_or("")),
            Field::DestinationWorker => id = attr.value.as_u64(),
            Field::DestinationRank => worker_rank = rank(attr.value),
            Field::DispatchResult => read.result = text(attr.value),
            Field::Attempt => number = attr.value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0),
            _ => {}
        }
    }
    read.worker = id.map(|id| Worker { id, rank: worker_rank });
    Attempt { dispatch: read, phase, number, span: at, route: None }
}

fn read_route(dispatch: &mut Dispatch, span: &SpanView<'_>) {
    let (mut id, mut worker_rank) = (None, None);
    for attr in span.body.attrs() {
        match attr.field {
            Field::RouteWorker => id = attr.value.as_u64(),
            Field::RouteRank => worker_rank = rank(attr.value),
            Field::RouterMode if dispatch.route.is_empty() => dispatch.route = text(attr.value),
            Field::RouteOutcome => dispatch.attempt_outcome = text(attr.value),
            Field::ErrorType => dispatch.error = text(attr.value),
            Field::IsRetry => dispatch.retry = attr.value.as_bool(),
            Field::MigrationReason => dispatch.migration_reason = text(attr.value),
            Field::FromWorker => dispatch.from_worker = attr.value.as_u64(),
            Field::TokensCompleted => dispatch.tokens_carried = attr.value.as_u64(),
            _ => {}
        }
    }
    if dispatch.worker.is_none() {
        dispatch.worker = id.map(|id| Worker { id, rank: worker_rank });
    }
    if dispatch.route.is_empty() && span.name == "kv_router.route_request" {
        dispatch.route = "kv".into();
    }
}

fn admissions(spans: &[SpanView<'_>], legs: &mut [(u64, Leg, Option<(u32, Option<u32>)>)]) {
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.stage == Stage::Admission) {
        let mut read = Admission {
            span: span.id,
            transport: CompactString::default(),
            payload_bytes: None,
            result: CompactString::default(),
        };
        for attr in span.body.attrs() {
            match attr.field {
                Field::Transport => read.transport = text(attr.value),
                Field::PayloadBytes => read.payload_bytes = attr.value.as_u64(),
                Field::AdmissionResult => read.result = text(attr.value),
                _ => {}
            }
        }
        // Up to its attempt; while the way there is broken, by attempt number and role.
        let mut top = at as u32;
        let mut steps = 0;
        let found = loop {
            let owner = legs
                .iter()
                .position(|(.., spans)| spans.is_some_and(|(dispatch, route)| dispatch == top || route == Some(top)));
            match (owner, spans[top as usize].up) {
                (Some(owner), _) => break Some(owner),
                (None, Up::At(parent)) if steps < 8 => {
                    top = parent;
                    steps += 1;
                }
                _ => break None,
            }
        };
        let by_role = || {
            let role = Phase::of(span.text(Field::Role));
            let number = attempt_of(span).unwrap_or(0);
            legs.iter().position(|(_, leg, _)| {
                leg.admission.is_none() && leg.dispatch.is_some() && leg.attempt == number && leg.phase.fits_pool(role)
            })
        };
        if let Some(owner) = found.or_else(by_role) {
            legs[owner].1.admission.get_or_insert(read);
        }
    }
}

/// Gives each leg without a selection span the `router_selection` record of its turn: the n-th of its pool.
fn selection_records(records: &[Record], legs: &mut Vec<Leg>) {
    let mut of_records: Vec<(u64, &SelectionRecord)> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Selection(selection) => Some((record.time_ms, selection)),
            _ => None,
        })
        .collect();
    of_records.sort_by_key(|(time_ms, _)| *time_ms);
    let ends = records.iter().find_map(|record| match &record.body {
        RecordBody::End(end) => end.worker.as_ref(),
        _ => None,
    });
    for pool in [Phase::Prefill, Phase::Decode, Phase::Unknown] {
        let mut turn = 0;
        for (time_ms, record) in of_records.iter().filter(|(_, record)| record.pool == pool) {
            // Legs that never selected (refused in the queue) have no record.
            let mut fitting = legs.iter_mut().filter(|leg| {
                let phase_fits = match leg.phase {
                    Phase::Prefill => pool == Phase::Prefill,
                    Phase::Decode | Phase::Aggregated => pool != Phase::Prefill,
                    Phase::Unknown => {
                        leg.dispatch.is_some() || leg.queue.as_ref().is_some_and(|queue| queue.outcome.is_empty())
                    }
                };
                phase_fits && (leg.dispatch.is_some() || leg.selection.is_some() || leg.phase == Phase::Unknown)
            });
            match fitting.nth(turn) {
                Some(leg) => match &mut leg.selection {
                    Some(selection) => selection.pinned = Some(record.pinned),
                    None => {
                        let dispatched = leg.dispatch.as_ref().and_then(|dispatch| dispatch.worker);
                        if leg.phase == Phase::Unknown && leg.dispatch.is_none() {
                            leg.phase = pool;
                        }
                        leg.selection = Some(of_record(*time_ms, record, dispatched));
                    }
                },
                None => {
                    let named = ends.and_then(|ends| {
                        let (id, rank) = match pool {
                            Phase::Prefill => (ends.prefill_worker_id, ends.prefill_dp_rank),
                            _ => (ends.decode_worker_id, ends.decode_dp_rank),
                        };
                        Some(Worker { id: id?, rank })
                    });
                    let selection = Some(of_record(*time_ms, record, named.filter(|_| turn == 0)));
                    legs.push(Leg { phase: pool, attempt: turn as u32, selection, ..Leg::default() });
                }
            }
            turn += 1;
        }
    }
}

/// A selection as its record tells it: the chosen one is known from elsewhere, the least cost is the first row's.
fn of_record(time_ms: u64, record: &SelectionRecord, chosen: Option<Worker>) -> Selection {
    let row = |worker: Worker| record.candidates.iter().find(|(candidate, _)| same_worker(*candidate, worker));
    let selected = chosen.map(|worker| match row(worker) {
        Some((candidate, cost)) => Choice { worker: *candidate, cost: Some(*cost) },
        None => Choice { worker, cost: None },
    });
    let least = record.candidates.first().map(|(worker, cost)| Choice { worker: *worker, cost: Some(*cost) });
    // On a tie the chosen one is the best (spec lifecycle-spans §3).
    let best = selected.filter(|selected| least.is_some_and(|least| selected.cost == least.cost)).or(least);
    let margin = match &record.candidates[..] {
        [(_, least), (_, next), ..] => Some(next - least),
        [_] if record.candidate_count <= 1 => Some(0.0),
        _ => None,
    };
    Selection {
        span: None,
        time_ns: time_ms.saturating_mul(1_000_000),
        pool: record.pool,
        candidates: Some(record.candidate_count),
        eligible: None,
        filtered: None,
        filtered_parts: [None; 5],
        selected,
        best,
        margin,
        pinned: Some(record.pinned),
        policy: CompactString::default(),
        origin: Origin::Record,
    }
}

fn same_worker(one: Worker, other: Worker) -> bool {
    one.id == other.id && (one.rank == other.rank || one.rank.is_none() || other.rank.is_none())
}
