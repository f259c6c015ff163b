//! Sessions: a row per agent session, the one with the newest turn first; as many as there is room for.

use super::{Block, Body, Cell, Mark, Pane, Room, terms};
use crate::lifecycle::facts::State;
use crate::lifecycle::stage::Outcome;
use crate::store::rollup::{Affinity, Session};
use crate::view::data::Seen;
use crate::view::{Tone, format, outcome_sign, outcome_tone, state_sign};

const TITLES: [&str; 11] = [
    "session",
    ">turns",
    ">in flight",
    "outcomes",
    ">tokens in",
    ">tokens out",
    ">cached",
    "",
    ">affinity kept",
    "worker",
    ">newest turn",
];

/// Columns left out first where there is little room.
const NARROW: [usize; 4] = [7, 5, 4, 2];

pub(super) fn pane(seen: &Seen<'_>, room: Room) -> Pane {
    let sessions = &seen.rollup.sessions;
    let of = format::counted(sessions.len() as u64, "session", "sessions");
    let mut summary = format!("{of} · {}", format::counted(sessions.turns, "turn", "turns"));
    let Affinity { kept, broken } = sessions.affinity;
    if kept + broken > 0 {
        summary += &format!(" · affinity kept {}", format::percent(kept, kept + broken));
    }
    if sessions.is_empty() {
        let text = "no request names a session (the producer's stand-in, the request's own id, is none)";
        return Pane::one(summary, vec![Block::text(0, vec![Cell::label(text)])]);
    }
    let shown = usize::from(room.rows.saturating_sub(1)).max(1);
    let rows = sessions.newest().take(shown).map(|(id, session)| row(id, session, seen)).collect();
    let mut block = Block::table(0, &TITLES, rows);
    if let (Body::Table(table), true) = (&mut block.body, room.columns < 120) {
        let most = if room.columns < 90 { NARROW.len() } else { 2 };
        let mut gone = NARROW[..most].to_vec();
        gone.sort_unstable();
        for at in gone.into_iter().rev() {
            table.titles.remove(at);
            table.rows.iter_mut().for_each(|row| _ = row.remove(at));
        }
    }
    Pane::one(summary, vec![block])
}

fn row(id: &str, session: &Session, seen: &Seen<'_>) -> Vec<Cell> {
    let named = terms::is("session", id);
    let mut outcomes: Vec<String> = Vec::new();
    let mut tone = Tone::Plain;
    for (word, count) in session.outcomes.ranked() {
        let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.word() == word);
        let state = State::ALL.into_iter().find(|state| state.rootless_word() == word);
        match (outcome, state) {
            (Some(outcome), _) => {
                outcomes.push(format!("{count}{}", outcome_sign(outcome)));
                if outcomes.len() == 1 {
                    tone = outcome_tone(outcome);
                }
            }
            (None, Some(state)) => outcomes.push(format!("{count}{}", state_sign(state))),
            (None, None) => outcomes.push(format!("{count} {word}")),
        }
    }
    let affinity = match session.affinity {
        Affinity { kept: 0, broken: 0 } => Cell::label("–"),
        Affinity { kept, broken: 0 } => Cell::new(format!("{kept} of {kept}"), Tone::Good),
        Affinity { kept, broken } => Cell::new(format!("{kept} of {}", kept + broken), Tone::Warn),
    };
    let cached = match session.input_of_cached {
        0 => Cell::label("–"),
        input => Cell::new(format::percent(session.cached_tokens, input), Tone::Accent),
    };
    // A sum over the turns that tell of it: at least as many where others do not.
    let tokens = |sum: u64, told: u64| match told {
        0 => Cell::label("–"),
        told if told < session.count => Cell::new(format!("≥{}", format::short_count(sum)), Tone::Plain),
        _ => Cell::new(format::short_count(sum), Tone::Plain),
    };
    let cached_share = session.cached_tokens as f64 / session.input_of_cached.max(1) as f64;
    let in_flight = format!("{named} state:in_flight");
    vec![
        Cell::new(id, Tone::Plain).finding(&*named),
        Cell::count(session.count, Tone::Plain).finding(&*named),
        Cell::count(session.in_flight, Tone::Running).finding_any(session.in_flight, in_flight),
        Cell::new(outcomes.join(" "), tone),
        tokens(session.input_tokens, session.turns_of_input),
        tokens(session.output_tokens, session.turns_of_output),
        cached,
        Cell { mark: Mark::Bar(cached_share), ..Cell::new("", Tone::Accent) },
        affinity,
        Cell::new(session.worker().map_or("–".into(), |worker| worker.short()), Tone::Plain),
        Cell::label(format!("{} ago", format::age(seen.now_ns.saturating_sub(session.newest_ns())))),
    ]
}
