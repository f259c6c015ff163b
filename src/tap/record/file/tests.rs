//! Files of recordings among what others do to them.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn ours(line: &[u8]) -> bool {
    line.starts_with(b"{ours")
}

fn open(path: &Path) -> Result<(RecordFile, Vec<String>), String> {
    RecordFile::open(path, ours)
}

#[test]
fn what_others_have_put_there_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "{ours}\n").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::hard_link(at("precious"), at("hard")).unwrap();
    fs::write(at("other"), "{\"a\":1}\n").unwrap();
    fs::write(at("torn"), "{ours").unwrap();
    fs::write(at("plain.gz"), "{ours}\n").unwrap();
    for (name, said) in [
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("hard", "another name"),
        ("other", "no recording"),
        ("torn", "no recording"),
        ("plain.gz", "in this compression"),
        ("", "directory"),
        ("no/such", "No such file"),
    ] {
        let error = open(&at(name)).unwrap_err();
        assert!(error.contains(said), "{name}: {error}");
    }
    assert_eq!(fs::read_to_string(at("precious")).unwrap(), "{ours}\n");
    assert!(!at("nowhere").exists());
}

#[test]
fn a_recording_is_its_owners_alone_and_is_taken_up_where_it_was_whole() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
        let path = folder.path().join(name);
        let (mut file, notes) = open(&path).unwrap();
        assert_eq!((notes.len(), file.size()), (0, 0));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open(&path).unwrap_err().contains("another program"), "{name}");
        file.add(&file.form().pack(b"{ours:1}\n").unwrap()).unwrap();
        file.add(&file.form().pack(b"{ours:2}\n").unwrap()).unwrap();
        let whole = file.size();
        drop(file);
        let torn = Form::of(&path).pack(b"{ours:3, but torn}\n").unwrap();
        let mut raw = OpenOptions::new().append(true).open(&path).unwrap();
        raw.write_all(&torn[..torn.len() - 3]).unwrap();
        let (mut file, notes) = open(&path).unwrap();
        assert!(notes.len() == 1 && notes[0].contains("cut off"), "{notes:?}");
        assert_eq!(file.size(), whole, "{name}");
        file.add(&file.form().pack(b"{ours:4}\n").unwrap()).unwrap();
        let bytes = fs::read(&path).unwrap();
        let text = match file.form() {
            Form::Plain => bytes,
            Form::Zstd => zstd::stream::decode_all(&bytes[..]).unwrap(),
            Form::Gzip => {
                let mut text = Vec::new();
                flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
                text
            }
        };
        assert_eq!(text, b"{ours:1}\n{ours:2}\n{ours:4}\n");
    }
}

#[test]
fn what_is_put_aside_keeps_its_order_and_only_the_newest_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    fs::write(folder.path().join("run-notes.jsonl"), "mine").unwrap();
    let (mut file, _) = open(&path).unwrap();
    for line in 0..5 {
        file.add(format!("{{ours:{line}}}\n").as_bytes()).unwrap();
        // Two in the same millisecond have two names.
        file.turn_over(1_796_000_000_000_000_000 + line / 2 * 1_000_000_000, 3).unwrap();
    }
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let aside = |time: &str| format!("run-20261129T{time}Z.jsonl");
    let expected = ["003321.000", "003321.001", "003322.000"].map(aside);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(names.len(), 5, "{names:?}");
    let kept: Vec<String> = names[..3].iter().map(|name| text(name)).collect();
    assert_eq!(kept, ["{ours:2}\n", "{ours:3}\n", "{ours:4}\n"], "{names:?} {expected:?}");
    assert_eq!(text("run-notes.jsonl"), "mine");
    assert_eq!((text("run.jsonl").as_str(), file.size()), ("", 0));
}

#[test]
fn what_is_open_to_others_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("empty", ""), ("own", "{ours}\n")] {
        for (mode, told) in [(0o666, true), (0o640, true), (0o600, false)] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (_, notes) = open(&path).unwrap();
            assert_eq!(notes.iter().any(|note| note.contains("open to others: chmod 600")), told, "{name} {mode:o}");
        }
    }
}

#[test]
fn what_others_do_to_it_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
        let (path, aside) = (folder.path().join(name), folder.path().join("aside"));
        let add = |file: &mut RecordFile, lines: &str| {
            let pack = file.form().pack(lines.as_bytes()).unwrap();
            file.add(&pack).unwrap();
        };
        let (mut file, _) = open(&path).unwrap();
        add(&mut file, "{ours:0}\n");
        drop(file);
        let (mut file, _) = open(&path).unwrap();
        add(&mut file, "{ours:1}\n{ours:2}\n");
        let whole = file.size();
        add(&mut file, "{ours:3}\n");
        assert_eq!(file.look().unwrap(), Found::Whole, "{name}");
        // Within the last line or pack.
        File::options().write(true).open(&path).unwrap().set_len(file.size() - 2).unwrap();
        assert_eq!(file.look().unwrap(), Found::Cut, "{name}");
        assert_eq!((file.take_up(|_| true).unwrap(), file.size()), (2, whole), "{name}");
        assert_eq!(file.look().unwrap(), Found::Whole, "{name}");
        // To nothing, and something after that; what was there before us is no longer told from it.
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        add(&mut file, "{ours:4}\n");
        assert_eq!(file.look().unwrap(), Found::Cut, "{name}");
        assert!(file.take_up(|_| true).unwrap() <= 1, "{name}");
        assert_eq!(file.look().unwrap(), Found::Whole, "{name}");
        fs::rename(&path, &aside).unwrap();
        assert_eq!(file.look().unwrap(), Found::Moved, "{name}");
        fs::write(&path, "").unwrap();
        assert_eq!(file.look().unwrap(), Found::Moved, "{name}");
        fs::remove_file(&aside).unwrap();
        assert_eq!(file.look().unwrap(), Found::Removed, "{name}");
    }
}
