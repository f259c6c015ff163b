//! Settings: where each comes from, and what is said when the file is wrong.

use std::ffi::OsString;

use super::resolve::{file_options, is_there, said};
use super::{Kind, Mode, Refusal, Until, default_file, faults, file, meet, remote, resolve, setup, store};
use crate::cli::{self, Cli, Command};
use crate::tui::action::{Action, Place};
use crate::tui::keymap::Keymap;
use crate::tui::keys::Key;

/// What the file's text comes to, or what is wrong with it.
fn read(text: &str) -> Result<file::File, Vec<(usize, String)>> {
    let command = cli::command();
    file::parse(text, &command, &file_options(&command))
}

fn wrong(text: &str) -> Vec<String> {
    read(text).unwrap_err().into_iter().map(|(line, what)| format!("{line}: {what}")).collect()
}

/// The command line over a settings file of this text.
fn asked(text: &str, words: &[&str]) -> Result<Cli, Refusal> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    let all = words.iter().map(|word| OsString::from(*word)).chain(["--config".into(), path.into()]);
    resolve(std::iter::once("reqtop".into()).chain(all))
}

#[test]
fn the_file_goes_before_the_default_and_the_flag_before_the_file() {
    let file = "theme = 'nord'\nascii = true\nmax-memory = '64MiB'\ngrpc = 5317\nwindow = '1m'\n\
                allow-origin = ['https://a', 'https://b']\n[keys]\npause = 'F9'\n";
    let cli = asked(file, &[]).unwrap();
    let look = &cli.dashboard.look;
    assert_eq!((look.theme.as_deref(), look.ascii, look.window), (Some("nord"), true, cli::Window::Minute));
    assert_eq!(cli.dashboard.keep.max_memory, Some(64 << 20));
    assert_eq!(cli.dashboard.listen.grpc.as_deref(), Some("5317"));
    assert_eq!(cli.dashboard.listen.allow_origin, ["https://a", "https://b"]);
    assert_eq!(look.keys.find(Key::parse("F9").unwrap(), Place::Live), Some(Action::Pause));
    let cli = asked(file, &["--theme", "light", "--ascii=false", "--allow-origin", "https://c"]).unwrap();
    assert_eq!((cli.dashboard.look.theme.as_deref(), cli.dashboard.look.ascii), (Some("light"), false));
    assert_eq!(cli.dashboard.listen.allow_origin, ["https://c"]);
    assert!(asked("", &["--ascii"]).unwrap().dashboard.look.ascii);
}

#[test]
fn what_is_set_for_the_dashboard_is_no_trap_elsewhere() {
    let file = "grpc = 5317\nfilter = 'outcome:failed'\nmax-memory = '64MiB'\ntheme = 'nord'\n";
    let Some(Command::Demo(demo)) = asked(file, &["demo"]).unwrap().command else { panic!() };
    assert_eq!((demo.listen.grpc.as_deref(), demo.look.theme.as_deref()), (Some("0"), Some("nord")));
    let Some(Command::Check(check)) = asked(file, &["check", "x.jsonl"]).unwrap().command else { panic!() };
    assert_eq!((check.input.filter, check.input.keep.max_memory), (None, Some(64 << 20)));
    assert_eq!(check.input.endpoint.grpc.as_deref(), Some("5317"));
}

