//! The entry; the only place that prints.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use reqtop::cli::Cli;

fn main() -> ExitCode {
    let ended = reqtop::run::run(Cli::parse());
    let mut out = std::io::stdout().lock();
    // A reader that went away (`| head`) is no error of ours.
    let _ = out.write_all(ended.output.as_bytes()).and_then(|()| out.flush());
    for note in &ended.notes {
        eprintln!("reqtop: {note}");
    }
    ended.code()
}
