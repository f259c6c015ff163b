//! Disks that are full, and places that are not what they seem.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use crate::Form;
use crate::common::{self, fixture};

const COMMANDS: [&[&str]; 4] = [&["export"], &["report"], &["report", "--json"], &["check", "--format", "junit"]];

/// No room for the output: it is said, and the exit status says so, too.
pub fn full_disk(_: Form) -> String {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return "skipped: there is no /dev/full".into() };
    let capture = fixture("evidence-agg.traces.jsonl.gz");
    for args in COMMANDS {
        let mut command = common::binary();
        command.args(args).arg(&capture).stdout(full.try_clone().unwrap()).stderr(Stdio::piped());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("the output is not whole") && said.contains("space"), "{args:?}: {said}");
        // Nor where nothing can be said at all.
        let mut command = common::binary();
        command.args(args).arg(&capture).stdout(full.try_clone().unwrap()).stderr(full.try_clone().unwrap());
        assert_eq!(command.status().unwrap().code(), Some(2), "{args:?}");
    }
    let small = small_disk();
    let Some(small) = &small else { return "said, exit status 2; a small disk of its own was not permitted".into() };
    let kept = small.path.join("kept");
    fs::write(&kept, "precious").unwrap();
    for force in [&[][..], &["--force"]] {
        let target = if force.is_empty() { small.path.join("new") } else { kept.clone() };
        let output = common::binary().args(["export", "-o"]).arg(&target).args(force).arg(&capture).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--output") && said.contains("space"), "{said}");
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "precious");
    assert_eq!(fs::read_dir(&small.path).unwrap().count(), 1, "nothing half is left");
    "said, exit status 2; what was there stays, nothing half is left".into()
}

/// A file system of 64 KiB; unmounted when dropped.
struct Small {
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

fn small_disk() -> Option<Small> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    fs::create_dir(&path).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&path).stderr(Stdio::null());
    let mounted = mount.status().is_ok_and(|status| status.success());
    mounted.then_some(Small { path, _folder: folder })
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.path).status();
    }
}

/// What is written is for its owner, goes through no link and over nothing.
pub fn places(_: Form) -> String {
    let folder = tempfile::tempdir().unwrap();
    let capture = fixture("evidence-agg.traces.jsonl.gz");
    let run = |args: &[&str], path: &Path| {
        let output = common::binary().args(args).arg("-o").arg(path).arg(&capture).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout.len())
    };
    for (at, args) in COMMANDS.into_iter().enumerate() {
        let path = folder.path().join(format!("out-{at}"));
        let (status, said, printed) = run(args, &path);
        assert!(matches!(status, Some(0 | 1)) && printed == 0, "{said}");
        assert!(fs::metadata(&path).unwrap().len() > 200);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let before = fs::read(&path).unwrap();
        let (status, said, _) = run(args, &path);
        assert!(status == Some(2) && said.contains("is there already") && said.contains("--force"), "{said}");
        let (status, said, _) = run(&[args, &["--force"]].concat(), &path);
        assert!(matches!(status, Some(0 | 1)), "{said}");
        assert_eq!(fs::read(&path).unwrap().len(), before.len());
    }
    let (precious, link) = (folder.path().join("precious"), folder.path().join("link"));
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &link).unwrap();
    for force in [&["export"][..], &["export", "--force"]] {
        let (status, said, _) = run(force, &link);
        assert!(status == Some(2) && said.contains("symbolic link"), "{said}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    let (status, said, _) = run(&["export"], &folder.path().join("no/such/folder"));
    assert!(status == Some(2) && said.contains("no such folder"), "{said}");
    "0600; links, files that are there and devices are refused".into()
}
