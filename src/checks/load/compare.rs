//! The comparison of a whole run: every record with its request, every request with its record.

use std::collections::{BTreeMap, HashSet};

use compact_str::CompactString;

use super::{Class, LoadList, LoadRecord, Seen, Verdict, counted_tokens, judge, unequal_tokens};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Outcome;

/// How near to its phase's end a request that was cut off ends (spec request-trace.md), nanoseconds.
const CUT_OFF_NS: u64 = 5_000_000;

/// One phase: the requests by outcome on both sides, and the named classes among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Records of the load generator, by the word of their outcome.
    pub client: BTreeMap<String, u64>,
    /// Roots joined to them, by outcome; requests without a root as `no root`.
    pub root: BTreeMap<String, u64>,
    /// Records whose request can have no root here: its endpoint makes none, or nothing of the run has one, as where the
    /// lifecycle is not traced. They are compared with nothing and in no count of either side.
    pub without_root: u64,
    /// Differences that have a name. Cut-off roots are counted in no other place.
    pub classes: BTreeMap<Class, u64>,
}

/// Two sides that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The client's id.
    pub x_request_id: CompactString,
    /// The phase.
    pub phase: CompactString,
    /// The request, when there is one.
    pub request: Option<RequestKey>,
    /// The check that is violated: `load.request` or `load.tokens`.
    pub check: &'static str,
    /// Both sides in one sentence.
    pub message: String,
    /// What the client saw of a request of which the cluster's side has no root.
    pub missing: Option<Seen>,
}

/// A whole run compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Per phase, in the order of their names.
    pub phases: BTreeMap<CompactString, PhaseCounts>,
    /// Every contradiction.
    pub disagreements: Vec<Disagreement>,
    /// Requests with a root that are no record's: other clients'.
    pub others: Vec<RequestKey>,
    /// Roots that were compared, cut-off ones too.
    pub roots: u64,
    /// Successes whose tokens were compared.
    pub tokens_compared: u64,
    /// Whether any request has a root.
    is_traced: bool,
}

impl Comparison {
    /// Where the counts of a phase differ although every class is set apart: phase, outcome, client's, roots'. This is
    /// load.count; empty when it holds.
    pub fn unequal_counts(&self) -> Vec<(CompactString, String, u64, u64)> {
        let mut unequal = Vec::new();
        for (phase, counts) in &self.phases {
            let of = |counts: &BTreeMap<String, u64>, word: &str| counts.get(word).copied().unwrap_or(0);
            let mut words: Vec<&String> = counts.client.keys().chain(counts.root.keys()).collect();
            words.sort();
            words.dedup();
            // What the classes move from one word to another.
            let moved = |class| counts.classes.get(&class).copied().unwrap_or(0);
            let (race, unreached, broken) =
                (moved(Class::Race), moved(Class::NeverReached), moved(Class::BrokenAfter200));
            for word in words {
                let (client, root) = (of(&counts.client, word), of(&counts.root, word));
                let slack = match word.as_str() {
                    "cancelled" => race + unreached,
                    "success" => race + broken,
                    "rejected" | "timed_out" | "failed" => broken,
                    _ => unreached,
                };
                if client.abs_diff(root) > slack {
                    unequal.push((phase.clone(), word.clone(), client, root));
                }
            }
        }
        unequal
    }

    /// Whether any root was compared.
    pub fn compared(&self) -> bool {
        self.roots > 0
    }

    /// Whether everything agrees.
    pub fn agrees(&self) -> bool {
        self.disagreements.is_empty() && self.unequal_counts().is_empty()
    }
}

