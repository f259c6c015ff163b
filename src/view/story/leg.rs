//! One leg of the story: how it waited, whom the router chose, and how it was handed over.

use super::mark;
use crate::lifecycle::facts::{Choice, Closeness, Dispatch, FILTER_PARTS, Facts, Leg, Queue, Selection};
use crate::lifecycle::stage::{Origin, Outcome, Phase};
use crate::view::list::margin_piece;
use crate::view::{Nothing, Piece, Tone, format};

/// Its sentences, as one line of pieces.
pub(super) fn sentences(facts: &Facts, at: usize, leg: &Leg) -> Vec<Piece> {
    let (name, tone) = name(facts, leg);
    let mut line = vec![Piece::new(format!("{name}: "), tone)];
    match &leg.queue {
        Some(queue) => waited(facts, queue, &mut line),
        None if leg.selection.as_ref().is_some_and(|selection| selection.origin == Origin::Span) => {
            line.push(Piece::plain("queue "));
            line.push(Nothing::unrecorded(facts).sentence());
            line.push(Piece::plain("; "));
        }
        None => {}
    }
    let left = left_waiting(facts, at, leg);
    if left && leg.selection.is_none() && leg.dispatch.is_none() {
        line.push(Piece::plain("nothing was chosen or sent."));
        return line;
    }
    match &leg.selection {
        Some(selection) => chose(facts, selection, &mut line),
        None if leg.dispatch.as_ref().is_some_and(|dispatch| !matches!(dispatch.route.as_str(), "" | "kv")) => {}
        None => {
            line.push(Piece::plain("choice "));
            let kind = Nothing::of(facts, Nothing::unrecorded(facts));
            line.push(kind.sentence());
            line.push(Piece::plain("; "));
        }
    }
    match &leg.dispatch {
        Some(dispatch) => sent(facts, at, leg, dispatch, &mut line),
        None if left || leg.selection.as_ref().is_some_and(|selection| selection.chose_none()) => {
            line.push(Piece::plain("nothing was sent."));
        }
        None => {
            line.push(Piece::plain("the hand-over "));
            let otherwise = if may_have_left(facts, at, leg) { Nothing::unrecorded(facts) } else { Nothing::Missing };
            let kind = Nothing::of(facts, otherwise);
            line.push(kind.sentence());
            line.push(Piece::plain("."));
        }
    }
    line
}

/// What a leg is called: its phase, and its attempt where there were several.
fn name(facts: &Facts, leg: &Leg) -> (String, Tone) {
    let phase = match leg.phase {
        Phase::Prefill => "Prefill",
        Phase::Decode => "Decode",
        Phase::Aggregated => "Aggregated leg",
        Phase::Unknown => "A leg of unknown phase",
    };
    let several = facts.legs.iter().any(|other| other.phase == leg.phase && other.attempt != leg.attempt);
    let (before, after) = mark(leg.phase_origin);
    let phase = format!("{before}{phase}{after}");
    let text = if several { format!("{phase} attempt {}", leg.attempt) } else { phase };
    (text, Tone::of_phase(leg.phase))
}

/// Whether a leg left the queue otherwise than to a worker: its wait says so or, where a layout does not record how waits
/// end, the root that tells how the last one did.
fn left_waiting(facts: &Facts, at: usize, leg: &Leg) -> bool {
    let refused = facts.outcome == Some(Outcome::Rejected) && at + 1 == facts.legs.len();
    leg.queue.as_ref().is_some_and(|queue| queue.left_unserved() || (queue.outcome.is_empty() && refused))
}

/// Whether a leg may have left the queue otherwise than to a worker: the last one of a request that did not succeed, where
/// a layout does not record how waits end.
fn may_have_left(facts: &Facts, at: usize, leg: &Leg) -> bool {
    facts.outcome != Some(Outcome::Success)
        && at + 1 == facts.legs.len()
        && leg.selection.is_none()
        && leg.queue.as_ref().is_some_and(|queue| queue.outcome.is_empty())
}

