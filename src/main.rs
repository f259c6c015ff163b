//! The entry; the only place that prints.

#![forbid(unsafe_code)]

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use reqtop::lifecycle::text;
use reqtop::run::{self, Ended};
use reqtop::settings::{self, Refusal};

fn main() -> ExitCode {
    run::outlive_file_limit();
    let ended = match settings::resolve(std::env::args_os()) {
        Ok(cli) => run::run(cli),
        Err(Refusal::Usage(error)) => return told(error),
        Err(Refusal::File(notes)) => Ended { notes, ..Ended::badly("") },
    };
    let mut out = std::io::stdout().lock();
    let written = ended.output.write(&mut out).and_then(|()| out.flush());
    for note in &ended.notes {
        // What cannot be said, cannot be said.
        let _ = writeln!(std::io::stderr(), "reqtop: {}", text::one_line(note));
    }
    printed(written, ended.code())
}

/// Prints help, or why the command line cannot be read.
fn told(error: clap::Error) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    let is_error = error.use_stderr();
    let said = settings::said(error);
    if is_error {
        // What cannot be said, cannot be said.
        let _ = std::io::stderr().write_all(said.as_bytes());
        return status;
    }
    let mut out = std::io::stdout().lock();
    printed(out.write_all(said.as_bytes()).and_then(|()| out.flush()), status)
}

/// The status of a command whose output was written so.
fn printed(written: std::io::Result<()>, status: ExitCode) -> ExitCode {
    match written {
        Ok(()) => status,
        // A reader that went away (`| head`) is no error of ours.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => status,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "reqtop: the output is not whole: {error}");
            ExitCode::from(2)
        }
    }
}