/// Compares a load generator's list with the requests; `status` is asked for the HTTP status that a request's spans tell.
pub fn compare<'a>(
    list: &LoadList,
    requests: impl Iterator<Item = (RequestKey, &'a Facts)>,
    status: impl Fn(RequestKey) -> Option<u64>,
) -> Comparison {
    let mut by_id: BTreeMap<&str, Vec<(RequestKey, &Facts)>> = BTreeMap::new();
    let mut rest: Vec<(RequestKey, &Facts)> = Vec::new();
    for (key, facts) in requests {
        match &*facts.x_request_id {
            "" => rest.push((key, facts)),
            id => by_id.entry(id).or_default().push((key, facts)),
        }
    }
    let mut roots = by_id.values().flatten().chain(&rest);
    let mut comparison = Comparison { is_traced: roots.any(|(_, facts)| facts.has_root), ..Comparison::default() };
    let mut listed = HashSet::new();
    for record in &list.records {
        if !record.x_request_id.is_empty() && !listed.insert(&record.x_request_id) {
            let message = format!("{}: the load generator lists this client id twice, expected once", named(record));
            comparison.disagreements.push(disagreement(record, "load.request", None, message));
            continue;
        }
        let sides = by_id.remove(record.x_request_id.as_str()).unwrap_or_default();
        comparison.take(record, &sides, &status);
    }
    rest.extend(by_id.into_values().flatten());
    rest.sort_by_key(|(key, _)| *key);
    for (key, facts) in rest.into_iter().filter(|(_, facts)| facts.has_root) {
        match cut_off(list, facts) {
            Some(phase) => {
                comparison.roots += 1;
                let counts = comparison.phases.entry(phase).or_default();
                *counts.classes.entry(Class::CutOff).or_default() += 1;
            }
            None => comparison.others.push(key),
        }
    }
    comparison
}

/// How a record is called in sentences.
fn named(record: &LoadRecord) -> &str {
    if record.x_request_id.is_empty() { "a request without a client id" } else { &record.x_request_id }
}

fn disagreement(
    record: &LoadRecord,
    check: &'static str,
    request: Option<RequestKey>,
    message: String,
) -> Disagreement {
    let LoadRecord { x_request_id, phase, .. } = record;
    Disagreement { x_request_id: x_request_id.clone(), phase: phase.clone(), request, check, message, missing: None }
}

impl Comparison {
    fn take(
        &mut self,
        record: &LoadRecord,
        sides: &[(RequestKey, &Facts)],
        status: &impl Fn(RequestKey) -> Option<u64>,
    ) {
        let counts = self.phases.entry(record.phase.clone()).or_default();
        let disagree = |check, request, message| disagreement(record, check, request, message);
        let name = named(record);
        if let [(key, _), _, ..] = sides {
            let count = sides.len();
            let message = format!("{name}: {count} requests carry this client id, expected one");
            self.disagreements.push(disagree("load.request", Some(*key), message));
        }
        let side = sides.first();
        let verdict = judge(record, side.map(|(_, facts)| *facts), || side.and_then(|(key, _)| status(*key)));
        let untraced = !self.is_traced && side.is_some_and(|(_, facts)| facts.has_http);
        if verdict == Verdict::Nothing || (verdict == Verdict::Waiting && untraced) {
            counts.without_root += 1;
            return;
        }
        if let Some((_, facts)) = side {
            let word = if facts.has_root { facts.outcome_text() } else { "no root" };
            *counts.root.entry(word.to_owned()).or_default() += 1;
            self.roots += u64::from(facts.has_root);
        }
        let client = match (record.seen.outcome(), side) {
            (Some(outcome), _) => outcome.word().to_owned(),
            // It may stand for several: where they agree, for the root's.
            (None, Some((_, facts))) if verdict == Verdict::Agree => facts.outcome_text().to_owned(),
            (None, _) => record.seen.word(),
        };
        *counts.client.entry(client).or_default() += 1;
        match verdict {
            Verdict::Named(class) => *counts.classes.entry(class).or_default() += 1,
            Verdict::Disagree | Verdict::Waiting => {
                let root = side.map_or("no request", |(_, facts)| facts.outcome_text());
                let message = format!(
                    "{name}: the load generator saw {}, the cluster {root}: expected one outcome",
                    record.seen.word()
                );
                let missing = side.is_none_or(|(_, facts)| !facts.has_root).then(|| record.seen.clone());
                let found = disagree("load.request", side.map(|(key, _)| *key), message);
                self.disagreements.push(Disagreement { missing, ..found });
            }
            Verdict::Agree | Verdict::Nothing => {}
        }
        if let (Some((key, facts)), Seen::Success) = (side, &record.seen)
            && facts.outcome == Some(Outcome::Success)
        {
            self.tokens_compared += u64::from(counted_tokens(record, facts).next().is_some());
            for (tokens, client, cluster) in unequal_tokens(record, facts) {
                let message = format!(
                    "{name}: the load generator counts {client} {tokens} tokens, the cluster {cluster}: expected one count"
                );
                self.disagreements.push(disagree("load.tokens", Some(*key), message));
            }
        }
    }
}

