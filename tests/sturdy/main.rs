//! Nothing breaks it: faults of senders, networks, files and terminals, each scripted. `cargo test` runs the short forms;
//! `tests/sturdy/faults` runs the long ones one after the other and prints a table of what was seen.

#[path = "../common/mod.rs"]
mod common;
mod house;
mod http2;

use std::time::Instant;

/// How much of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Seconds, for every day.
    Short,
    /// Minutes, at full size.
    Long,
}

impl Form {
    /// One or the other.
    pub fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }
}

/// Every fault: the file it is in, its function, and what it is in words. Each is a test of its own in its short form.
macro_rules! faults {
    ($($room:ident { $($fault:ident: $words:literal;)+ })+) => {
        $(mod $room;)+
        $($(#[test]
        fn $fault() {
            println!("{}", told($words, $room::$fault, Form::Short));
        })+)+
        const ALL: &[(&str, fn(Form) -> String)] = &[$($(($words, $room::$fault)),+),+];
    };
}

faults! {
    bounds {
        bombs: "compression bombs: every coding, both protocols, many at once";
        nested_bombs: "bombs of many members, frames and codings";
        heads: "heads too large: address, headers, header lists";
        crumbs: "bodies in crumbs of one byte";
        huge_values: "huge values, deep values, very many attributes";
        truncated: "bodies cut anywhere, over both protocols";
    }
    abuse {
        resets: "HTTP/2: requests taken back as fast as they are made";
        floods: "HTTP/2: floods of pings, settings, empty frames and continuations";
        streams: "HTTP/2: more requests at once than there may be";
    }
    slow {
        slow_writers: "heads, bodies and handshakes that drip";
        slow_readers: "peers that ask and never read";
        half_open: "peers that are gone without a word";
        keepalive: "pings on an idle connection, then an export (B31)";
    }
    crowds {
        many_connections: "very many connections at once";
        too_many_connections: "more connections than there may be";
        no_descriptors: "no file descriptors left";
    }
    senders {
        killed_senders: "senders killed and started again";
        restarted_receiver: "the receiver goes and comes back";
        stopped_sides: "SIGSTOP and SIGCONT on either side";
    }
    clocks {
        jumps: "clocks that jump";
    }
    disk {
        full_disk: "no room for the output";
        places: "links, files that are there, other people's eyes";
    }
    screens {
        stopped: "Ctrl-Z, SIGTSTP and SIGCONT (B51)";
        sizes: "terminals of any size, 0×0 among them, on every screen (B53)";
        scrolling: "scrolling over wide and combining characters (B53)";
        gone: "the terminal is gone";
        stalled: "the terminal reads nothing";
        idle: "nothing comes in (B55)";
    }
    heavy {
        days: "days of requests, a trace without end, orphans (B61)";
        huge_line: "a line of tens of thousands of spans (B67)";
    }
}

/// A row of the table.
fn told(words: &str, fault: fn(Form) -> String, form: Form) -> String {
    let begun = Instant::now();
    let seen = std::panic::catch_unwind(|| fault(form));
    let took = begun.elapsed().as_secs_f64();
    match seen {
        Ok(seen) => format!("| {words} | {seen} | {took:.1} |"),
        Err(panic) if form == Form::Short => std::panic::resume_unwind(panic),
        Err(_) => format!("| {words} | **FAILED** | {took:.1} |"),
    }
}

/// All of them in their long form, and a table.
#[test]
#[ignore = "takes minutes: tests/sturdy/faults"]
fn long_form() {
    println!("| fault | seen | s |\n|---|---|---|");
    let mut failed = 0;
    for (words, fault) in ALL {
        let row = told(words, *fault, Form::Long);
        failed += usize::from(row.contains("**FAILED**"));
        println!("{row}");
    }
    assert_eq!(failed, 0, "faults that broke something");
}
