//! Files that this program writes: for their owner alone, never through a symbolic link, never over what is there unless
//! asked to, and never half of one.
//!
//! What is written holds what others sent: prompts, names, ids. It may lie where others can write, too. It is written beside
//! its place, as `.NAME.PID.unfinished`, and takes its name once it is whole. Owns: making such a file. Keeps out: what is
//! written.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Refuse,
    /// The new one takes its place, once it is whole.
    Replace,
}

/// A new file that its owner alone may read and write. A symbolic link of that name, even to nowhere, is something that is
/// there already.
///
/// # Errors
/// When something is there already, or no file can be made.
pub fn create_private(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32;
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// Whether [`write_private`] would be let, as far as can be told before there is something to write.
///
/// # Errors
/// A sentence about this file: why not, and what to do.
pub fn check(path: &Path, existing: Existing) -> Result<(), String> {
    let named = |error: &dyn Display| format!("{}: {error}", path.display());
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(named(&"is a symbolic link, which is not followed; name the file itself"))
        }
        Ok(found) if !found.is_file() => Err(named(&"is there already and no file; choose another name")),
        Ok(_) if existing == Existing::Refuse => {
            Err(named(&"is there already; choose another name, or --force to replace it"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(named(&"there is no such folder"))
            }
            _ => Ok(()),
        },
        Err(error) => Err(named(&error)),
    }
}

/// Writes a file whole or leaves none by its name. A signal that ends the program takes away what was begun; a kill leaves
/// it beside.
///
/// # Errors
/// A sentence about this file: why it could not be written, and what to do. What was there is then as it was.
pub fn write_private(
    path: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), String> {
    check(path, existing)?;
    write(path, existing, fill).map_err(|error| match error.kind() {
        // It came while this was written.
        ErrorKind::AlreadyExists => format!("{}: is there already by now; choose another name", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

fn write(path: &Path, existing: Existing, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // Before there is something to remove: a signal that comes in between waits.
    let signals = Signals::new(ending())?;
    let (aside, file) = beside(path)?;
    let signals = remove_when_ended(&aside, signals)?;
    let written = finish(&aside, file, path, existing, fill);
    signals.close();
    written
}

/// Writes a new file whole or leaves nothing, for a program that hears signals itself and lets this end first.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when something of that name is there; else why it could not be written.
pub fn write_new(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let (aside, file) = beside(path)?;
    finish(&aside, file, path, Existing::Refuse, fill)
}

/// Fills the file beside and gives it its name, or removes it.
fn finish(
    aside: &Path,
    mut file: File,
    path: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let written = fill(&mut file).and_then(|()| file.sync_all()).and_then(|()| match existing {
        Existing::Refuse => move_to_new(aside, path),
        Existing::Replace => fs::rename(aside, path),
    });
    if written.is_err() {
        let _ = fs::remove_file(aside);
    }
    written
}

/// The signals that are asked to end a program with. A hangup that it was started to outlive (`nohup`) is none.
fn ending() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM, SIGQUIT];
    signals.extend(hangs_up().then_some(SIGHUP));
    signals
}

/// Whether a hangup ends this process, as far as the system tells (Linux does).
fn hangs_up() -> bool {
    let ignored = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|ignored| ignored & (1 << (SIGHUP - 1)) == 0)
}

/// A new file beside another one.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.to_string_lossy();
    // It must not become longer than a name may be.
    let name: String = name.chars().take(50).collect();
    let pid = std::process::id();
    // In containers each process may have the number of one that was killed before.
    let endings = (0..100).map(|number| if number == 0 { format!("{pid}") } else { format!("{pid}-{number}") });
    for ending in endings {
        let aside = path.with_file_name(format!(".{name}.{ending}.unfinished"));
        match create_private(&aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((aside, made?)),
        }
    }
    Err(io::Error::other("unfinished files of this name are beside it already; remove them"))
}

/// Gives a file a name that nothing else has.
fn move_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => claim(from, to),
    }
}

/// The same where a file has one name only: the name is taken first, and what takes it is replaced.
fn claim(from: &Path, to: &Path) -> io::Result<()> {
    create_private(to)?;
    fs::rename(from, to).inspect_err(|_| drop(fs::remove_file(to)))
}

