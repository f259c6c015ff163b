//! The load generator's side (spec request-trace.md): what it saw of each request, compared with what the roots say.
//!
//! Owns: the generator's list in one form ([`LoadRecord`]), the readers of AIPerf's files ([`aiperf`]) and of a small
//! JSON ledger ([`ledger`]), the verdict on one request ([`judge`]) and the comparison of a whole run ([`compare`]).
//! Keeps out: opening files. Requests are joined by the client's own id, never by time.

pub mod aiperf;
mod compare;
pub mod ledger;

use compact_str::CompactString;

use super::case::{Asked, Case, said};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::stage::Outcome;
use crate::lifecycle::text;
pub use compare::{Comparison, Disagreement, PhaseCounts, compare};

/// How a request ended for the client that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No error.
    Success,
    /// It left: code 499, or marked as cancelled.
    Cancelled,
    /// An HTTP status that tells of an error.
    Code(u16),
    /// Its own time-out: it left.
    ClientTimeout,
    /// The answer broke before its first token.
    Invalid,
    /// Its stream broke after HTTP 200, and the client saw it.
    Broken,
    /// Nobody listened.
    Refused,
    /// Another error, by its type.
    Other(CompactString),
}

/// Tokens as the answer's usage counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `usage_prompt_tokens`.
    pub prompt: Option<u64>,
    /// `usage_completion_tokens`.
    pub completion: Option<u64>,
    /// `usage_prompt_cache_read_tokens`.
    pub cached: Option<u64>,
}

/// One request of the load generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRecord {
    /// The client's own id, sent along as `x-request-id`.
    pub x_request_id: CompactString,
    /// Its benchmark phase: `warmup`, `profiling`, …; empty when there is one only.
    pub phase: CompactString,
    /// How it ended.
    pub seen: Seen,
    /// What it cost.
    pub usage: Usage,
    /// When it ended by the client's clock, Unix nanoseconds; not to be compared with other clocks but for phases' ends.
    pub end_ns: Option<u64>,
    /// How long it ran by that clock, nanoseconds.
    pub ran_ns: Option<u64>,
}

/// A benchmark phase, as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPhase {
    /// Its name.
    pub phase: CompactString,
    /// When, Unix nanoseconds; `None` when it was cut off without a note.
    pub end_ns: Option<u64>,
    /// How many requests were finished in it, when that is told.
    pub requests: Option<u64>,
}

/// A load generator's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadList {
    /// Every finished request.
    pub records: Vec<LoadRecord>,
    /// The phases, when known.
    pub phases: Vec<LoadPhase>,
}

impl LoadList {
    /// Phases of which the list has not the requests that the manifest beside it counts, in sentences: what those were is not
    /// known.
    pub fn gaps(&self) -> Vec<String> {
        let gap = |phase: &LoadPhase| {
            let listed = self.records.iter().filter(|record| record.phase == phase.phase).count() as u64;
            let counted = phase.requests.filter(|counted| *counted != listed)?;
            let name = &phase.phase;
            Some(format!(
                "the load generator's list has {listed} requests of phase {name:?}, its manifest counts {counted}: \
                 expected one count, what is not listed is not compared"
            ))
        };
        self.phases.iter().filter_map(gap).collect()
    }
}

/// A legal difference between the two sides, by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Class {
    /// In flight when the phase or the run ended: a root without a record.
    CutOff,
    /// Cancelled at once, so that it never reached the frontend, or nobody listened: a record without a request.
    NeverReached,
    /// The stream ended just before the cancel.
    Race,
    /// The stream broke after HTTP 200, which the client takes for success: the root is to be believed.
    BrokenAfter200,
    /// The client's own time-out, which the frontend sees as leaving.
    ClientTimeout,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 5] =
        [Self::CutOff, Self::NeverReached, Self::Race, Self::BrokenAfter200, Self::ClientTimeout];

    /// The name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::CutOff => "cut off",
            Self::NeverReached => "never reached",
            Self::Race => "race",
            Self::BrokenAfter200 => "broken after 200",
            Self::ClientTimeout => "client time-out",
        }
    }
}

/// A text of a file as it may be kept and shown.
fn clean(text: &str) -> CompactString {
    CompactString::from(text::scrub(text.as_bytes()))
}

