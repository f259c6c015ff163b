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
        Err(Refusal::Usage(error)) => return told(error),
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

/// Prints help, or why the command line cannot be read.
fn told(error: clap::Error) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    let is_error = error.use_stderr();
    let said = settings::said(error);
    // What cannot be said, cannot be said.
    let _ = match is_error {
        true => std::io::stderr().write_all(said.as_bytes()),
        false => std::io::stdout().write_all(said.as_bytes()),
    };
    status
}
