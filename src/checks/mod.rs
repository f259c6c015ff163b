//! Every invariant that a request's evidence must hold (spec checks.md): one small [`Check`] each, asked per request.
//!
//! Owns: the catalogue ([`ALL`]), what a check answers ([`Answer`], [`Finding`]), what must be known beyond one request
//! ([`Surroundings`], [`Run`]) and the comparison with a load generator ([`load`]). Keeps out: when requests are asked
//! (`store`), how answers are shown, the command line. Pure: the same request and surroundings give the same answers.
//!
//! - A check *holds*, is *violated*, or is *unknown*; unknown is never a pass. It is unknown where a stage it is about did
//!   not happen, where layout or mode do not record it, and where something it needs has not arrived or is known lost.
//! - A value that is none of its field's kind is as good as absent. What is absent violates the check that asks for it,
//!   and leaves those unknown that compare it; where the sender dropped attributes of the span, it leaves both unknown.
//! - What is missing violates only once the request is [`Moment::Settled`]; what is wrong violates at once.
//! - In the draft layout every deviation is a warning (spec checks.md).
//!
//! A new check is one row in its family's file and one line in [`ALL`].

mod admission;
mod around;
mod asked;
mod attr;
mod case;
mod dispatch;
#[cfg(test)]
mod fixture;
mod identity;
mod legs;
pub mod load;
mod missed;
mod mode;
#[cfg(test)]
mod needs;
mod places;
mod queue;
mod record;
mod root;
mod run;
mod scope;
mod selection;
mod stage;
mod time;
mod tree;
mod words;
mod worker;

use std::fmt;
use std::sync::Arc;

use hashbrown::HashSet;

use crate::lifecycle::account::{chunk, chunk_of, entry};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::request::RequestView;
use crate::lifecycle::stage::{Layout, Mode};
pub use around::{Nothing, Place, Surroundings, Twin};
pub use case::is_over;
use case::{Asked, Case};
pub use run::{Learned, Run};

/// How bad a violation is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Legal, and worth telling; never makes a check violated.
    Note,
    /// Unlikely in a healthy cluster, or a deviation that drafts and today's producers are known for.
    Warning,
    /// The evidence contradicts itself.
    Error,
}

impl Level {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The spec's letter: `E`, `W`, `–`.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Note => "–",
            Self::Warning => "W",
            Self::Error => "E",
        }
    }
}

/// Why a check cannot be told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// What it is about did not happen in this request.
    NotHere,
    /// The layout does not record it.
    Layout,
    /// The mode does not record it.
    Mode,
    /// Something it needs has not arrived yet.
    Arriving,
    /// Spans are known to be lost, dropped or sampled out.
    Lost,
    /// A value it needs was not recorded.
    Unsaid,
    /// No root has arrived.
    NoRoot,
    /// No `request_end` record has arrived.
    NoRecord,
    /// The worker exports no lifecycle spans, or was lost during the attempt.
    Silent,
    /// Today's producer is known to record it wrongly here; see the note.
    KnownFlaw,
    /// No load generator's list was given, or it does not know this request.
    NotCompared,
    /// It is answered for the whole run only.
    WholeRun,
    /// It has too many spans to be asked.
    TooLarge,
    /// What it is compared with was let go to stay within the memory.
    Forgotten,
}

impl Why {
    /// The reason as a person reads it.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotHere => "its stage is not part of this request",
            Self::Layout => "this layout does not record it",
            Self::Mode => "this mode does not record it",
            Self::Arriving => "not everything has arrived",
            Self::Lost => "spans are known to be lost",
            Self::Unsaid => "a value it needs was not recorded",
            Self::NoRoot => "no root has arrived",
            Self::NoRecord => "no request_end record has arrived",
            Self::Silent => "the worker exports no spans or was lost",
            Self::KnownFlaw => "today's producer is known to record it wrongly here",
            Self::NotCompared => "no load generator to compare with",
            Self::WholeRun => "answered for the whole run only",
            Self::TooLarge => "too large to be checked",
            Self::Forgotten => "what it is compared with is no longer remembered",
        }
    }
}

/// What a check says of a request. One byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// It holds.
    Holds,
    /// It is violated; the findings say how.
    Violated,
    /// It cannot be told.
    Unknown(Why),
}

/// Which check: an index into [`ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CheckId(pub u8);

impl CheckId {
    /// Its row.
    pub fn check(self) -> &'static Check {
        &ALL[usize::from(self.0)]
    }

    /// The check of this id, such as `queue.reason`.
    pub fn of(id: &str) -> Option<Self> {
        ALL.iter().position(|check| check.id == id).map(|at| Self(at as u8))
    }

    /// All, in the order of the catalogue.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ALL.len() as u8).map(Self)
    }
}

