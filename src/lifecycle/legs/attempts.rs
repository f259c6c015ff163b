//! Attempts to hand a leg to a worker, from dispatch and route spans, and the workers' admissions.

use compact_str::CompactString;
use hashbrown::{HashMap, HashSet};

use super::{MOST, Open, number};
use crate::lifecycle::assemble::text;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Admission, Dispatch, Leg, Queue};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::request::{SpanView, Up};
use crate::lifecycle::stage::{Origin, Phase, Stage};
use crate::lifecycle::work;

/// An attempt, with the indexes of its spans for what hangs below them.
pub(super) struct Attempt {
    pub dispatch: Dispatch,
    /// What its spans say of its phase, which may be a word that is not known; `None` when none of them says any.
    pub phase: Option<Phase>,
    pub number: u32,
    pub span: u32,
    pub route: Option<u32>,
}

/// The attempts of a request, by start.
pub(super) fn attempts(spans: &[SpanView<'_>]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    // The base layout has `request.dispatch` below the worker's operation, without fields of its own: no attempt.
    let is_dispatch = |span: &SpanView<'_>| {
        let of_worker = matches!(span.up, Up::At(parent) if spans[parent as usize].stage == Stage::Operation);
        span.stage == Stage::Dispatch && !of_worker
    };
    let dispatches = spans.iter().enumerate().filter(|(_, span)| is_dispatch(span));
    attempts.extend(dispatches.filter_map(|(at, span)| dispatch(at as u32, span)).take(MOST));
    let mut by_span: HashMap<u32, usize> =
        attempts.iter().enumerate().map(|(place, attempt)| (attempt.span, place)).collect();
    let mut routes: Vec<(u32, usize)> = Vec::new();
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.stage == Stage::Route).take(MOST) {
        let Route { phase, number, worker, dispatch: read } = read_route(span);
        let below = match span.up {
            Up::At(parent) => by_span.get(&parent).copied(),
            _ => None,
        };
        // Before 2026-10-21 the route span stood beside its dispatch.
        let beside = || {
            attempts.iter().inspect(|_| work::step()).position(|attempt| {
                attempt.route.is_none() && attempt.number == number && attempt.may_have_gone(phase, worker)
            })
        };
        match below.or_else(beside) {
            Some(found) => {
                // Of several it may stand beside, it tells of none for sure whose it is and where that went.
                let sure = below.is_some() || went_alone(&attempts, number, worker);
                let attempt = &mut attempts[found];
                if attempt.route.is_none() {
                    let worker = worker.filter(|_| sure || attempt.phase.is_some());
                    attempt.phase = attempt.phase.or(said(phase).filter(|_| sure));
                    attempt.route = Some(at as u32);
                    join_route(&mut attempt.dispatch, read, worker);
                    if sure {
                        routes.push((at as u32, found));
                    }
                }
            }
            None => {
                let dispatch = Dispatch { worker, ..read };
                by_span.insert(at as u32, attempts.len());
                attempts.push(Attempt {
                    dispatch,
                    phase: said(phase),
                    number,
                    span: at as u32,
                    route: Some(at as u32),
                });
            }
        }
    }
    by_span.extend(routes);
    by_span.retain(|_, place| attempts[*place].phase.is_none());
    said_below(spans, &by_span, &mut attempts);
    attempts.sort_by_key(|attempt| attempt.dispatch.start_ns);
    // Dispatch spans have the counter.
    if !attempts.is_empty() && attempts.iter().all(|attempt| attempt.route == Some(attempt.span)) {
        number_prefills(&mut attempts);
        tell_moves(spans, &mut attempts);
    }
    attempts
}

/// The event with which a frontend says that work moves on to another attempt (spec lifecycle-spans §6).
const MOVED: &str = "migration retry scheduled";