/// What the two sides of one request come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They agree.
    Agree,
    /// They differ in a way that has a name.
    Named(Class),
    /// They contradict each other.
    Disagree,
    /// There is nothing to compare: the endpoint makes no root.
    Nothing,
    /// The root has not arrived.
    Waiting,
}

impl Seen {
    /// The outcome it stands for, in the root's words; `None` when there may be several.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Success => Some(Outcome::Success),
            Self::Cancelled | Self::ClientTimeout | Self::Code(499) => Some(Outcome::Cancelled),
            Self::Code(504) => Some(Outcome::TimedOut),
            Self::Code(400..=498 | 503 | 529) => Some(Outcome::Rejected),
            Self::Code(500..) => Some(Outcome::Failed),
            Self::Code(_) | Self::Invalid | Self::Broken | Self::Refused | Self::Other(_) => None,
        }
    }

    /// The word in reports.
    pub fn word(&self) -> String {
        match self {
            Self::Code(code) => match self.outcome() {
                Some(outcome) => format!("{} ({code})", outcome.word()),
                None => format!("code {code}"),
            },
            Self::Success => "success".into(),
            Self::Cancelled => "cancelled".into(),
            Self::ClientTimeout => "client time-out".into(),
            Self::Invalid => "broken before the first token".into(),
            Self::Broken => "a broken stream".into(),
            Self::Refused => "connection refused".into(),
            Self::Other(kind) if kind.is_empty() => "an error without a name".into(),
            Self::Other(kind) => kind.to_string(),
        }
    }
}

/// What was cancelled sooner may never have reached the frontend: nothing is waited for there, but a generator under load
/// takes its time.
const AT_ONCE_NS: u64 = 250_000_000;

/// Compares the two sides of one request by the table of spec request-trace.md; `request` is `None` when none with this
/// client id is known, `status` the HTTP status that its spans tell.
pub fn judge(record: &LoadRecord, request: Option<&Facts>, status: impl Fn() -> Option<u64>) -> Verdict {
    use Outcome::{Cancelled, Failed, Rejected, Success, TimedOut};
    let Some(facts) = request else {
        let at_once = record.ran_ns.is_none_or(|ran_ns| ran_ns < AT_ONCE_NS);
        return match record.seen {
            Seen::Refused => Verdict::Named(Class::NeverReached),
            Seen::Cancelled | Seen::Code(499) if at_once => Verdict::Named(Class::NeverReached),
            _ => Verdict::Disagree,
        };
    };
    let Some(root) = facts.outcome else {
        let rootless = !facts.endpoint.is_empty() && !facts.endpoint.contains("chat");
        return if rootless { Verdict::Nothing } else { Verdict::Waiting };
    };
    match (&record.seen, root) {
        (Seen::Success, Success) => Verdict::Agree,
        (Seen::Success, Rejected | TimedOut | Failed)
            if record.usage.completion.is_none() && status().is_none_or(|status| status == 200) =>
        {
            Verdict::Named(Class::BrokenAfter200)
        }
        (Seen::Cancelled | Seen::Code(499), Cancelled) => Verdict::Agree,
        (Seen::Cancelled | Seen::Code(499), Success) => Verdict::Named(Class::Race),
        (Seen::ClientTimeout, Cancelled) => Verdict::Named(Class::ClientTimeout),
        (Seen::Invalid, Rejected | Failed) | (Seen::Broken, Rejected | TimedOut | Failed) => Verdict::Agree,
        (seen @ Seen::Code(_), root) if seen.outcome() == Some(root) => Verdict::Agree,
        _ => Verdict::Disagree,
    }
}

/// Usage counts that both sides have: name, the client's, the cluster's.
fn counted_tokens(record: &LoadRecord, facts: &Facts) -> impl Iterator<Item = (&'static str, u64, u64)> {
    let usage = &record.usage;
    [
        ("output", usage.completion, facts.output_tokens),
        ("input", usage.prompt, facts.input_tokens),
        ("cached", usage.cached, facts.cached_tokens),
    ]
    .into_iter()
    .filter_map(|(name, client, cluster)| Some((name, client?, cluster?)))
}

/// Those of them that differ, on successes.
pub fn unequal_tokens(record: &LoadRecord, facts: &Facts) -> Vec<(&'static str, u64, u64)> {
    counted_tokens(record, facts).filter(|(_, client, cluster)| client != cluster).collect()
}