/// Removes a file when one of these signals asks the process to end, which it then does; until the handle is closed.
fn remove_when_ended(path: &Path, mut signals: Signals) -> io::Result<Handle> {
    let handle = signals.handle();
    let path = path.to_owned();
    std::thread::Builder::new().name("unfinished".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = fs::remove_file(&path);
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_for_its_owner_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_private(&path, Existing::Refuse, |file| file.write_all(b"one")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = write_private(&path, Existing::Refuse, |file| file.write_all(b"two")).unwrap_err();
        assert!(error.contains("out: is there already") && error.contains("--force"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_private(&path, Existing::Replace, |file| file.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["out"], "nothing is left beside it");
    }

    #[test]
    fn nothing_half_has_the_name_and_what_comes_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for existing in [Existing::Refuse, Existing::Replace] {
            write_private(&path, existing, |file| {
                file.write_all(b"half")?;
                let name = names(folder.path()).concat();
                assert!(name.starts_with(".out.") && name.ends_with(".unfinished"), "{name}");
                let beside = fs::metadata(folder.path().join(&name))?;
                assert_eq!(beside.permissions().mode() & 0o777, 0o600);
                file.write_all(b" and whole")
            })
            .unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"half and whole");
            fs::remove_file(&path).unwrap();
            let error = write_private(&path, existing, |_| Err(io::Error::other("full"))).unwrap_err();
            assert!(error.ends_with("out: full"), "{error}");
            assert_eq!(names(folder.path()), Vec::<String>::new());
        }
        let error = write_private(&path, Existing::Refuse, |_| fs::write(&path, b"theirs")).unwrap_err();
        assert!(error.contains("is there already"), "{error}");
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["out".to_owned()], b"theirs".to_vec()));
        // What another process of this number left beside is in nobody's way; nor is a long name too long.
        let stale = folder.path().join(format!(".new.{}.unfinished", std::process::id()));
        fs::write(&stale, b"stale").unwrap();
        let long = "ü".repeat(120);
        for name in ["new", &long] {
            write_private(&folder.path().join(name), Existing::Refuse, |file| file.write_all(b"new")).unwrap();
        }
        assert_eq!(fs::read(stale).unwrap(), b"stale");
        assert_eq!(names(folder.path()).len(), 4);
    }

    /// Set for the tests below when they run as the process that writes.
    const HALF: &str = "REQTOP_TEST_HALF_A_FILE";

    /// Writes until it is ended, or until the file `end` is beside.
    fn write_on(path: &Path) {
        let _ = write_private(path, Existing::Refuse, |file| {
            file.write_all(b"half")?;
            while !path.with_file_name("end").exists() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        });
    }

    #[test]
    fn a_process_that_is_asked_to_end_leaves_nothing() {
        if let Some(path) = std::env::var_os(HALF) {
            return write_on(Path::new(&path));
        }
        let folder = tempfile::tempdir().unwrap();
        // Run under nohup, this outlives a hangup, and so does what it starts.
        let hangup = hangs_up().then_some(Signal::HUP);
        for signal in [Signal::INT, Signal::TERM, Signal::QUIT].into_iter().chain(hangup) {
            let name = "writing::tests::a_process_that_is_asked_to_end_leaves_nothing";
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args([name, "--exact"]).env(HALF, folder.path().join("out")).stdout(Stdio::null());
            let mut child = command.spawn().unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while names(folder.path()).is_empty() {
                assert!(Instant::now() < deadline, "nothing is written");
                std::thread::yield_now();
            }
            kill_process(Pid::from_child(&child), signal).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
            assert_eq!(names(folder.path()), Vec::<String>::new());
        }
    }

    #[test]
    fn a_hangup_that_was_to_be_outlived_is() {
        if let Some(path) = std::env::var_os(HALF) {
            return write_on(Path::new(&path));
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        command.args(["writing::tests::a_hangup_that_was_to_be_outlived_is", "--exact"]);
        let mut child = command.env(HALF, folder.path().join("out")).stdout(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while names(folder.path()).is_empty() {
            assert!(Instant::now() < deadline, "nothing is written");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        fs::write(folder.path().join("end"), "").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(names(folder.path()), ["end", "out"]);
    }

    #[test]
    fn a_file_system_of_single_names_has_new_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("from"), b"new").unwrap();
        claim(&at("from"), &at("to")).unwrap();
        assert_eq!((names(folder.path()), fs::read(at("to")).unwrap()), (vec!["to".to_owned()], b"new".to_vec()));
        fs::write(at("from"), b"newer").unwrap();
        assert_eq!(claim(&at("from"), &at("to")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(at("to")).unwrap(), b"new");
        // A folder cannot be linked, and takes no file's place.
        fs::create_dir(at("folder")).unwrap();
        assert!(move_to_new(&at("folder"), &at("other")).is_err());
        assert_eq!(names(folder.path()), ["folder", "from", "to"]);
    }

    #[test]
    fn no_link_is_followed_and_nothing_but_a_file_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, nowhere) = (folder.path().join("target"), folder.path().join("nowhere"));
        fs::write(&target, b"precious").unwrap();
        for to in [&target, &nowhere] {
            let link = folder.path().join("link");
            symlink(to, &link).unwrap();
            for existing in [Existing::Refuse, Existing::Replace] {
                let error = write_private(&link, existing, |_| Ok(())).unwrap_err();
                assert!(error.contains("symbolic link"), "{error}");
            }
            assert_eq!(create_private(&link).unwrap_err().kind(), ErrorKind::AlreadyExists);
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert!(!nowhere.exists());
        for (path, word) in [("/dev/full", "no file"), ("/", "no file"), ("/proc/none/x", "no such folder")] {
            let error = write_private(Path::new(path), Existing::Replace, |_| Ok(())).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(names(folder.path()), ["target"]);
    }
}