/// `waited 412 ms in class default (fcfs), depth 7 → 6, deferred by prefill_capacity; `.
fn waited(facts: &Facts, queue: &Queue, line: &mut Vec<Piece>) {
    let (before, after) = mark(queue.origin);
    let wait = format!("{before}{}{after}", format::duration(queue.wait_ns));
    line.push(Piece::plain("waited "));
    line.push(Piece::new(wait, if queue.deferred == Some(true) { Tone::Queue } else { Tone::Plain }));
    if !queue.class.is_empty() {
        let policy = if queue.policy.is_empty() { String::new() } else { format!(" ({})", queue.policy) };
        line.push(Piece::plain(format!(" in class {}{policy}", queue.class)));
    }
    if let (Some(depth_in), Some(depth_out)) = (queue.depth_in, queue.depth_out) {
        line.push(Piece::plain(format!(", depth {depth_in} → {depth_out}")));
    }
    match (queue.deferred, queue.reason.as_str()) {
        (_, reason) if queue.left_unserved() => {
            let tone = if queue.outcome == "cancelled" { Tone::Cancelled } else { Tone::Rejected };
            line.push(Piece::plain(", then "));
            line.push(Piece::new(queue.outcome.replace('_', " "), tone));
            // Of these a reason is asked for (checks.md, queue.reason); of a word that is not known nobody can say.
            let has_reason = matches!(queue.outcome.as_str(), "rejected" | "cancelled" | "failed");
            match reason {
                "" if has_reason => {
                    line.push(Piece::plain(", reason "));
                    line.push(Nothing::unrecorded(facts).sentence());
                }
                "" => {}
                reason => {
                    line.push(Piece::plain(" by "));
                    line.push(Piece::new(reason.replace('_', " "), tone));
                }
            }
        }
        (Some(true), "") => {
            line.push(Piece::plain(", deferred, reason "));
            line.push(Nothing::unrecorded(facts).sentence());
        }
        (Some(true), reason) => {
            line.push(Piece::plain(", deferred by "));
            line.push(Piece::new(reason, Tone::Queue));
        }
        (Some(false), _) => line.push(Piece::plain(", not deferred")),
        (None, _) if queue.origin == Origin::Span => {
            line.push(Piece::plain(", deferral "));
            line.push(Nothing::unrecorded(facts).sentence());
        }
        (None, _) => {}
    }
    line.push(Piece::plain("; "));
}

/// `4 of 6 ranks eligible, 2 overloaded; chose 7f3a:0 at 12.50, best, by 1.25 — a near tie; `.
fn chose(facts: &Facts, selection: &Selection, line: &mut Vec<Piece>) {
    if let (Some(eligible), Some(filtered)) = (selection.eligible, selection.filtered) {
        let by_policy = selection.filtered_parts[4].unwrap_or(0);
        let all = eligible + filtered.saturating_sub(by_policy);
        line.push(Piece::plain(format!("{eligible} of {all} ranks eligible")));
        for (part, count) in FILTER_PARTS.iter().zip(selection.filtered_parts) {
            if let Some(count) = count.filter(|count| *count > 0) {
                line.push(Piece::plain(format!(", {count} {}", part.replace('_', " "))));
            }
        }
        line.push(Piece::plain("; "));
    }
    let Some(selected) = selection.selected else {
        if selection.chose_none() {
            line.push(Piece::new("nothing was chosen", Tone::Bad));
        } else {
            line.push(Piece::plain("chose one of its record's candidates ʳ: which, "));
            let kind = Nothing::of(facts, Nothing::unrecorded(facts));
            line.push(kind.sentence());
        }
        line.push(Piece::plain("; "));
        return;
    };
    let (before, after) = mark(selection.origin);
    line.push(Piece::plain("chose "));
    line.push(Piece::new(format!("{before}{}{after}", at_cost(selected)), Tone::Strong));
    match (selection.best, selection.margin) {
        (Some(best), margin) if best.worker == selected.worker => {
            line.push(Piece::plain(", best"));
            if let Some(margin) = margin {
                let by = format!(" by {}", format::cost(margin));
                let text = match Closeness::of(margin, selection.candidates) {
                    Closeness::Only if margin == 0.0 => " and only candidate".to_owned(),
                    Closeness::Tie if margin == 0.0 => " in a tie".to_owned(),
                    Closeness::Near => format!("{by} — a near tie"),
                    Closeness::Only | Closeness::Tie | Closeness::Clear => by,
                };
                line.push(Piece { text, ..margin_piece(margin, selection.candidates) });
            }
        }
        (Some(best), _) => {
            line.push(Piece::plain(", "));
            line.push(Piece::new("not the best", Tone::Warn));
            line.push(Piece::plain(format!(" ({})", at_cost(best))));
            if let Some(regret) = selection.regret() {
                line.push(Piece::plain(format!(", regret {}", format::cost(regret))));
            }
        }
        (None, _) => {
            line.push(Piece::plain(", margin "));
            line.push(Nothing::unrecorded(facts).sentence());
        }
    }
    if selection.pinned == Some(true) {
        line.push(Piece::plain(", kept by session affinity"));
    }
    line.push(Piece::plain("; "));
}

