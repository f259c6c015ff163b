//! The rows of a request's tree, as a waterfall.
//!
//! Owns: which rows are open, what each says about its span in one line. Rows are known by trace and span id, so that
//! what is chosen and folded stays so while parents arrive (field case B34).

use std::collections::HashSet;

use super::axis::{Axis, Oddity, Placed};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Leg, State};
use crate::lifecycle::ids::{SpanId, TraceId, Worker};
use crate::lifecycle::request::{Node, RequestView, SpanView, TreeRow, Up};
use crate::lifecycle::stage::{Origin, Phase, Stage};
use crate::view::list::{from, margin_piece};
use crate::view::{Line, Piece, Tone, format};

/// What a row stands for, whatever place it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeId {
    /// A span.
    Span(TraceId, SpanId),
    /// A parent that has not arrived.
    Missing(SpanId),
}

impl NodeId {
    /// The id of a row.
    pub fn of(node: Node, request: &RequestView<'_>) -> Self {
        match node {
            Node::Span(index) => {
                let span = &request.spans[index as usize];
                Self::Span(span.trace, span.id)
            }
            Node::Missing(id) => Self::Missing(id),
        }
    }

    /// Its span id.
    pub fn span_id(self) -> SpanId {
        match self {
            Self::Span(_, id) | Self::Missing(id) => id,
        }
    }

    /// Its span, when it has arrived.
    pub fn find<'r, 'a>(self, request: &'r RequestView<'a>) -> Option<&'r SpanView<'a>> {
        match self {
            Self::Span(trace, id) => request.spans.iter().find(|span| span.trace == trace && span.id == id),
            Self::Missing(_) => None,
        }
    }
}

/// Whether what is below a row is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Nothing is below.
    Leaf,
    /// Shown.
    Open,
    /// Hidden: so many rows.
    Closed(u32),
}

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeLine {
    /// What it stands for.
    pub id: NodeId,
    /// How deep.
    pub depth: u32,
    /// What is below.
    pub fold: Fold,
    /// The span's name.
    pub name: Piece,
    /// Where it ran or went to.
    pub place: Piece,
    /// Phase and attempt.
    pub leg: Piece,
    /// Where it stands on the axis; `None` for a parent that has not arrived.
    pub bar: Option<Placed>,
    /// The tone of its bar.
    pub tone: Tone,
    /// How long it took, what it came to, what is odd.
    pub note: Line,
}

/// The rows that are not hidden below a folded one.
pub fn open_rows(request: &RequestView<'_>, folded: &HashSet<NodeId>) -> Vec<TreeRow> {
    let rows = request.tree();
    if folded.is_empty() {
        return rows;
    }
    let mut open = Vec::with_capacity(rows.len());
    let mut index = 0;
    while let Some(row) = rows.get(index) {
        open.push(*row);
        let hidden = if folded.contains(&NodeId::of(row.node, request)) { row.below as usize } else { 0 };
        index += 1 + hidden;
    }
    open
}

/// The line of one row.
pub fn line(row: TreeRow, request: &RequestView<'_>, folded: &HashSet<NodeId>, axis: &Axis) -> TreeLine {
    let id = NodeId::of(row.node, request);
    let fold = match row.below {
        0 => Fold::Leaf,
        below if folded.contains(&id) => Fold::Closed(below),
        _ => Fold::Open,
    };
    let blank = TreeLine {
        id,
        depth: row.depth,
        fold,
        name: Piece::default(),
        place: Piece::default(),
        leg: Piece::default(),
        bar: None,
        tone: Tone::Plain,
        note: Vec::new(),
    };
    match row.node {
        Node::Missing(id) => TreeLine {
            name: Piece::new(format!("◌ waiting for parent {id}"), Tone::Warn),
            note: vec![Piece::dim(format!("{} below it arrived first", row.below))],
            ..blank
        },
        Node::Span(index) => {
            let span = &request.spans[index as usize];
            let placed = axis.place(span, request);
            let (phase, origin) = phase(span, request);
            TreeLine {
                name: Piece::plain(span.name),
                place: place(span),
                leg: leg(span, phase, origin),
                tone: tone(span.stage, phase),
                note: note(span, request, &placed),
                bar: Some(placed),
                ..blank
            }
        }
    }
}