#[test]
fn what_is_recorded_and_passed_on_may_stand_in_the_file() {
    let file = "record = '/tmp/r.jsonl'\nrecord-max = '9MiB'\nforward = 'grpcs://c'\nforward-gzip = true\n\
                forward-header = ['A=hush']\nforward-ca = '/ca.pem'\n";
    let onward = |words: &[&str]| asked(file, words).unwrap().dashboard.onward;
    let all = onward(&[]);
    assert_eq!((all.record.as_deref(), all.record_max), (Some("/tmp/r.jsonl".as_ref()), Some(9 << 20)));
    assert_eq!((all.forward.as_deref(), all.forward_gzip, all.record_keep), (Some("grpcs://c"), true, Some(4)));
    assert!(!onward(&["--forward-gzip=false"]).forward_gzip);
    // Of files nothing is received; elsewhere it would be a trap.
    let none = onward(&["x.jsonl"]);
    assert_eq!((none.record, none.forward), (None, None));
    assert_eq!(onward(&["x.jsonl", "--forward", "grpc://d"]).forward.as_deref(), Some("grpc://d"));
    let Some(Command::Demo(demo)) = asked(file, &["demo"]).unwrap().command else { panic!() };
    assert_eq!((demo.onward.record, demo.onward.forward), (None, None));
    // How without what is a mistake of the command line, not of the file.
    assert!(asked("record-max = '9MiB'", &[]).is_ok());
    let refused = asked("", &["--record-max", "9MiB"]).unwrap_err();
    assert!(
        matches!(&refused, Refusal::Usage(error) if error.to_string().contains("--record is not there")),
        "{refused:?}"
    );
    assert!(asked("record = '/tmp/r'", &["--record-max", "9MiB"]).is_ok());
    // What is sent along is not shown.
    let Some(Command::Config(config)) = asked(file, &["config"]).unwrap().command else { panic!() };
    assert!(!config.shown.contains("hush") && config.shown.contains("# forward-header = …"), "{}", config.shown);
    // Nor who it is sent as; where it is used, such an address is refused.
    let asked = asked("forward = 'https://me:hush@far:1/x'\ntrace-url = 'http://x/@{trace}'\n", &["config"]).unwrap();
    let Some(Command::Config(config)) = asked.command else { panic!() };
    assert!(!config.shown.contains("hush") && config.shown.contains("# forward = …"), "{}", config.shown);
    assert!(config.shown.contains("trace-url = \"http://x/@{trace}\""), "{}", config.shown);
}

#[test]
fn what_could_never_work_is_told() {
    for (text, told) in [
        ("mouse = 'yes'", "1: mouse: expected true or false, found \"yes\""),
        ("mouse = 1", "1: mouse: expected true or false, found \"1\""),
        ("max-message = 0", "1: max-message: expected at least 1KiB, found \"0\""),
        ("\nallow-origin = ['https://a', 'https://a/b']", "2: allow-origin: expected an origin as browsers send it, "),
    ] {
        let all = wrong(text);
        assert!(all.len() == 1 && all[0].starts_with(told), "{all:?}");
    }
    for words in [["--allow-origin", "foo"], ["--max-message", "0"]] {
        let Err(Refusal::Usage(error)) = asked("", &words) else { panic!("taken: {words:?}") };
        assert!(said(error).contains("expected a"), "{words:?}");
    }
    // What a command line takes for true is shown as what may stand in the file.
    let Some(Command::Config(config)) = asked("", &["config", "--mouse=yes"]).unwrap().command else { panic!() };
    assert!(config.shown.lines().any(|line| line.starts_with("mouse = true ")), "{}", config.shown);
}