fn at_cost(choice: Choice) -> String {
    match choice.cost {
        Some(cost) => format!("{} at {}", choice.worker.short(), format::cost(cost)),
        None => choice.worker.short(),
    }
}

fn sent(facts: &Facts, at: usize, leg: &Leg, dispatch: &Dispatch, line: &mut Vec<Piece>) {
    let to = leg.worker().map_or_else(|| "an unnamed worker".into(), |worker| worker.short());
    let selected = leg.selection.as_ref().and_then(|selection| selection.selected);
    if selected.is_none_or(|selected| Some(selected.worker) != leg.worker()) {
        let route = if matches!(dispatch.route.as_str(), "" | "kv") {
            String::new()
        } else {
            format!("{} to ", dispatch.route)
        };
        line.push(Piece::plain(format!("{route}{to} ")));
    }
    let (before, _) = mark(dispatch.origin);
    let (word, tone) = match dispatch.result_word().as_str() {
        "accepted" => ("accepted", Tone::Good),
        "success" => ("served", Tone::Good),
        "" => ("", Tone::Warn),
        word @ "cancelled" => (word, Tone::Cancelled),
        word => (word, Tone::Bad),
    };
    if word.is_empty() {
        line.push(Piece::plain("hand-over result "));
        let kind = Nothing::of(facts, Nothing::Missing);
        line.push(kind.sentence());
    } else {
        line.push(Piece::new(format!("{before}{}", word.replace('_', " ")), tone));
        line.push(Piece::plain(format!(" after {}", format::duration(dispatch.duration_ns))));
    }
    if leg.at_capacity() && facts.outcome == Some(Outcome::Rejected) {
        line.push(Piece::plain(", though its admission said accepted: "));
        line.push(Piece::new("the worker was at capacity", Tone::Rejected));
    } else if let Some(admission) = leg.admission.as_ref().filter(|admission| admission.result != "accepted") {
        let result = if admission.result.is_empty() { "without a result" } else { &admission.result };
        line.push(Piece::plain(format!(", admission {result}")));
    }
    if dispatch.lost_worker() {
        line.push(Piece::plain(", then "));
        // How, when that is not what has just been said.
        let how = if word == dispatch.attempt_outcome { "" } else { &dispatch.attempt_outcome };
        let how = if how.is_empty() { String::new() } else { format!(" ({})", how.replace('_', " ")) };
        line.push(Piece::new(format!("the worker was lost{how}"), Tone::Bad));
    } else if !matches!(dispatch.attempt_outcome.as_str(), "" | "success" | "cancelled")
        && word != dispatch.attempt_outcome
    {
        line.push(Piece::plain(", the attempt ended "));
        line.push(Piece::new(dispatch.attempt_outcome.replace('_', " "), Tone::Bad));
    }
    if !dispatch.error.is_empty() {
        line.push(Piece::plain(format!(" ({})", dispatch.error)));
    }
    if !dispatch.migration_reason.is_empty() || dispatch.retry == Some(true) {
        let reason = if dispatch.migration_reason.is_empty() {
            "a retry".to_owned()
        } else {
            format!("moved here because of {}", dispatch.migration_reason.replace('_', " "))
        };
        line.push(Piece::plain(format!("; {reason}")));
        if let Some(tokens) = dispatch.tokens_carried {
            line.push(Piece::plain(format!(", {} tokens carried over", format::count(tokens))));
        }
    } else if leg.attempt > 0 && facts.legs[..at].iter().any(|before| before.phase == leg.phase) {
        line.push(Piece::plain("; another attempt"));
    }
    line.push(Piece::plain("."));
}
