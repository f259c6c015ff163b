//! The catalogue of checks in its forms, for `reqtop checks`.

use std::fmt::Write;

use crate::checks::ALL;

/// As text.
pub fn text() -> String {
    let mut out = String::new();
    for check in &ALL {
        let _ = writeln!(
            out,
            "{:<22} {}  {}\n{:25} {}",
            check.id,
            check.level.letter(),
            check.what,
            "",
            check.applies_to()
        );
    }
    out
}

/// As JSON.
pub fn json() -> String {
    let rows: Vec<serde_json::Value> = ALL
        .iter()
        .map(|check| {
            serde_json::json!({
                "id": check.id,
                "level": check.level.letter(),
                "what": check.what,
                "layouts": check.layouts.iter().map(|layout| layout.word()).collect::<Vec<_>>(),
                "modes": check.modes.iter().map(|mode| mode.word()).collect::<Vec<_>>(),
            })
        })
        .collect();
    serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
}

/// As a Markdown table.
pub fn markdown() -> String {
    let mut out = String::from("| id | level | what must hold | applies to |\n|---|---|---|---|\n");
    for check in &ALL {
        let what = check.what.replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {} | {what} | {} |", check.id, check.level.letter(), check.applies_to());
    }
    out
}