#[test]
fn mistakes_are_told_with_their_lines_and_what_was_meant() {
    let text = "thme = 'nord'\nmax-memory = 'lots'\nascii = 'perhaps'\nwindow = '7m'\ngrpc = { port = 1 }\nkeys = 3\n\
                theme = ['a', 'b']\nfollow = true\n";
    let (told, last) = (wrong(text), "8: no setting is called follow: expected one of grpc, http, ");
    assert_eq!(
        told[..7],
        [
            "1: no setting is called thme: did you mean theme?",
            "2: max-memory: expected a size such as 512MiB, found \"lots\"",
            "3: ascii: expected true or false, found \"perhaps\"",
            "4: window: expected one of 10s, 1m, 5m, all, found \"7m\"",
            "5: grpc: expected a text, a number, true or false, found table",
            "6: keys is a section: [keys]",
            "7: theme: expected one value, found 2",
        ]
    );
    assert!(told.len() == 8 && told[7].starts_with(last), "{told:?}");
    let keys = "[keys]\npuase = 'x'\nquit = 3\nfollow = 'Ctrl+x'\nsort = 'p'\n[keys.request-scren]\nraw = 'x'\n\
                [keys.menus]\nzoom = 'x'\n";
    let told = wrong(keys);
    for (line, part) in [
        ("2: ", "no action is called puase: did you mean pause?"),
        ("3: ", "quit: expected a key or keys"),
        ("4: ", "no key is called \"Ctrl+x\": expected a character, Enter"),
        ("5: ", "p does both pause and sort at first-screen; give one of them another key, or none: pause = []"),
        ("6: ", "no place is called request-scren: did you mean request-screen?"),
        ("9: ", "zoom does nothing at menus"),
    ] {
        assert!(told.iter().any(|told| told.starts_with(line) && told.contains(part)), "{part} in {told:#?}");
    }
    assert_eq!(told.len(), 6, "{told:#?}");
    assert!(wrong("theme = \n= 3")[0].starts_with("1: no TOML: "));
    let Err(Refusal::File(lines)) = asked("\nthme = 'x'", &[]) else { panic!("taken") };
    assert!(lines[0].ends_with("config.toml:2: no setting is called thme: did you mean theme?"), "{lines:?}");
    // What prints without a screen and without data does its work all the same.
    assert!(asked("\nthme = 'x'", &["keys"]).is_ok() && asked("\nthme = 'x'", &["config", "--default"]).is_ok());
    assert!(matches!(resolve(["reqtop", "--config", "/none/such.toml"].map(Into::into)), Err(Refusal::File(_))));
}

#[test]
fn the_default_file_says_what_holds_anyway() {
    let text = default_file();
    let untouched = read(&text).unwrap();
    assert!(untouched.values.is_empty() && untouched.choices.is_empty());
    // With every setting taken out of its comment.
    let set: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let file = read(&set).unwrap();
    let command = cli::command();
    let options = file_options(&command);
    let with_default = options.iter().filter(|option| !option.get_default_values().is_empty()).count();
    assert_eq!((file.values.len(), file.keys), (with_default, Keymap::default()), "{set}");
    let dashboard = |text: &str| {
        let mut dashboard = asked(text, &[]).unwrap().dashboard;
        let keys = std::mem::take(&mut dashboard.look.keys);
        (format!("{dashboard:?}"), keys)
    };
    assert!(dashboard(&set) == dashboard(""), "{set}");
    // Every option is in it.
    for option in &options {
        assert!(text.contains(&format!("{} = ", file::name(option))), "{}", file::name(option));
    }
    assert!(text.lines().all(|line| line.chars().count() <= 220), "{text}");
}

#[test]
fn where_each_setting_comes_from_is_shown() {
    let file = "theme = 'nord'\nmax-memory = '64MiB'\n\n[keys]\npause = ['F9']\n[keys.request-screen]\npause = 'x'\n";
    let Some(Command::Config(config)) = asked(file, &["config", "--theme", "light", "--ascii"]).unwrap().command else {
        panic!()
    };
    let row = |name: &str| config.shown.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("theme").contains("\"light\"") && row("theme").ends_with("# flag"), "{}", config.shown);
    assert!(row("max-memory").contains("\"64MiB\"") && row("max-memory").ends_with("# file, line 2"));
    assert!(row("ascii").contains("true") && row("ascii").ends_with("# flag"));
    assert!(row("grpc").contains("\"4317\"") && row("grpc").ends_with("# default"));
    assert!(row("# filter").ends_with("# not set"));
    assert!(config.shown.contains("[keys]\npause = [\"F9\"]  # file, line 5"), "{}", config.shown);
    assert!(config.shown.contains("[keys.request-screen]\npause = [\"x\"]  # file, line 7"));
    // It is a settings file itself.
    assert!(read(&config.shown).is_ok());
}

