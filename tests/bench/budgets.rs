//! The budgets of design.md section 5: each line a ratio against a reference measured in the same run.
//!
//! `cargo bench` prints the table. `cargo bench -- NAME` runs the lines whose name holds NAME.

mod ingest;
mod load;

/// One line of the table.
pub struct Line {
    name: &'static str,
    measured: String,
    reference: String,
    ratio: f64,
    budget: f64,
    stretch: f64,
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    type Part = (&'static str, fn() -> Vec<Line>);
    let all: &[Part] = &[("ingest", ingest::lines)];
    println!("{:<34} {:>22} {:>22} {:>7} {:>7}  met", "what", "measured", "reference", "ratio", "budget");
    for (name, lines) in all {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        for line in lines() {
            let met = match line.ratio {
                ratio if ratio <= line.stretch => "stretch",
                ratio if ratio <= line.budget => "yes",
                _ => "short",
            };
            println!(
                "{:<34} {:>22} {:>22} {:>7.3} {:>7.2}  {met}",
                line.name, line.measured, line.reference, line.ratio, line.budget
            );
        }
    }
}
