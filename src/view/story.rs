//! The story: a request's life in plain sentences from its evidence, and what is missing as what kind of missing it is.
//!
//! Owns: the words. Keeps out: how facts come about (`lifecycle`), wrapping and drawing (`tui`).

use super::list::margin_piece;
use super::{Nothing, Piece, Tone, format, outcome_tone};
use crate::lifecycle::facts::{Choice, Closeness, Dispatch, FILTER_PARTS, Facts, Leg, Queue, Selection, State};
use crate::lifecycle::request::RequestView;
use crate::lifecycle::stage::{Layout, Mode, Origin, Outcome, Phase};

/// Sentences in the order of the request's life; each is a line of pieces that read as one text.
pub fn story(request: &RequestView<'_>, now_ns: u64) -> Vec<Vec<Piece>> {
    let facts = request.facts;
    let mut told = Told(Vec::new());
    preprocessing(facts, &mut told);
    if facts.legs.is_empty() {
        told.nothing(facts, "No queue, selection or dispatch", Nothing::NoSuch);
    }
    for (at, leg) in facts.legs.iter().enumerate() {
        self::leg(facts, at, leg, &mut told);
    }
    stream(facts, &mut told);
    end(request, now_ns, &mut told);
    odd(facts, &mut told);
    told.0
}

/// The sentences so far.
struct Told(Vec<Vec<Piece>>);

impl Told {
    fn say(&mut self, pieces: Vec<Piece>) {
        self.0.push(pieces);
    }

    /// What there is no evidence of, and why.
    fn nothing(&mut self, facts: &Facts, what: &str, otherwise: Nothing) {
        self.say(vec![Piece::plain(format!("{what}: ")), Nothing::of(facts, otherwise).sentence(), Piece::plain(".")]);
    }
}

/// `~` before what is worked out from other evidence, `ʳ` after what a record tells.
fn mark(origin: Origin) -> (&'static str, &'static str) {
    match origin {
        Origin::Span => ("", ""),
        Origin::Inferred => ("~", ""),
        Origin::Record => ("", "ʳ"),
    }
}