/// The phase that a span says, or that the nearest span above it says, and where that is from.
fn phase(span: &SpanView<'_>, request: &RequestView<'_>) -> (Phase, Origin) {
    let mut at = span;
    // Far enough for every real tree; a hostile chain of thousands costs no more.
    for _ in 0..16 {
        let own = own_phase(at, request);
        if own.0 != Phase::Unknown {
            return own;
        }
        match at.up {
            Up::At(index) => at = &request.spans[index as usize],
            _ => break,
        }
    }
    (Phase::Unknown, Origin::Span)
}

fn own_phase(span: &SpanView<'_>, request: &RequestView<'_>) -> (Phase, Origin) {
    let of_leg = |is_its: &dyn Fn(&Leg) -> bool| {
        let leg = request.facts.legs.iter().find(|leg| is_its(leg));
        leg.map(|leg| (leg.phase, leg.phase_origin))
    };
    let unsaid = (Phase::Unknown, Origin::Span);
    let said = match span.stage {
        Stage::Dispatch if span.text(Field::DispatchPhase).is_empty() => {
            let is_its = |leg: &Leg| leg.dispatch.as_ref().is_some_and(|dispatch| dispatch.span == span.id);
            return of_leg(&is_its).unwrap_or(unsaid);
        }
        Stage::Dispatch => Phase::of(span.text(Field::DispatchPhase)),
        Stage::Route => Phase::of(span.text(Field::RoutePhase)),
        Stage::Operation | Stage::WorkerStreaming => Phase::of(span.name.rsplit('.').next().unwrap_or_default()),
        Stage::Engine => Phase::of(span.text(Field::DisaggRole)),
        Stage::Queue | Stage::Schedule => {
            return of_leg(&|leg| leg.queue.as_ref().is_some_and(|queue| queue.span == span.id)).unwrap_or(unsaid);
        }
        Stage::Selection => {
            let is_its = |leg: &Leg| leg.selection.as_ref().is_some_and(|choice| choice.span == Some(span.id));
            match of_leg(&is_its).filter(|(phase, _)| *phase != Phase::Unknown) {
                Some(known) => return known,
                None => Phase::of(span.text(Field::Pool)),
            }
        }
        _ => Phase::Unknown,
    };
    (said, Origin::Span)
}

fn tone(stage: Stage, phase: Phase) -> Tone {
    match stage {
        Stage::Queue | Stage::Schedule => Tone::Queue,
        Stage::Streaming | Stage::WorkerStreaming => Tone::Streaming,
        Stage::Http | Stage::Root | Stage::Preprocessing | Stage::Completions => Tone::Plain,
        _ => Tone::of_phase(phase),
    }
}

fn worker(span: &SpanView<'_>, id: Field, rank: Field) -> Option<Worker> {
    let rank = span.number(rank).and_then(|rank| u32::try_from(rank).ok());
    Some(Worker { id: span.number(id)?, rank })
}

fn place(span: &SpanView<'_>) -> Piece {
    let to = match span.stage {
        Stage::Dispatch => worker(span, Field::DestinationWorker, Field::DestinationRank),
        Stage::Route => worker(span, Field::RouteWorker, Field::RouteRank),
        _ => None,
    };
    if let Some(to) = to {
        return Piece::plain(format!("→ {}", to.short()));
    }
    let (service, _) = span.process();
    let instance = span.text(Field::Instance);
    Piece::dim(if instance.is_empty() { service } else { instance })
}

fn leg(span: &SpanView<'_>, phase: Phase, origin: Origin) -> Piece {
    if phase == Phase::Unknown {
        return Piece::default();
    }
    let attempt = match span.stage {
        Stage::Dispatch | Stage::Route | Stage::Queue | Stage::Selection => span.number(Field::Attempt),
        _ => None,
    };
    let attempt = attempt.map_or(String::new(), |attempt| format!(" a{attempt}"));
    Piece::new(format!("{}{attempt}", from(origin, phase.word())), Tone::of_phase(phase))
}

