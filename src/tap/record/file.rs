//! The file of a recording: whose it is, how it is mended, how it grows and goes over into the next one.
//!
//! A recording is read by others than us and lies where others may write: it is made for its owner alone, never through a
//! symbolic link, and what is there already is taken up only if it is a recording of the same user. Owns: all that. Keeps
//! out: what the lines say (`super`).

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;

/// The longest first line that is looked at to tell a recording.
const LONGEST: u64 = 256 << 20;
/// Bytes looked at at once while searching backwards for a line feed.
const CHUNK: u64 = 64 << 10;

/// How a recording lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines.
    Plain,
    /// Gzip members of whole lines.
    Gzip,
    /// Zstandard frames of whole lines.
    Zstd,
}

impl Form {
    /// The form that a file's name asks for.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// Whole lines as they lie in the file: each pack can be read without those after it.
    pub fn pack(self, lines: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(lines.to_vec()),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(lines.len() / 8), Compression::new(3));
                encoder.write_all(lines)?;
                encoder.finish()
            }
            Self::Zstd => zstd::stream::encode_all(lines, 3),
        }
    }

    fn magic(self) -> &'static [u8] {
        match self {
            Self::Plain => b"{",
            Self::Gzip => &[0x1f, 0x8b],
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
        }
    }
}

/// A recording that is written.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    form: Form,
    file: File,
    size: u64,
}

impl RecordFile {
    /// Begins a recording, or takes up one that is there: a torn end is cut off, of which the note tells. `is_ours` says
    /// of a whole line whether it is one of a recording.
    ///
    /// # Errors
    /// Why this file cannot be recorded to, and what to do.
    pub fn open(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<(Self, Option<String>), String> {
        let form = Form::of(path);
        let named = |words: &str| format!("--record {}: {words}", path.display());
        match create(path) {
            Ok(file) => {
                lock(&file).map_err(|words| named(&words))?;
                return Ok((Self { path: path.to_owned(), form, file, size: 0 }, None));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(named(&error.to_string())),
        }
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).custom_flags(flags()).open(path);
        let mut file = opened.map_err(|error| match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => named("is a symbolic link, which is not followed; name the file itself"),
            _ => named(&error.to_string()),
        })?;
        let found = file.metadata().map_err(|error| named(&error.to_string()))?;
        if !found.is_file() {
            return Err(named("is no file"));
        }
        if found.uid() != rustix::process::geteuid().as_raw() || found.nlink() != 1 {
            return Err(named("belongs to another user or has another name; choose a new one"));
        }
        lock(&file).map_err(|words| named(&words))?;
        let size = found.len();
        if size > 0 && !starts_as_recording(&mut file, form, is_ours).unwrap_or(false) {
            let kind = match form {
                Form::Plain => "is no recording of reqtop",
                Form::Gzip | Form::Zstd => "is no recording of reqtop in this compression",
            };
            return Err(named(&format!("{kind}, and is not written over; choose a new name")));
        }
        let whole = whole_size(&mut file, form, size).map_err(|error| named(&error.to_string()))?;
        if whole < size {
            file.set_len(whole).map_err(|error| named(&error.to_string()))?;
        }
        let torn = size - whole;
        let note = (torn > 0).then(|| {
            format!("{}: its end was torn when it was last written; {torn} bytes were cut off", path.display())
        });
        Ok((Self { path: path.to_owned(), form, file, size: whole }, note))
    }

    /// How it lies in the file.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a pack; what could not be written whole is taken back as far as that can be done.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn add(&mut self, pack: &[u8]) -> io::Result<()> {
        let added = self.file.write_all(pack);
        if added.is_err() {
            let _ = self.file.set_len(self.size);
        } else {
            self.size += pack.len() as u64;
        }
        added
    }

    /// Puts what was recorded aside under a name with this time, and begins anew; keeps the newest `keep` of those put
    /// aside.
    ///
    /// # Errors
    /// Why that could not be done; the recording is then as it was.
    pub fn turn_over(&mut self, now_ns: u64, keep: usize) -> io::Result<()> {
        let aside = Aside::of(&self.path);
        let mut target = aside.name(now_ns);
        // A name that is taken is not written over.
        for later in 1..1000 {
            if fs::symlink_metadata(&target).is_err() {
                break;
            }
            target = aside.name(now_ns + later * 1_000_000);
        }
        self.file.sync_data()?;
        fs::rename(&self.path, &target)?;
        let file = create(&self.path)?;
        // Of a file that was just made nobody else has a lock.
        let _ = file.try_lock();
        (self.file, self.size) = (file, 0);
        aside.thin(keep)
    }

    /// Makes sure that everything is on the disk.
    ///
    /// # Errors
    /// It is not.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32
}