/// A violation, or a note: one sentence that names request, span, what was seen and what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The check that found it.
    pub check: CheckId,
    /// How bad it is; a check's own level, or less where the spec says so.
    pub level: Level,
    /// The trace of the span, when there is one.
    pub trace: Option<TraceId>,
    /// The span, when it is about one.
    pub span: Option<SpanId>,
    /// The sentence.
    pub message: Box<str>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.check.check().id, self.level.word(), self.message)
    }
}

/// Whether more may come for the request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// Spans and records may still be on their way: nothing is missing yet.
    Arriving,
    /// Its end is known and a grace period is over, or it is given up.
    Settled,
}

/// One row of the catalogue.
pub struct Check {
    /// `family.name`, as the spec writes it.
    pub id: &'static str,
    /// How bad a violation is at worst.
    pub level: Level,
    /// What must hold, in one line.
    pub what: &'static str,
    /// The layouts that record what it needs; elsewhere it is unknown.
    pub layouts: &'static [Layout],
    /// The modes that record what it needs; elsewhere it is unknown.
    pub modes: &'static [Mode],
    ask: fn(&Case<'_>, &mut Asked<'_, '_>),
}

impl Check {
    /// Why nothing can be said of a request of this layout and mode; `None` when it can be asked.
    fn silent_for(&self, facts: &Facts) -> Option<Why> {
        if !self.layouts.contains(&facts.layout) {
            Some(Why::Layout)
        } else if !self.modes.contains(&facts.mode) {
            Some(Why::Mode)
        } else {
            None
        }
    }

    /// Where it can be told: the layouts and modes that record what it needs, as the catalogue prints it.
    pub fn applies_to(&self) -> String {
        let layouts: Vec<&str> = self.layouts.iter().map(|layout| layout.word()).collect();
        let layouts = if self.layouts == ANY_LAYOUT { "all layouts".to_owned() } else { layouts.join(", ") };
        let modes: Vec<&str> = self.modes.iter().map(|mode| mode.word()).collect();
        let modes = if self.modes == ANY_MODE { "all modes".to_owned() } else { modes.join(", ") };
        format!("{layouts}; {modes}")
    }
}

/// Every layout.
const ANY_LAYOUT: &[Layout] = &[Layout::Base, Layout::Draft, Layout::Evidence];
/// The layouts with router spans and fields on the stages.
const DETAILED: &[Layout] = &[Layout::Draft, Layout::Evidence];
/// The reviewed layout alone.
const EVIDENCE: &[Layout] = &[Layout::Evidence];
/// Every mode, said or not.
const ANY_MODE: &[Mode] = &[Mode::Unsaid, Mode::Core, Mode::Investigation];

/// How many checks there are.
pub const COUNT: usize = 60;

/// Every check, in the spec's order.
pub static ALL: [Check; COUNT] = [
    root::UNIQUE,
    root::PARENT,
    root::START,
    root::OUTCOME,
    root::UNKNOWN,
    root::TERMINAL_TIME,
    root::TTFT,
    identity::COMPLETE,
    identity::SESSION,
    identity::OPERATION,
    tree::ROOTED,
    tree::ROUTE_NESTING,
    tree::COMPONENT,
    tree::LAYOUTS,
    tree::SPAN_COUNT,
    attr::SCHEMA,
    attr::REPEAT,
    attr::LIMIT_CHECK,
    mode::CORE,
    mode::INVESTIGATION,
    mode::MIXED,
    queue::FACTS,
    queue::REASON,
    queue::DEFERRAL,
    queue::REJECT_DEPTH,
    queue::REJECT_END,
    queue::CANCEL_END,
    queue::THEN_SELECTION,
    selection::ACCOUNTING,
    selection::ELIGIBLE,
    selection::COMPLETE,
    selection::BEST,
    selection::TIE,
    selection::TOP_K,
    dispatch::FACTS,
    dispatch::SELECTION,
    legs::ONE_TO_ONE,
    dispatch::ATTEMPTS,
    dispatch::LEGS,
    dispatch::SUCCESS,
    admission::RESULT,
    admission::WITNESS,
    admission::GATE,
    worker::ORDER,
    stage::PREPROCESSING,
    stage::STREAMING,
    stage::ABANDONED,
    stage::ORDER,
    time::ORDER,
    scope::ENDPOINTS,
    record::UNIQUE,
    record::PRESENT,
    record::TOKENS,
    record::HASHES,
    record::TIMES,
    record::FINISH,
    record::WORKERS,
    load::COUNT,
    load::REQUEST,
    load::TOKENS,
];

/// What every check says of one request: a byte each, and the findings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answers {
    answers: Arc<[Answer; COUNT]>,
    findings: Box<[Finding]>,
}