pub(super) const COUNT: Check = Check {
    id: "load.count",
    level: Level::Error,
    what: "per phase, requests by outcome equal the load generator's after the named classes (answered per run)",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: |_, asked| asked.unknown(Why::WholeRun),
};

/// The generator's record of a request; says why when there is none.
fn record_of<'c>(case: &'c Case<'_>, asked: &mut Asked<'_, '_>) -> Option<&'c LoadRecord> {
    let record = case.around.load(&case.facts.x_request_id).filter(|_| !case.facts.x_request_id.is_empty());
    if record.is_none() {
        asked.unknown(Why::NotCompared);
    }
    record
}

pub(super) const REQUEST: Check = Check {
    id: "load.request",
    level: Level::Error,
    what: "the outcome agrees with the load generator's, or differs in a way that has a name",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: request,
};

fn request(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(record) = record_of(case, asked) else { return };
    match judge(record, Some(case.facts), || case.view.http_status()) {
        Verdict::Nothing => {}
        Verdict::Waiting => asked.unknown(Why::NoRoot),
        verdict => {
            asked.expect_at(Level::Error, case.root(), verdict != Verdict::Disagree, || {
                let (root, client) = (case.facts.outcome_text(), record.seen.word());
                format!("ended {root}, the load generator's {} {client}: expected one outcome", record.x_request_id)
            });
            if let Verdict::Named(class) = verdict {
                let (root, client) = (case.facts.outcome_text(), record.seen.word());
                asked.note(case.root(), format!("ended {root}, the load generator saw {client}: {}", class.word()));
            }
        }
    }
}

pub(super) const TOKENS: Check = Check {
    id: "load.tokens",
    level: Level::Error,
    what: "on successes the load generator's usage counts equal the spans' and the record's",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: tokens,
};