fn note(span: &SpanView<'_>, request: &RequestView<'_>, placed: &Placed) -> Line {
    let mut note = Vec::new();
    if placed.running && request.facts.state == State::InFlight {
        note.push(Piece::new("running", Tone::Running));
    } else if span.end_ns == 0 {
        note.push(Piece::new("not ended", Tone::Warn));
    } else {
        note.push(Piece::plain(format::duration(span.duration_ns())));
    }
    note.extend(result(span));
    for oddity in &placed.oddities {
        let text = match oddity {
            Oddity::NoStart if span.end_ns == 0 => "no times".into(),
            Oddity::NoStart => "start not known".into(),
            Oddity::Unlikely => "unlikely time".into(),
            Oddity::EndBeforeStart => "ends before it starts".into(),
            Oddity::BeforeParent(ns) => format!("starts {} before its parent", format::duration(*ns)),
            Oddity::AfterParent(ns) => format!("starts {} after its parent ended", format::duration(*ns)),
        };
        note.push(Piece::new(text, Tone::Warn));
    }
    match span.up {
        Up::Cycle => note.push(Piece::new("its parents lead back to it", Tone::Warn)),
        Up::Elsewhere => note.push(Piece::dim("parent in another request")),
        _ => {}
    }
    let dropped: u64 = span.body.head().dropped.iter().map(|count| u64::from(*count)).sum();
    if dropped > 0 {
        note.push(Piece::new(format!("{} dropped by the sender", format::count(dropped)), Tone::Warn));
    }
    if request.facts.trace.is_some_and(|trace| trace != span.trace) && span.up == Up::Top {
        note.push(Piece::dim(format!("trace {}", span.trace)));
    }
    note
}

/// What the stage came to, in a word or two.
fn result(span: &SpanView<'_>) -> Line {
    let word = |text: &str, good: &[&str]| {
        let tone = if good.contains(&text) { Tone::Dim } else { Tone::Warn };
        (!text.is_empty()).then(|| Piece::new(text.replace('_', " "), tone))
    };
    match span.stage {
        Stage::Root => word(span.text(Field::Outcome), &["success"]).into_iter().collect(),
        Stage::Preprocessing => word(span.text(Field::StageOutcome), &["success"]).into_iter().collect(),
        Stage::Queue => {
            let outcome = word(span.text(Field::QueueOutcome), &["dequeued", "admitted"]);
            let reason = span.text(Field::QueueReason);
            let reason = (!reason.is_empty()).then(|| Piece::new(reason, Tone::Queue));
            outcome.filter(|piece| piece.tone == Tone::Warn || reason.is_none()).into_iter().chain(reason).collect()
        }
        Stage::Selection => {
            let chosen = worker(span, Field::SelectedWorker, Field::SelectedRank);
            let number = |field| span.get(field).and_then(crate::lifecycle::packed::Value::as_f64);
            chosen
                .map(|chosen| Piece::plain(chosen.short()))
                .into_iter()
                .chain(number(Field::SelectedScore).map(|cost| Piece::plain(format::cost(cost))))
                .chain(number(Field::Margin).map(|margin| {
                    let shown = margin_piece(margin, span.counted(Field::Candidates));
                    let text = if margin == 0.0 { shown.text } else { format!("margin {}", shown.text) };
                    Piece { text, ..shown }
                }))
                .collect()
        }
        Stage::Dispatch => match span.text(Field::DispatchResult) {
            "" if span.text(Field::DispatchPhase).is_empty() => Vec::new(),
            "" => vec![Piece::new("no result", Tone::Warn)],
            result => word(result, &["accepted"]).into_iter().collect(),
        },
        Stage::Route => {
            let carried = span.counted(Field::TokensCompleted).filter(|count| *count > 0);
            let carried = carried.map(|count| Piece::plain(format!("{} tokens carried", format::count(count))));
            word(span.text(Field::RouteOutcome), &["success"]).into_iter().chain(carried).collect()
        }
        Stage::Admission => {
            let payload = span.counted(Field::PayloadBytes).map(|size| Piece::dim(format::bytes(size)));
            word(span.text(Field::AdmissionResult), &["accepted"]).into_iter().chain(payload).collect()
        }
        Stage::Streaming => {
            let events = span.counted(Field::StreamEvents);
            let events = events.map(|count| Piece::plain(format!("{} events", format::count(count))));
            events.into_iter().chain(word(span.text(Field::StageOutcome), &["success"])).collect()
        }
        _ => Vec::new(),
    }
}