/// Answers kept once for all the requests that have them alike: nearly all of a kind do.
#[derive(Default)]
pub struct Alike(HashSet<Arc<[Answer; COUNT]>>);

impl Alike {
    /// Kinds that are kept at most; the answers of further ones stay their own.
    const MOST: usize = 1024;

    /// Makes these answers the ones that are kept.
    pub fn share(&mut self, answers: &mut Answers) {
        if self.0.len() >= Self::MOST {
            self.0.retain(|kept| Arc::strong_count(kept) > 1);
        }
        if let Some(kept) = self.0.get(&answers.answers) {
            answers.answers = Arc::clone(kept);
        } else if self.0.len() < Self::MOST {
            self.0.insert(Arc::clone(&answers.answers));
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = HashSet::new();
    }

    /// The bytes it takes, for accounting.
    pub fn memory(&self) -> usize {
        self.0.len() * (chunk_of::<Answer>(COUNT + 16) + entry::<Arc<[Answer; COUNT]>>())
    }
}

impl Answers {
    /// The answer of one check.
    pub fn of(&self, check: CheckId) -> Answer {
        self.answers[usize::from(check.0)]
    }

    /// Every check with its answer, in the order of the catalogue.
    pub fn iter(&self) -> impl Iterator<Item = (CheckId, Answer)> {
        CheckId::all().zip(*self.answers)
    }

    /// What was found: violations and notes, in the order of the catalogue.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether any check is violated.
    pub fn violated(&self) -> bool {
        self.answers.contains(&Answer::Violated)
    }

    /// The worst level among the violations; `None` when there is none.
    pub fn worst(&self) -> Option<Level> {
        self.findings.iter().map(|finding| finding.level).filter(|level| *level > Level::Note).max()
    }

    /// The bytes it takes beside its own size and what it shares, for accounting.
    pub fn heap_size(&self) -> usize {
        chunk_of::<Finding>(self.findings.len())
            + self.findings.iter().map(|finding| chunk(finding.message.len())).sum::<usize>()
    }
}

/// What is said of a request that is too large to be asked: every check that could be told is unknown, and a note says of
/// how many spans.
pub fn unasked(facts: &Facts) -> Answers {
    let mut answers = [Answer::Unknown(Why::TooLarge); COUNT];
    for (id, slot) in CheckId::all().zip(&mut answers) {
        if let Some(why) = id.check().silent_for(facts) {
            *slot = Answer::Unknown(why);
        }
    }
    let at = ALL.iter().position(|check| check.id == tree::SPAN_COUNT.id).unwrap_or(0);
    let message = format!("{}: {} spans are too many to be checked", named_of(facts, facts.trace), facts.spans);
    let note = Finding {
        check: CheckId(at as u8),
        level: Level::Note,
        trace: facts.trace,
        span: None,
        message: message.into(),
    };
    Answers { answers: Arc::new(answers), findings: [note].into() }
}

/// A request as a sentence begins with it: by its id, else by this trace.
fn named_of(facts: &Facts, trace: Option<TraceId>) -> String {
    match (&*facts.request_id, trace) {
        ("", Some(trace)) => format!("trace {trace}"),
        (id, _) => format!("request {id}"),
    }
}

/// Asks every check about one request. Costs a few tens of microseconds; the store asks when a request settles and again
/// when something for it arrives later.
pub fn answer(view: &RequestView<'_>, around: &dyn Surroundings, moment: Moment) -> Answers {
    let case = Case::new(view, around, moment);
    let mut findings = Vec::new();
    let mut answers = [Answer::Unknown(Why::NotHere); COUNT];
    for (id, slot) in CheckId::all().zip(&mut answers) {
        let check = id.check();
        *slot = if let Some(why) = check.silent_for(case.facts) {
            Answer::Unknown(why)
        } else {
            let mut asked = Asked::new(&case, id, &mut findings);
            (check.ask)(&case, &mut asked);
            asked.answer()
        };
    }
    Answers { answers: Arc::new(answers), findings: findings.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_whole_and_compact() {
        let ids: HashSet<_> = ALL.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), COUNT);
        for (at, check) in ALL.iter().enumerate() {
            assert_eq!(CheckId::of(check.id), Some(CheckId(at as u8)));
            assert!(check.id.contains('.') && !check.what.is_empty() && !check.what.contains('\n'), "{}", check.id);
            assert!(!check.layouts.is_empty() && !check.modes.is_empty(), "{}", check.id);
        }
        assert_eq!(CheckId::of("queue.nothing"), None);
        assert_eq!(root::UNIQUE.applies_to(), "all layouts; all modes");
        assert_eq!(selection::TOP_K.applies_to(), "draft, evidence; investigation");
        assert_eq!(size_of::<Answer>(), 1);
    }
}
