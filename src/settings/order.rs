//! `reqtop OPTIONS COMMAND …` is `reqtop COMMAND OPTIONS …`: people name what holds everywhere first.
//!
//! The options of the dashboard take no command behind them (each command has its own), so clap would take the command for
//! the name of a file. Owns: where in the words the command stands. Keeps out: what the words mean (the catalogue).

use std::ffi::OsString;

use clap::{Arg, Command};

/// The words with the command before the options. A file of a command's name is a file as `./demo`, after `--` and after
/// another file.
pub(super) fn command_first(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let behind = behind_options(command, &words).unwrap_or(0);
    let Some(at) = words.len().checked_sub(behind).filter(|at| *at > 1 && behind > 0) else { return words };
    let named = words[at].to_str().is_some_and(|word| command.find_subcommand(word).is_some());
    if named && words[1..at].iter().all(|word| word != "--") {
        words[1..=at].rotate_right(1);
    }
    words
}

/// How many words there are from the first that is neither an option nor its value.
fn behind_options(command: &Command, words: &[OsString]) -> Option<usize> {
    // A command of the same options, whatever their values are and whatever they need, that ends with the first other word.
    let options = command.get_arguments().filter(|arg| !arg.is_positional()).map(|arg| {
        let mut option = Arg::new(arg.get_id().clone()).action(arg.get_action().clone());
        option = option.short(arg.get_short()).require_equals(arg.is_require_equals_set());
        option = option.aliases(arg.get_all_aliases().unwrap_or_default().into_iter().map(str::to_owned));
        if let Some(long) = arg.get_long() {
            option = option.long(long.to_owned());
        }
        if let Some(number) = arg.get_num_args() {
            option = option.num_args(number);
        }
        option
    });
    let shape = Command::new("").args(options).allow_external_subcommands(true).disable_help_subcommand(true);
    let shape = shape.external_subcommand_value_parser(clap::value_parser!(OsString));
    let matches = shape.try_get_matches_from(words).ok()?;
    let (_, behind) = matches.subcommand()?;
    Some(1 + behind.get_many::<OsString>("").map_or(0, Iterator::count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn ordered(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = command_first(&cli::command(), words);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_command_behind_options_goes_before_them() {
        for (line, first) in [
            ("reqtop --theme nord demo", "reqtop demo --theme nord"),
            ("reqtop --grpc 1 --http=2 demo --rate 3", "reqtop demo --grpc 1 --http=2 --rate 3"),
            ("reqtop --ascii report FILE", "reqtop report --ascii FILE"),
            ("reqtop --color 16 --mouse=false replay a b", "reqtop replay --color 16 --mouse=false a b"),
            ("reqtop --config c config", "reqtop config --config c"),
            ("reqtop --from jaeger http://j:1 --since 5m report", "reqtop report --from jaeger http://j:1 --since 5m"),
            ("reqtop -f demo", "reqtop demo -f"),
            // A value that is wrong, or that is called like a command.
            ("reqtop --max-memory lots check demo", "reqtop check --max-memory lots demo"),
            ("reqtop --filter demo demo", "reqtop demo --filter demo"),
        ] {
            assert_eq!(ordered(line), first);
        }
        for line in [
            "reqtop",
            "reqtop demo --theme nord",
            "reqtop report demo",
            "reqtop a.jsonl demo",
            "reqtop --theme nord ./demo",
            "reqtop --theme nord -- demo",
            "reqtop --theme demo",
            "reqtop --ascii a.jsonl",
            "reqtop --theme nord --help demo",
            "reqtop --nonsense demo",
            "reqtop -",
        ] {
            assert_eq!(ordered(line), line);
        }
    }
}
