//! The budgets of design.md section 5: each line a ratio against a reference measured in the same run.
//!
//! `cargo bench` prints the table. `cargo bench -- NAME` runs the groups whose name holds NAME: `ingest`, `receive`,
//! `memory`, `screen`, `files`, `process`; by full name only also `flood`: 3 million spans, one huge trace and orphans
//! within a small `--max-memory`. A smaller ratio is better on every line.

mod counting;
mod files;
mod flood;
mod ingest;
mod load;
#[path = "../common/nobody.rs"]
mod nobody;
#[path = "../common/own.rs"]
mod own;
mod process;
mod receive;
mod screen;

use std::time::Duration;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// One line of the table.
pub struct Line {
    name: String,
    measured: String,
    reference: String,
    ratio: f64,
    budget: f64,
    stretch: f64,
}

/// A time against the time of a reference.
pub fn against(ours: Duration, reference: Duration) -> f64 {
    ours.as_secs_f64() / reference.as_secs_f64()
}

/// The pair with the median ratio: both of one round, so that both have seen the same weather.
pub fn median(mut pairs: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    pairs.sort_by(|a, b| against(a.0, a.1).total_cmp(&against(b.0, b.1)));
    pairs[pairs.len() / 2]
}

/// A quantile by nearest rank.
pub fn quantile(times: &mut [Duration], q: f64) -> Duration {
    times.sort_unstable();
    times[((q * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1]
}

/// A line for a time that must stay below a limit.
pub fn within(name: &str, time: Duration, budget: Duration, stretch: Duration) -> Line {
    Line {
        name: name.into(),
        measured: format!("{:.2} ms", time.as_secs_f64() * 1e3),
        reference: format!("budget {} ms", budget.as_millis()),
        ratio: against(time, budget),
        budget: 1.0,
        stretch: against(stretch, budget),
    }
}

type Group = (&'static str, fn() -> Vec<Line>);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let usual: [Group; 5] = [
        ("ingest", ingest::lines),
        ("receive", receive::lines),
        ("memory screen", screen::lines),
        ("files", files::lines),
        ("process", process::lines),
    ];
    let asked: [Group; 1] = [("flood", flood::lines)];
    println!("{:<38} {:>20} {:>24} {:>7} {:>7}  met", "what", "measured", "reference", "ratio", "budget");
    let usual = usual
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())));
    let asked = asked.iter().filter(|(name, _)| wanted.iter().any(|wanted| name == wanted));
    for (_, lines) in usual.chain(asked) {
        for line in lines() {
            let met = match line.ratio {
                ratio if ratio <= line.stretch => "stretch",
                ratio if ratio <= line.budget => "yes",
                _ => "short",
            };
            println!(
                "{:<38} {:>20} {:>24} {:>7.3} {:>7.2}  {met}",
                line.name, line.measured, line.reference, line.ratio, line.budget
            );
        }
    }
}