#[test]
fn the_look_comes_to_a_setup_or_says_why_not() {
    let look = |words: &[&str]| asked("", words).unwrap().dashboard.look;
    let nothing = |_: &str| None;
    let made = setup(&look(&["--filter", "outcome:failed", "--window", "10s", "--theme", "nord"]), nothing).unwrap();
    assert_eq!((made.filter.text(), made.window.word(), &*made.theme.name), ("outcome:failed", "10 s", "nord"));
    let refused = |words: &[&str]| setup(&look(words), nothing).err().unwrap();
    assert!(refused(&["--filter", "outcme:failed"]).contains("--filter: "));
    assert!(refused(&["--theme", "norde"]).contains("did you mean nord?"));
}

#[test]
fn faults_are_told_in_a_mode_and_shape_that_can() {
    let ask = |names: &[&str], mode, aggregated| {
        faults(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), mode, aggregated)
    };
    let names = |kinds: Result<Vec<&Kind>, String>| kinds.unwrap().iter().map(|kind| kind.name).collect::<Vec<_>>();
    assert_eq!(names(ask(&["wrong-best", "lost-root", "wrong-best"], Mode::Core, true)), ["lost-root", "wrong-best"]);
    let all = names(ask(&[cli::ALL_FAULTS], Mode::Core, true));
    assert!(all.contains(&"core-with-candidates") && !all.contains(&"lost-prefill") && all.len() > 40);
    assert!(ask(&["core-with-candidates"], Mode::Investigation, true).unwrap_err().contains("--mode core"));
    assert!(ask(&["lost-prefill"], Mode::Core, true).unwrap_err().contains("two pools"));
}