/// Gives attempts why the work moved there where no route span of theirs says it: in the base layout those of prefills never
/// do, and the decode may never have come (real captures, `disagg-migration`).
fn tell_moves(spans: &[SpanView<'_>], attempts: &mut [Attempt]) {
    if attempts.iter().all(|attempt| attempt.number == 0) {
        return;
    }
    let is_told = |attempt: &&Attempt| !attempt.dispatch.migration_reason.is_empty();
    let mut told: HashSet<u32> = attempts.iter().filter(is_told).map(|attempt| attempt.number).collect();
    let frontend = spans.iter().filter(|span| matches!(span.stage, Stage::Http | Stage::Root));
    for event in frontend.flat_map(|span| span.body.events()).filter(|event| event.name == MOVED).take(MOST) {
        let (mut number, mut reason, mut from, mut tokens) = (None, CompactString::default(), None, None);
        for attr in event.attrs {
            match attr.field {
                Field::Attempt => number = attr.value.as_count().and_then(|number| u32::try_from(number).ok()),
                Field::MigrationReason => reason = text(attr.value),
                Field::FromWorker => from = attr.value.as_u64(),
                Field::TokensCompleted => tokens = attr.value.as_count(),
                _ => {}
            }
        }
        let Some(number) = number.filter(|number| !reason.is_empty() && told.insert(*number)) else { continue };
        if let Some(attempt) = attempts.iter_mut().inspect(|_| work::step()).find(|attempt| attempt.number == number) {
            let dispatch = &mut attempt.dispatch;
            (dispatch.migration_reason, dispatch.from_worker, dispatch.tokens_carried) = (reason, from, tokens);
        }
    }
}

/// In the base layout every prefill says that it is attempt 0, that of a migration too, whose decode has the number (real
/// captures, `disagg-migration`). One that says what another has said is of the attempt of the decode it served; one that
/// failed, or that none followed, is the attempt after those that failed before it.
fn number_prefills(attempts: &mut [Attempt]) {
    let (mut taken, mut failed) = (HashSet::new(), 0);
    for at in 0..attempts.len() {
        let (before, rest) = attempts.split_at_mut(at + 1);
        let attempt = &mut before[at];
        if attempt.phase == Some(Phase::Prefill) && !taken.insert(attempt.number) {
            let mut after = rest.iter().inspect(|_| work::step());
            let next = after.find(|other| other.phase.is_some());
            let decode = next.filter(|next| next.phase == Some(Phase::Decode) && !attempt.has_failed());
            let mut fitting = decode.map(|decode| decode.number).into_iter().chain([failed]);
            let fits = fitting.find(|number| *number > attempt.number && taken.insert(*number));
            attempt.number = fits.unwrap_or(attempt.number);
        }
        failed += u32::from(attempt.has_failed());
    }
}

impl Attempt {
    /// Whether it is said to have ended badly.
    fn has_failed(&self) -> bool {
        !matches!(self.dispatch.attempt_outcome.as_str(), "" | "success" | "cancelled")
    }

    /// Whether a route span of this phase and worker may be the one beside it.
    fn may_have_gone(&self, phase: Phase, worker: Option<Worker>) -> bool {
        match (self.phase, self.dispatch.worker, worker) {
            (None, Some(own), Some(worker)) => own.agrees(worker),
            (own, ..) => own.unwrap_or_default().fits_pool(phase),
        }
    }
}

/// The phase, when it is a known one.
fn said(phase: Phase) -> Option<Phase> {
    Some(phase).filter(|phase| *phase != Phase::Unknown)
}

/// Whether one dispatch of this number, and no other, went to this worker.
fn went_alone(attempts: &[Attempt], number: u32, worker: Option<Worker>) -> bool {
    let Some(worker) = worker else { return false };
    let went = |attempt: &&Attempt| {
        work::step();
        attempt.number == number && attempt.dispatch.worker.is_some_and(|own| own.agrees(worker))
    };
    attempts.iter().filter(went).count() == 1
}

/// Lets the worker's spans below attempts that name no phase say it. `silent` has the places of these by their spans.
fn said_below(spans: &[SpanView<'_>], silent: &HashMap<u32, usize>, attempts: &mut [Attempt]) {
    if silent.is_empty() {
        return;
    }
    let of_worker = |span: &SpanView<'_>| span.stage.is_worker_side() && span.stage != Stage::Payload;
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| of_worker(span)).take(MOST) {
        let word = if span.stage == Stage::Engine { span.text(Field::DisaggRole) } else { span.text(Field::Role) };
        let Some(phase) = said(Phase::of(word)) else { continue };
        if let Some(place) = owner(spans, at as u32, silent) {
            attempts[place].phase.get_or_insert(phase);
        }
    }
}

/// The place of the attempt that a worker's span stands below, by the spans that lead there.
fn owner(spans: &[SpanView<'_>], at: u32, places: &HashMap<u32, usize>) -> Option<usize> {
    let mut top = at;
    // Far enough for every real tree.
    for _ in 0..=8 {
        match (places.get(&top), spans[top as usize].up) {
            (Some(place), _) => return Some(*place),
            (None, Up::At(parent)) => top = parent,
            _ => return None,
        }
    }
    None
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

/// The attempt that a dispatch span tells of; `None` for a worker's own (the base layout), while its parent is missing.
fn dispatch(at: u32, span: &SpanView<'_>) -> Option<Attempt> {
    let mut read = new_dispatch(span, Origin::Span);
    let (mut id, mut worker_rank, mut phase, mut attempt) = (None, None, None, 0);
    let (mut of_worker, mut said) = (false, false);
    for attr in span.body.attrs().unread() {
        match attr.field {
            Field::DispatchRoute => {
                read.route = text(attr.value());
                said = true;
            }
            Field::DispatchPhase => {
                let word = attr.value().as_str().unwrap_or("");
                phase = (!word.is_empty()).then(|| Phase::of(word));
                said = true;
            }
            Field::DestinationWorker => id = attr.value().as_u64(),
            Field::DestinationRank => worker_rank = number(attr.value()),
            Field::DispatchResult => read.result = text(attr.value()),
            Field::Attempt => attempt = number(attr.value()).unwrap_or(0),
            Field::Component => of_worker = attr.value().as_str() == Some("worker"),
            _ => {}
        }
    }
    read.worker = id.map(|id| Worker { id, rank: worker_rank });
    (said || !of_worker).then_some(Attempt { dispatch: read, phase, number: attempt, span: at, route: None })
}

/// What a route span tells.
struct Route {
    phase: Phase,
    number: u32,
    worker: Option<Worker>,
    /// Everything else.
    dispatch: Dispatch,
}

fn read_route(span: &SpanView<'_>) -> Route {
    let mut read = new_dispatch(span, Origin::Inferred);
    let (mut id, mut worker_rank, mut phase, mut attempt) = (None, None, Phase::Unknown, 0);
    for attr in span.body.attrs().unread() {
        match attr.field {
            Field::RoutePhase => phase = Phase::of(attr.value().as_str().unwrap_or("")),
            Field::Attempt => attempt = number(attr.value()).unwrap_or(0),
            Field::RouteWorker => id = attr.value().as_u64(),
            Field::RouteRank => worker_rank = number(attr.value()),
            Field::RouterMode if read.route.is_empty() => read.route = text(attr.value()),
            Field::RouteOutcome => read.attempt_outcome = text(attr.value()),
            Field::ErrorType => read.error = text(attr.value()),
            Field::IsRetry => read.retry = attr.value().as_bool(),
            Field::MigrationReason => read.migration_reason = text(attr.value()),
            Field::FromWorker => read.from_worker = attr.value().as_u64(),
            Field::TokensCompleted => read.tokens_carried = attr.value().as_count(),
            _ => {}
        }
    }
    if read.route.is_empty() && span.name == "kv_router.route_request" {
        read.route = "kv".into();
    }
    Route { phase, number: attempt, worker: id.map(|id| Worker { id, rank: worker_rank }), dispatch: read }
}

/// Adds to an attempt what its route span tells; the dispatch's own word comes first.
fn join_route(dispatch: &mut Dispatch, read: Dispatch, worker: Option<Worker>) {
    let own = std::mem::take(&mut dispatch.route);
    *dispatch = Dispatch {
        span: dispatch.span,
        start_ns: dispatch.start_ns,
        duration_ns: dispatch.duration_ns,
        route: if own.is_empty() { read.route } else { own },
        worker: dispatch.worker.or(worker),
        result: std::mem::take(&mut dispatch.result),
        origin: dispatch.origin,
        ..read
    };
}

/// Gives the workers' admissions to the attempts they answered.
pub(super) fn admissions(spans: &[SpanView<'_>], legs: &mut Vec<Open>) {
    if !spans.iter().any(|span| span.stage == Stage::Admission) {
        return;
    }
    let mut owners: HashMap<u32, usize> = HashMap::new();
    for (place, open) in legs.iter().enumerate() {
        for span in [open.span, open.route].into_iter().flatten() {
            owners.entry(span).or_insert(place);
        }
    }
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.stage == Stage::Admission).take(MOST) {
        let mut read = Admission {
            span: span.id,
            transport: CompactString::default(),
            payload_bytes: None,
            result: CompactString::default(),
        };
        let (mut role, mut attempt) = (Phase::Unknown, 0);
        for attr in span.body.attrs().unread() {
            match attr.field {
                Field::Transport => read.transport = text(attr.value()),
                Field::PayloadBytes => read.payload_bytes = attr.value().as_count(),
                Field::AdmissionResult => read.result = text(attr.value()),
                Field::Role => role = attr.value().as_str().map_or(Phase::Unknown, Phase::of),
                Field::Attempt => attempt = number(attr.value()).unwrap_or(0),
                _ => {}
            }
        }
        // Up to its attempt; while the way there is broken, by attempt number and role, where they fit one leg alone: of
        // those that were sent or, while that is still to come (an attempt is told of when it ends), those that wait for it.
        let fits = |leg: &Leg| leg.attempt == attempt && leg.phase.fits_pool(role);
        let alone = |is_sent: bool| {
            let mut fitting = legs.iter().enumerate().inspect(|_| work::step()).filter(|(_, open)| {
                fits(&open.leg) && open.leg.dispatch.is_some() == is_sent && (is_sent || is_to_be_sent(&open.leg))
            });
            let (place, open) = fitting.next()?;
            (fitting.next().is_none() && open.leg.admission.is_none()).then_some(place)
        };
        match owner(spans, at as u32, &owners).or_else(|| alone(true)).or_else(|| alone(false)) {
            Some(place) => {
                let leg = &mut legs[place].leg;
                if leg.phase == Phase::Unknown && leg.dispatch.is_none() {
                    leg.phase = role;
                }
                leg.admission.get_or_insert_with(|| Box::new(read));
            }
            // The worker's spans came before the frontend's.
            None => {
                let leg = Leg { phase: role, attempt, admission: Some(Box::new(read)), ..Leg::default() };
                legs.push(Open { start_ns: span.start_ns, leg, span: None, route: None });
            }
        }
    }
}

/// Whether nothing says that a leg left the router otherwise than to a worker.
fn is_to_be_sent(leg: &Leg) -> bool {
    !leg.queue.as_ref().is_some_and(Queue::left_unserved)
}
