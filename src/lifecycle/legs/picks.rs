//! Picks: the waits and choices of a request, put together from router spans in and outside its tree.

use compact_str::CompactString;

use super::{MOST, number};
use crate::lifecycle::assemble::text;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Choice, Queue, Selection};
use crate::lifecycle::ids::{SpanId, Worker};
use crate::lifecycle::request::{SpanView, Up};
use crate::lifecycle::stage::{Origin, Phase, Stage};

/// What stands under one `kv_router.select_worker`.
pub(super) struct Pick {
    key: PickKey,
    pub start_ns: u64,
    pub attempt: Option<u32>,
    pub queue: Option<Queue>,
    pub selection: Option<Box<Selection>>,
}

/// What holds a pick together: the topmost router span above its parts, or the parent they name while that is missing.
#[derive(PartialEq, Clone, Copy)]
enum PickKey {
    Above(u32),
    Missing(SpanId),
    Alone(u32),
}

impl Pick {
    /// Whether its choice was this worker.
    pub fn chose(&self, worker: Worker) -> bool {
        let selected = self.selection.as_ref().and_then(|selection| selection.selected);
        selected.is_some_and(|selected| selected.worker.agrees(worker))
    }

    /// The pool it chose from.
    pub fn pool(&self) -> Phase {
        self.selection.as_ref().map_or(Phase::Unknown, |selection| selection.pool)
    }
}

/// The picks of a request, by start.
pub(super) fn picks(spans: &[SpanView<'_>]) -> Vec<Pick> {
    let mut picks: Vec<Pick> = Vec::new();
    let mut detached: Vec<u32> = Vec::new();
    let is_part = |span: &SpanView<'_>| matches!(span.stage, Stage::Schedule | Stage::Queue | Stage::Selection);
    for (at, span) in spans.iter().enumerate().filter(|(_, span)| is_part(span)).take(MOST) {
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
    // Drafts wrote router spans as traces of their own: each fills the last pick begun before it that lacks it.
    for at in detached {
        let span = &spans[at as usize];
        let number = span.get(Field::Attempt).and_then(number);
        let free = |pick: &Pick| {
            let open = match span.stage {
                Stage::Queue => pick.queue.as_ref().is_none_or(|queue| queue.origin == Origin::Inferred),
                _ => pick.selection.is_none(),
            };
            open && (pick.attempt.is_none() || number.is_none() || pick.attempt == number)
        };
        let begun = |pick: &Pick| pick.start_ns <= span.start_ns && free(pick);
        match picks.iter().rposition(begun).or_else(|| picks.iter().position(free)) {
            Some(found) => take_part(&mut picks[found], span),
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
        // Without its times it tells no wait (field case B33).
        Stage::Schedule if span.start_ns == 0 => {}
        Stage::Schedule => {
            pick.queue.get_or_insert_with(|| inferred_queue(span));
        }
        Stage::Queue => {
            let (read, attempt) = queue(span);
            if pick.queue.as_ref().is_none_or(|queue| queue.origin == Origin::Inferred) {
                pick.queue = Some(read);
            }
            pick.attempt = pick.attempt.or(attempt);
        }
        _ => {
            let (read, attempt) = selection(span);
            pick.selection.get_or_insert_with(|| Box::new(read));
            pick.attempt = pick.attempt.or(attempt);
        }
    }
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

/// A wait, and the attempt it was for.
fn queue(span: &SpanView<'_>) -> (Queue, Option<u32>) {
    let mut queue = Queue { origin: Origin::Span, ..inferred_queue(span) };
    let mut attempt = None;
    for attr in span.body.attrs().unread() {
        match attr.field {
            Field::QueueClass => queue.class = text(attr.value()),
            Field::QueuePolicy => queue.policy = text(attr.value()),
            Field::DepthIn => queue.depth_in = attr.value().as_count(),
            Field::DepthOut => queue.depth_out = attr.value().as_count(),
            Field::Deferred => queue.deferred = attr.value().as_bool(),
            Field::QueueOutcome => queue.outcome = text(attr.value()),
            Field::QueueReason => queue.reason = text(attr.value()),
            Field::Attempt => attempt = number(attr.value()),
            _ => {}
        }
    }
    // Drafts wrote deferred=true on every queue span (spec lifecycle-spans §3): there it says nothing.
    if queue.outcome == "admitted" && queue.reason.is_empty() {
        queue.deferred = None;
    }
    (queue, attempt)
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

/// A choice, and the attempt it was for.
fn selection(span: &SpanView<'_>) -> (Selection, Option<u32>) {
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
    let (mut selected, mut best, mut attempt) = (ChoiceIn::default(), ChoiceIn::default(), None);
    for attr in span.body.attrs().unread() {
        let value = attr.value();
        match attr.field {
            Field::Candidates => read.candidates = value.as_count(),
            Field::Eligible => read.eligible = value.as_count(),
            Field::Filtered => read.filtered = value.as_count(),
            Field::FilteredNotAllowed => read.filtered_parts[0] = value.as_count(),
            Field::FilteredConstraints => read.filtered_parts[1] = value.as_count(),
            Field::FilteredOverloaded => read.filtered_parts[2] = value.as_count(),
            Field::FilteredUnavailable => read.filtered_parts[3] = value.as_count(),
            Field::FilteredPolicy => read.filtered_parts[4] = value.as_count(),
            Field::SelectionPolicy => read.policy = text(value),
            Field::Pool => read.pool = Phase::of(value.as_str().unwrap_or("")),
            Field::SelectedWorker => selected.id = value.as_u64(),
            Field::SelectedRank => selected.rank = number(value),
            Field::SelectedScore => selected.cost = value.as_f64(),
            Field::BestWorker => best.id = value.as_u64(),
            Field::BestRank => best.rank = number(value),
            Field::BestScore => best.cost = value.as_f64(),
            Field::Margin => read.margin = value.as_f64(),
            Field::Attempt => attempt = number(value),
            _ => {}
        }
    }
    read.selected = selected.choice();
    read.best = best.choice();
    (read, attempt)
}