fn preprocessing(facts: &Facts, told: &mut Told) {
    let Some(stage) = &facts.preprocessing else { return };
    let took = format::duration(stage.duration_ns);
    match (stage.outcome.as_str(), stage.checkpoint.as_str()) {
        ("success", _) | ("", "ready") => {}
        ("", _) => {}
        (outcome, checkpoint) => {
            let at =
                if checkpoint.is_empty() { String::new() } else { format!(" after {}", checkpoint.replace('_', " ")) };
            told.say(vec![
                Piece::plain(format!("Preprocessing took {took} and ended ")),
                Piece::new(outcome.replace('_', " "), Tone::Bad),
                Piece::plain(format!("{at}.")),
            ]);
        }
    }
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

fn leg(facts: &Facts, at: usize, leg: &Leg, told: &mut Told) {
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
        told.say(line);
        return;
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
        None if left || leg.selection.as_ref().is_some_and(|selection| chose_none(selection)) => {
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
    told.say(line);
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

/// Whether its span tells of no choice. A record does not say which of its candidates was chosen (spec request-trace.md).
fn chose_none(selection: &Selection) -> bool {
    selection.selected.is_none() && selection.origin != Origin::Record
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
        if chose_none(selection) {
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

fn stream(facts: &Facts, told: &mut Told) {
    let mut line = Vec::new();
    if let Some((ttft, origin)) = facts.ttft_ns {
        let (before, after) = mark(origin);
        line.push(Piece::plain(format!("First token after {before}{}{after}", format::duration(ttft))));
    }
    let Some(stream) = &facts.stream else {
        if !line.is_empty() {
            line.push(Piece::plain("."));
            told.say(line);
        }
        if facts.streaming == Some(true) && facts.outcome == Some(Outcome::Success) {
            told.nothing(facts, "Its stream", Nothing::Missing);
        }
        return;
    };
    line.push(Piece::plain(if line.is_empty() { "It streamed " } else { "; it streamed " }));
    let kind = match (facts.layout, facts.mode) {
        (Layout::Base, _) => Nothing::Layout(facts.layout),
        (_, Mode::Core) => Nothing::Mode(Mode::Core),
        _ => Nothing::Missing,
    };
    line.push(Piece::plain(format!("for {}, ", format::duration(stream.duration_ns))));
    match stream.events {
        Some(events) => line.push(Piece::plain(format!("{} events", format::count(events)))),
        None => line.extend([Piece::plain("events "), kind.sentence()]),
    }
    if stream.outcome == "abandoned" {
        line.push(Piece::plain(", then it was "));
        line.push(Piece::new("abandoned", Tone::Streaming));
        if facts.outcome != Some(Outcome::Cancelled) {
            line.push(Piece::plain(" — by itself no sign of a cancellation"));
        }
    }
    line.push(Piece::plain("."));
    told.say(line);
}

fn end(request: &RequestView<'_>, now_ns: u64, told: &mut Told) {
    let facts = request.facts;
    let line = match (facts.outcome, facts.state) {
        (Some(outcome), _) => {
            let after = facts.total_ns().map(|total| format!(" after {}", format::duration(total))).unwrap_or_default();
            let mut line = vec![
                Piece::plain("The root says "),
                Piece::new(facts.outcome_text().replace('_', " "), outcome_tone(outcome)),
                Piece::plain(after),
            ];
            if let (Some(input), Some(output)) = (facts.input_tokens, facts.output_tokens) {
                let (input, output) = (format::count(input), format::count(output));
                let cached =
                    facts.cached_tokens.map_or(String::new(), |cached| format!(" ({} cached)", format::count(cached)));
                line.push(Piece::plain(format!("; {input} tokens in{cached}, {output} out")));
            }
            line.push(Piece::plain("."));
            line
        }
        (None, State::InFlight) => {
            let so_far = format::duration(now_ns.saturating_sub(facts.start_ns));
            vec![Piece::plain(format!("{so_far} so far; its root has ")), Nothing::NotYet.sentence(), Piece::plain(".")]
        }
        (None, State::Ending) => {
            let told = if facts.has_record { "its record" } else { "its frontend" };
            let ended = format!("It has ended, as {told} tells; its root has ");
            vec![Piece::plain(ended), Nothing::NotYet.sentence(), Piece::plain(".")]
        }
        (None, State::Ended) => {
            vec![Piece::plain("It ended without a root: "), Piece::dim(rootless(request)), Piece::plain(".")]
        }
        (None, State::Lost) => {
            vec![
                Piece::plain("Nothing has come for a long time; its end is "),
                Nothing::Missing.sentence(),
                Piece::plain("."),
            ]
        }
    };
    told.say(line);
    if facts.outcome == Some(Outcome::Success) && !facts.has_record {
        // Records are best effort (spec request-trace): their absence is told, not held against anybody.
        told.say(vec![Piece::dim("No request_end record has come.")]);
    }
}

/// Why a request that has ended may have no root.
fn rootless(request: &RequestView<'_>) -> &'static str {
    let facts = request.facts;
    let is_chat = facts.has_http && facts.endpoint.contains("chat");
    match facts.spans {
        0 => "a span, of which none has come",
        _ if is_chat && !request.spans.iter().any(|span| span.stage.is_lifecycle()) => {
            "the lifecycle is not traced (DYN_LIFECYCLE_TRACE_ENABLED), sampling or a refusal makes none, or \
             it has yet to come"
        }
        // Chats have one; where no worker is left, none is made (spec lifecycle-spans §6).
        _ if is_chat => "sampling or a refusal makes none, or it has yet to come",
        _ => "this endpoint or sampling makes none",
    }
}

fn odd(facts: &Facts, told: &mut Told) {
    let words: Vec<&str> = facts.marks.words().collect();
    if !words.is_empty() {
        told.say(vec![Piece::plain("Odd: "), Piece::new(words.join(", "), Tone::Warn), Piece::plain(".")]);
    }
    if facts.skew_ns > 0 {
        told.say(vec![
            Piece::plain("Clocks differ by "),
            Piece::new(format!("{} or more", format::duration(facts.skew_ns)), Tone::Warn),
            Piece::plain(" between its hosts."),
        ]);
    }
}

#[cfg(test)]
mod tests;