/// A new file for its owner alone. A link by this name, even to nowhere, is something that exists.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).custom_flags(flags()).open(path)
}

fn lock(file: &File) -> Result<(), String> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err("another program is recording to it".into()),
        // A file system without locks has none to keep us out.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether the first line is one of a recording.
fn starts_as_recording(file: &mut File, form: Form, is_ours: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut source = BufReader::new(&*file);
    if !source.fill_buf()?.starts_with(form.magic()) {
        return Ok(false);
    }
    let inflated: Box<dyn Read + '_> = match form {
        Form::Plain => Box::new(source),
        Form::Gzip => Box::new(GzDecoder::new(source)),
        Form::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
    };
    let mut line = Vec::new();
    BufReader::new(inflated).take(LONGEST).read_until(b'\n', &mut line)?;
    Ok(line.pop() == Some(b'\n') && is_ours(&line))
}

/// The bytes up to the end of the last whole line, member or frame.
fn whole_size(file: &mut File, form: Form, size: u64) -> io::Result<u64> {
    if form == Form::Plain {
        return last_line_end(file, size);
    }
    file.seek(SeekFrom::Start(0))?;
    let mut source = BufReader::with_capacity(CHUNK as usize, &*file);
    let mut whole = 0;
    while !source.fill_buf()?.is_empty() {
        let read = match form {
            Form::Zstd => {
                let mut frame = zstd::stream::read::Decoder::with_buffer(&mut source)?.single_frame();
                io::copy(&mut frame, &mut io::sink())
            }
            _ => io::copy(&mut GzDecoder::new(&mut source), &mut io::sink()),
        };
        if read.is_err() {
            break;
        }
        whole = source.stream_position()?;
    }
    Ok(whole)
}

fn last_line_end(file: &mut File, size: u64) -> io::Result<u64> {
    let mut end = size;
    let mut bytes = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        bytes.clear();
        (&*file).take(end - start).read_to_end(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The names of what is put aside: `run.jsonl.gz` becomes `run-20261130T060000.000Z.jsonl.gz`.
struct Aside<'a> {
    path: &'a Path,
    stem: String,
    ending: String,
}

impl<'a> Aside<'a> {
    fn of(path: &'a Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
        let (stem, ending) = name.split_at(dot);
        Self { path, stem: stem.to_owned(), ending: ending.to_owned() }
    }

    fn name(&self, time_ns: u64) -> PathBuf {
        let time = jiff::Timestamp::from_nanosecond(i128::from(time_ns)).unwrap_or_default();
        let time = time.strftime("%Y%m%dT%H%M%S%.3fZ");
        self.path.with_file_name(format!("{}-{time}{}", self.stem, self.ending))
    }

    /// Whether a name is one of these.
    fn is(&self, name: &str) -> bool {
        let time = name.strip_prefix(&self.stem).and_then(|rest| rest.strip_suffix(&self.ending));
        let shape = "-00000000T000000.000Z";
        time.is_some_and(|time| {
            time.len() == shape.len()
                && time.bytes().zip(shape.bytes()).all(|(c, of)| if of == b'0' { c.is_ascii_digit() } else { c == of })
        })
    }

    /// Removes all but the newest `keep`.
    fn thin(&self, keep: usize) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut names: Vec<PathBuf> = fs::read_dir(folder)?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| self.is(name)))
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|entry| entry.path())
            .collect();
        names.sort();
        let over = names.len().saturating_sub(keep);
        names.iter().take(over).try_for_each(fs::remove_file)
    }
}

#[cfg(test)]
impl RecordFile {
    /// A file that cannot be written to.
    pub fn broken(path: &Path) -> Self {
        fs::write(path, "").unwrap();
        Self { path: path.to_owned(), form: Form::of(path), file: File::open(path).unwrap(), size: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn ours(line: &[u8]) -> bool {
        line.starts_with(b"{ours")
    }

    fn open(path: &Path) -> Result<(RecordFile, Option<String>), String> {
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
            let (mut file, note) = open(&path).unwrap();
            assert_eq!((note, file.size()), (None, 0));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(open(&path).unwrap_err().contains("another program"), "{name}");
            file.add(&file.form().pack(b"{ours:1}\n").unwrap()).unwrap();
            file.add(&file.form().pack(b"{ours:2}\n").unwrap()).unwrap();
            let whole = file.size();
            drop(file);
            let torn = Form::of(&path).pack(b"{ours:3, but torn}\n").unwrap();
            let mut raw = OpenOptions::new().append(true).open(&path).unwrap();
            raw.write_all(&torn[..torn.len() - 3]).unwrap();
            let (mut file, note) = open(&path).unwrap();
            assert!(note.unwrap().contains("cut off"));
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
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
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
}
