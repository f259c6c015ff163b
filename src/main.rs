//! The entry; the only place that prints.

#![forbid(unsafe_code)]

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use reqtop::lifecycle::text;
use reqtop::run::{self, Ended};
use reqtop::settings::{self, Refusal};

fn main() -> ExitCode {
    let ended = match settings::resolve(std::env::args_os()) {
        Ok(cli) => run::run(cli),
        Err(Refusal::Usage(error)) => error.exit(),
        Err(Refusal::File(notes)) => Ended { notes, ..Ended::badly("") },
    };
    let mut out = std::io::stdout().lock();
    let written = ended.output.write(&mut out).and_then(|()| out.flush());
    let mut err = std::io::stderr().lock();
    // What cannot be said, cannot be said.
    for note in &ended.notes {
        let _ = writeln!(err, "reqtop: {}", text::one_line(note));
    }
    match written {
        Ok(()) => ended.code(),
        // A reader that went away (`| head`) is no error of ours.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ended.code(),
        Err(error) => {
            let _ = writeln!(err, "reqtop: the output is not whole: {error}");
            ExitCode::from(2)
        }
    }
}
