//! The story: a request's life in plain sentences from its evidence, and what is missing as what kind of missing it is.
//!
//! Owns: the words, those of its legs in a room of their own. Keeps out: how facts come about (`lifecycle`), wrapping and
//! drawing (`tui`).

mod leg;

use super::{Nothing, Piece, Tone, format, outcome_tone};
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::request::RequestView;
use crate::lifecycle::stage::{Layout, Mode, Origin, Outcome};

/// Sentences in the order of the request's life; each is a line of pieces that read as one text.
pub fn story(request: &RequestView<'_>, now_ns: u64) -> Vec<Vec<Piece>> {
    let facts = request.facts;
    let mut told = Told(Vec::new());
    preprocessing(facts, &mut told);
    if facts.legs.is_empty() {
        told.nothing(facts, "No queue, selection or dispatch", Nothing::NoSuch);
    }
    for (at, leg) in facts.legs.iter().enumerate() {
        told.say(leg::sentences(facts, at, leg));
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
