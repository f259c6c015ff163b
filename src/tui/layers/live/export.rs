//! The requests of the list in a file, as far as one that is made between two frames may hold them; what is said of it
//! counts what it holds. Keeps out: writing it (`save`).

use super::super::{Command, NOTHING_TO_EXPORT, Scene};
use crate::lifecycle::request::RequestKey;
use crate::view::format;
use crate::view::otlp_json::whole_request;

/// How many requests of the list are exported at most.
pub const MOST: usize = 500;

/// A file of the first of these. Some have nothing to write: they are known from logs alone, or nothing of them was known
/// yet at the moment that is shown.
pub fn export(mut keys: Vec<RequestKey>, scene: &Scene<'_>) -> Command {
    let is_cut = keys.len() > MOST;
    keys.truncate(MOST);
    let (mut bytes, mut written) = (Vec::new(), 0);
    for request in keys.iter().filter_map(|key| scene.data.request(*key)) {
        let before = bytes.len();
        // Memory takes what it is given.
        let _ = whole_request(&mut bytes, &request);
        written += usize::from(bytes.len() > before);
    }
    if written == 0 {
        return Command::Say(NOTHING_TO_EXPORT.into());
    }
    let mut note = match (keys.len() - written) as u64 {
        0 => String::new(),
        bare => format!("; {} without spans or records left out", format::counted(bare, "request", "requests")),
    };
    if is_cut {
        note.push_str(&format!("; only the first {MOST} of the list: `reqtop export --filter` writes them all"));
    }
    let noun = format::noun(written as u64, "request", "requests");
    Command::Save { stem: format!("reqtop-{written}-{noun}"), bytes, note }
}