#[test]
fn a_store_is_read_from_the_command_line() {
    const NOW: u64 = 1_700_000_000_000_000_000;
    let ask = |words: &[&str]| {
        let cli =
            <cli::Cli as clap::Parser>::try_parse_from([&["reqtop"], words].concat()).map_err(|e| e.to_string())?;
        store(&cli.dashboard.from, None, Until::Ever, NOW)
    };
    assert!(ask(&[]).unwrap().is_none());
    let url = "http://127.0.0.1:16686";
    let jaeger = ask(&["--from", "jaeger", url, "--service", "a", "--service", "b"]).unwrap().unwrap();
    assert_eq!((jaeger.kind, jaeger.name().as_str()), (remote::Kind::Jaeger, "Jaeger http://127.0.0.1:16686"));
    assert_eq!((jaeger.since_ns, jaeger.until), (NOW - 3_600_000_000_000, Until::Ever));
    assert_eq!(jaeger.search.services, ["a", "b"]);
    let tempo = ask(&[
        "--from",
        "Tempo",
        url,
        "--since",
        "2023-11-14T22:00:00Z",
        "--until",
        "10s",
        "--attribute",
        "k=v=w",
        "--from-header",
        "Authorization=Bearer hush",
    ]);
    let tempo = tempo.unwrap().unwrap();
    assert_eq!((tempo.since_ns, tempo.until), (NOW - 800_000_000_000, Until::At(NOW - 10_000_000_000)));
    assert_eq!(tempo.search.attributes, [("k".to_owned(), "v=w".to_owned())]);
    assert!(!format!("{tempo:?}").contains("hush"));
    for (words, word) in [
        (&["--from", "zipkin", url][..], "jaeger or tempo"),
        (&["--from", "jaeger", "ftp://x"], "scheme"),
        (&["--from", "jaeger", url, "--attribute", "a=b"], "--filter"),
        (&["--from", "tempo", url, "--attribute", "a"], "KEY=VALUE"),
        (&["--from", "tempo", url, "--since", "yesterday"], "--since: expected a time"),
        (&["--from", "tempo", url, "--since", "1m", "--until", "2m"], "after --since"),
        (&["--from", "tempo", url, "--traceql", "{}", "--service", "a"], "cannot be used with"),
        (&["--service", "a"], "--from"),
    ] {
        let error = ask(words).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn settings_that_cannot_be_reached_are_not_taken_for_none() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("there"), "").unwrap();
    symlink(at("loop"), at("loop")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    assert!(is_there(&at("there")).unwrap());
    for none in ["none", "no/such", "there/config.toml"] {
        assert!(!is_there(&at(none)).unwrap(), "{none}");
    }
    for (name, why) in [("loop", "symbolic link"), ("loop/config.toml", "symbolic link"), ("dangling", "not there")] {
        let Err(Refusal::File(lines)) = is_there(&at(name)) else { panic!("{name}") };
        assert!(lines[0].contains(name) && lines[0].contains(why) && lines[0].contains("--config FILE"), "{lines:?}");
    }
}

#[test]
fn a_settings_file_is_read_within_bounds() {
    let read = |path: &std::path::Path| {
        let command = cli::command();
        file::read(path, &command, &file_options(&command)).unwrap_err()
    };
    assert_eq!(read("/dev/zero".as_ref()), ["/dev/zero: larger than 1024 KiB, so no settings"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let told = |text: String| {
        std::fs::write(&path, text).unwrap();
        read(&path)
    };
    let keys = |count: usize| (0..count).map(|key| format!("k{key} = 'x'\n")).collect::<String>();
    for section in ["", "[keys]\n", "[keys.menus]\n"] {
        let told = told(format!("{section}{}", keys(60_000)));
        assert!(told.len() == 1 && told[0].contains(" settings and keys, more than 2000"), "{told:?}");
    }
    for text in [keys(1000), "= 3\n".repeat(1000)] {
        let told = told(text);
        assert!(told.len() == 101 && told[0].contains("config.toml:1: "), "{}", told[0]);
        assert!(told[100].contains("config.toml: and ") && told[100].ends_with("00 further mistakes"), "{}", told[100]);
    }
}

#[test]
fn what_is_said_of_the_command_line_does_not_act_on_a_terminal() {
    for words in [
        &["reqtop", "--window=\u{1b}[31m\n::error::x"][..],
        &["reqtop", "--\u{1b}[31m\n::error::x"],
        &["reqtop", "report", "--format\u{1b}[31m\n::error::x"],
        &["reqtop", "report", "a", "--window", "\u{1b}[31m\n::error::x"],
        &["reqtop", "report", "a", "--max-memory", "\u{1b}[31m\n::error::x"],
    ] {
        let Err(Refusal::Usage(error)) = resolve(words.iter().map(OsString::from)) else { panic!("{words:?}") };
        let said = said(error);
        assert!(said.starts_with("error: ") && said.contains("[31m"), "{said:?}");
        assert!(!said.contains('\u{1b}') && !said.contains("\n::"), "{said:?}");
    }
    let Err(Refusal::Usage(help)) = resolve(["reqtop".into(), "--help".into()]) else { panic!() };
    let plain = help.render().to_string();
    assert_eq!(said(help), plain);
}

#[test]
fn what_nobody_can_listen_on_twice_is_told() {
    for (one, other, both) in [
        ("4317", "4317", true),
        ("4317", "4318", false),
        ("0", "0", false),
        ("4317", "127.0.0.1:4317", true),
        ("4317", "127.0.0.2:4317", false),
        ("4317", "0.0.0.0:4317", true),
        ("[::]:4317", "10.0.0.1:4317", true),
        ("0.0.0.0:4317", "[::1]:4317", false),
        ("10.0.0.1:4317", "10.0.0.2:4317", false),
    ] {
        let (first, second) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!((meet(first, second), meet(second, first)), (both, both), "{one} {other}");
    }
}

#[test]
fn options_may_stand_before_the_command_that_has_them() {
    let Some(Command::Demo(demo)) = asked("", &["--theme", "nord", "--grpc", "1", "demo"]).unwrap().command else {
        panic!("no demo")
    };
    assert_eq!((demo.look.theme.as_deref(), demo.listen.grpc.as_deref()), (Some("nord"), Some("1")));
    let Err(Refusal::Usage(error)) = asked("", &["--ascii", "report", "x.jsonl"]) else { panic!("not refused") };
    assert!(said(error).contains("'--ascii'"));
    let files = asked("", &["--ascii", "./demo"]).unwrap().dashboard.files;
    assert_eq!(files, [std::path::PathBuf::from("./demo")]);
}