fn tokens(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(record) = record_of(case, asked) else { return };
    if !case.succeeded() || record.seen != Seen::Success {
        return;
    }
    // A client may not count what came from the cache; the others both sides have to say.
    let Usage { prompt, completion, cached } = record.usage;
    let said_by_both = [(prompt, case.facts.input_tokens), (completion, case.facts.output_tokens)];
    if said_by_both.iter().any(|(client, cluster)| client.is_none() || cluster.is_none())
        || (cached.is_some() && case.facts.cached_tokens.is_none())
    {
        asked.unknown(Why::Unsaid);
    }
    let unequal = unequal_tokens(record, case.facts);
    asked.expect_at(Level::Error, case.root(), unequal.is_empty(), || {
        let unequal: Vec<_> = unequal
            .iter()
            .map(|(name, client, cluster)| format!("{cluster} {name} (the load generator {client})"))
            .collect();
        let session = said(Some(&record.x_request_id));
        format!("counts {} tokens for {session}, expected equal counts", unequal.join(", "))
    });
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Scene, violates};
    use super::super::{Answer, CheckId, Moment, Nothing, Surroundings};
    use super::*;

    struct Generator(LoadRecord);

    impl Surroundings for Generator {
        fn load(&self, x_request_id: &str) -> Option<&LoadRecord> {
            (x_request_id == self.0.x_request_id).then_some(&self.0)
        }
    }

    fn saw(seen: Seen, completion: Option<u64>) -> Generator {
        let usage = Usage { prompt: Some(33), completion, cached: None };
        Generator(LoadRecord {
            x_request_id: "x".into(),
            phase: "profiling".into(),
            seen,
            usage,
            end_ns: None,
            ran_ns: None,
        })
    }

    fn scene() -> Scene {
        Scene::aggregated().set("http-request", "x_request_id", "x")
    }

    fn ask(scene: &Scene, around: &dyn Surroundings, id: &str) -> (Answer, super::super::Answers) {
        let answers = scene.answers(around, Moment::Settled);
        (answers.of(CheckId::of(id).unwrap()), answers)
    }

    #[test]
    fn count_is_the_runs() {
        assert_eq!(ask(&scene(), &Nothing, "load.count").0, Answer::Unknown(Why::WholeRun));
    }

    #[test]
    fn request() {
        let id = "load.request";
        assert_eq!(ask(&scene(), &saw(Seen::Success, Some(8)), id).0, Answer::Holds);
        let (answer, answers) = ask(&scene(), &saw(Seen::Code(529), None), id);
        violates(answer, &answers, id, Level::Error, "ended success, the load generator's x rejected (529)");
        let (answer, answers) = ask(&scene(), &saw(Seen::Cancelled, None), id);
        assert_eq!(answer, Answer::Holds);
        assert!(answers.findings().iter().any(|finding| finding.message.contains("race")));
        assert_eq!(ask(&scene(), &Nothing, id).0, Answer::Unknown(Why::NotCompared));
        let rootless = scene().lose("request.lifecycle");
        assert_eq!(ask(&rootless, &saw(Seen::Success, None), id).0, Answer::Unknown(Why::NoRoot));
    }

    #[test]
    fn tokens() {
        let id = "load.tokens";
        assert_eq!(ask(&scene(), &saw(Seen::Success, Some(8)), id).0, Answer::Holds);
        let (answer, answers) = ask(&scene(), &saw(Seen::Success, Some(9)), id);
        violates(answer, &answers, id, Level::Error, "counts 8 output (the load generator 9) tokens");
        assert_eq!(ask(&scene(), &Nothing, id).0, Answer::Unknown(Why::NotCompared));
        assert_eq!(ask(&scene(), &saw(Seen::Cancelled, None), id).0, Answer::Unknown(Why::NotHere));
    }

    /// A request that was cancelled while it ran must have reached the frontend.
    #[test]
    fn only_what_was_cancelled_at_once_may_never_have_reached_the_frontend() {
        for (ran_ms, expected) in [(None, true), (Some(3), true), (Some(300), false)] {
            let record = LoadRecord { ran_ns: ran_ms.map(|ms: u64| ms * 1_000_000), ..saw(Seen::Cancelled, None).0 };
            let never = judge(&record, None, || None) == Verdict::Named(Class::NeverReached);
            assert_eq!(never, expected, "{ran_ms:?}");
        }
    }

    /// What was answered with an error from the start did not break after 200.
    #[test]
    fn a_success_that_was_answered_with_an_error_is_none() {
        let (claim, facts) =
            (saw(Seen::Success, None).0, Facts { outcome: Some(Outcome::Rejected), ..Facts::default() });
        for (status, expected) in [
            (None, Verdict::Named(Class::BrokenAfter200)),
            (Some(200), Verdict::Named(Class::BrokenAfter200)),
            (Some(529), Verdict::Disagree),
        ] {
            assert_eq!(judge(&claim, Some(&facts), || status), expected, "{status:?}");
        }
    }

    #[test]
    fn the_table_of_the_spec() {
        use Verdict::{Agree, Disagree, Named};
        let judged = |seen: Seen, completion, root: Option<Outcome>| {
            let facts = root.map(|root| Facts { outcome: Some(root), ..Facts::default() });
            judge(&saw(seen, completion).0, facts.as_ref(), || None)
        };
        let (success, cancelled) = (Some(Outcome::Success), Some(Outcome::Cancelled));
        let (rejected, timed_out) = (Some(Outcome::Rejected), Some(Outcome::TimedOut));
        for (seen, completion, root, expected) in [
            (Seen::Success, Some(3), success, Agree),
            (Seen::Success, None, timed_out, Named(Class::BrokenAfter200)),
            (Seen::Success, None, rejected, Named(Class::BrokenAfter200)),
            (Seen::Success, Some(3), rejected, Disagree),
            (Seen::Cancelled, None, cancelled, Agree),
            (Seen::Cancelled, None, success, Named(Class::Race)),
            (Seen::Cancelled, None, None, Named(Class::NeverReached)),
            (Seen::Cancelled, None, rejected, Disagree),
            (Seen::Code(404), None, rejected, Agree),
            (Seen::Code(503), None, rejected, Agree),
            (Seen::Code(529), None, success, Disagree),
            (Seen::Code(504), None, timed_out, Agree),
            (Seen::ClientTimeout, None, cancelled, Named(Class::ClientTimeout)),
            (Seen::Invalid, None, rejected, Agree),
            (Seen::Invalid, None, Some(Outcome::Failed), Agree),
            (Seen::Refused, None, None, Named(Class::NeverReached)),
            // It waited for an answer.
            (Seen::ClientTimeout, None, None, Disagree),
            (Seen::Success, Some(3), None, Disagree),
        ] {
            assert_eq!(judged(seen.clone(), completion, root), expected, "{seen:?} {root:?}");
        }
    }
}