/// The phase at whose end a request without a record was cut off.
fn cut_off(list: &LoadList, facts: &Facts) -> Option<CompactString> {
    // The generator sends its own id with every request: one without is another client's.
    if facts.outcome != Some(Outcome::Cancelled) || facts.x_request_id.is_empty() {
        return None;
    }
    let ended = facts.terminal_ns.or(facts.end_ns)?;
    let near = |end: u64| ended.abs_diff(end) <= CUT_OFF_NS;
    if let Some(phase) = list.phases.iter().find(|phase| phase.end_ns.is_some_and(near)) {
        return Some(phase.phase.clone());
    }
    // A phase that never said when it ended ran until the end: not before its last finished request.
    let open = if list.phases.is_empty() {
        list.records.last().map(|record| &record.phase)
    } else {
        list.phases.iter().find(|phase| phase.end_ns.is_none()).map(|phase| &phase.phase)
    }?;
    let finished =
        list.records.iter().filter(|record| record.phase == *open && record.seen.outcome() == Some(Outcome::Success));
    let last = finished.filter_map(|record| record.end_ns).max()?;
    (ended.saturating_add(CUT_OFF_NS) >= last).then(|| open.clone())
}

#[cfg(test)]
mod tests {
    use super::super::Usage;
    use super::*;

    fn record(id: &str, seen: Seen) -> LoadRecord {
        LoadRecord {
            x_request_id: id.into(),
            phase: "p".into(),
            seen,
            usage: Usage::default(),
            end_ns: None,
            ran_ns: None,
        }
    }

    fn ended(id: &str, endpoint: &str, outcome: Option<Outcome>) -> Facts {
        let has_root = outcome.is_some();
        Facts {
            x_request_id: id.into(),
            endpoint: endpoint.into(),
            outcome,
            has_root,
            has_http: true,
            ..Facts::default()
        }
    }

    fn compared(records: Vec<LoadRecord>, requests: &[Facts]) -> Comparison {
        let keys = (0..).map(RequestKey);
        compare(&LoadList { records, phases: Vec::new() }, keys.zip(requests), |_| None)
    }

    /// The client's own word is never the cluster's.
    #[test]
    fn where_no_root_can_be_nothing_is_compared() {
        let (chat, completions) = ("/v1/chat/completions", "/v1/completions");
        let failed = || vec![record("a", Seen::Code(500)), record("b", Seen::Code(529))];
        let alone = compared(failed(), &[ended("a", completions, None), ended("b", completions, None)]);
        assert_eq!((alone.phases["p"].without_root, alone.roots, alone.compared()), (2, 0, false));
        assert!(alone.phases["p"].client.is_empty() && alone.phases["p"].root.is_empty() && alone.agrees());
        let beside = [ended("a", completions, None), ended("b", chat, Some(Outcome::Success))];
        let beside = compared(failed(), &beside);
        assert_eq!((beside.phases["p"].without_root, beside.compared(), beside.disagreements.len()), (1, true, 1));
        // A lifecycle that is not traced gives no request a root; one that is traced lacks one.
        let untraced = compared(failed(), &[ended("a", chat, None), ended("b", chat, None)]);
        assert_eq!((untraced.phases["p"].without_root, untraced.compared(), untraced.agrees()), (2, false, true));
        let lacks = compared(failed(), &[ended("a", chat, None), ended("b", chat, Some(Outcome::Rejected))]);
        assert_eq!((lacks.phases["p"].without_root, lacks.disagreements.len()), (0, 1));
    }
}
