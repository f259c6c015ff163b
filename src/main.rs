//! The entry; the only place that prints.

use std::io::Write;
use std::process::ExitCode;

use reqtop::run::{self, Ended};
use reqtop::settings::{self, Refusal};

fn main() -> ExitCode {
    let ended = match settings::resolve(std::env::args_os()) {
        Ok(cli) => run::run(cli),
        Err(Refusal::Usage(error)) => error.exit(),
        Err(Refusal::File(notes)) => Ended { output: String::new(), notes, status: 2 },
    };
    let mut out = std::io::stdout().lock();
    // A reader that went away (`| head`) is no error of ours.
    let _ = out.write_all(ended.output.as_bytes()).and_then(|()| out.flush());
    for note in &ended.notes {
        eprintln!("reqtop: {note}");
    }
    ended.code()
}
