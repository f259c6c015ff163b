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
use flate2::bufread::{GzDecoder, MultiGzDecoder};
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

    /// All lines of a source.
    fn inflate<'s>(self, source: impl BufRead + 's) -> io::Result<Box<dyn Read + 's>> {
        Ok(match self {
            Self::Plain => Box::new(source),
            Self::Gzip => Box::new(MultiGzDecoder::new(source)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
        })
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
    /// Its bytes before this program wrote to it.
    begun: u64,
}

/// What has become of a file while it was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is as it was written.
    Whole,
    /// It goes by another name; none or another file has its own.
    Moved,
    /// It has no name any more: it is gone once it is closed.
    Removed,
    /// It is shorter than what was written.
    Cut,
}

impl RecordFile {
    /// Begins a recording, or takes up one that is there: a torn end is cut off, of which a note tells, as one does of a file
    /// that is open to others. `is_ours` says of a whole line whether it is one of a recording.
    ///
    /// # Errors
    /// Why this file cannot be recorded to, and what to do.
    pub fn open(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<(Self, Vec<String>), String> {
        let form = Form::of(path);
        let named = |words: &str| format!("--record {}: {words}", path.display());
        match create(path) {
            Ok(file) => {
                lock(&file).map_err(|words| named(&words))?;
                return Ok((Self { path: path.to_owned(), form, file, size: 0, begun: 0 }, Vec::new()));
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
        let shown = path.display();
        let mut notes = Vec::new();
        if torn > 0 {
            notes.push(format!("{shown}: its end was torn when it was last written; {torn} bytes were cut off"));
        }
        if found.mode() & 0o077 != 0 {
            notes.push(format!("the recording {shown} is open to others: chmod 600 {shown}"));
        }
        Ok((Self { path: path.to_owned(), form, file, size: whole, begun: whole }, notes))
    }

    /// Looks what has become of the file.
    ///
    /// # Errors
    /// That cannot be told.
    pub fn look(&self) -> io::Result<Found> {
        let own = self.file.metadata()?;
        let is_own = |named: fs::Metadata| (named.dev(), named.ino()) == (own.dev(), own.ino());
        Ok(match fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            true if own.len() < self.size => Found::Cut,
            true => Found::Whole,
            false if own.nlink() == 0 => Found::Removed,
            false => Found::Moved,
        })
    }

    /// Takes up what is left after it was cut, up to the end of its last whole line; gives how many lines of a kind in it this
    /// program has written.
    ///
    /// # Errors
    /// It cannot be read or mended.
    pub fn take_up(&mut self, is_one: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
        let size = self.file.metadata()?.len();
        let whole = whole_size(&mut self.file, self.form, size)?;
        self.file.set_len(whole)?;
        (self.size, self.begun) = (whole, self.begun.min(whole));
        self.file.seek(SeekFrom::Start(self.begun))?;
        let lines = self.form.inflate(BufReader::with_capacity(CHUNK as usize, &self.file))?;
        let (mut lines, mut line, mut count) = (BufReader::new(lines), Vec::new(), 0);
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                // Where it was cut and written again no pack may begin where ours did: it is told as lost.
                Ok(0) | Err(_) => return Ok(count),
                Ok(_) => count += u64::from(line.ends_with(b"\n") && is_one(&line)),
            }
        }
    }

    /// Its bytes that this program has written.
    pub fn written(&self) -> u64 {
        self.size - self.begun
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
            // Cut, never made longer than others have left it.
            if self.file.metadata().is_ok_and(|file| file.len() > self.size) {
                let _ = self.file.set_len(self.size);
            }
        } else {
            self.size += pack.len() as u64;
        }
        added
    }

    /// Puts what was recorded aside under a name with this time, and begins anew; keeps the newest `keep` of those put
    /// aside and gives the names of the one that came and of those that went.
    ///
    /// # Errors
    /// Why that could not be done; the recording is then as it was.
    pub fn turn_over(&mut self, now_ns: u64, keep: usize) -> io::Result<(PathBuf, Vec<PathBuf>)> {
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
        (self.file, self.size, self.begun) = (file, 0, 0);
        Ok((target, aside.thin(keep)?))
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
    let mut line = Vec::new();
    BufReader::new(form.inflate(source)?).take(LONGEST).read_until(b'\n', &mut line)?;
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

    /// Removes all but the newest `keep`; gives what was removed.
    fn thin(&self, keep: usize) -> io::Result<Vec<PathBuf>> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut names: Vec<PathBuf> = fs::read_dir(folder)?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| self.is(name)))
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(|entry| entry.path())
            .collect();
        names.sort();
        let over = names.len().saturating_sub(keep);
        names.truncate(over);
        names.iter().try_for_each(fs::remove_file)?;
        Ok(names)
    }
}

#[cfg(test)]
impl RecordFile {
    /// A file that cannot be written to.
    pub fn broken(path: &Path) -> Self {
        fs::write(path, "").unwrap();
        Self { path: path.to_owned(), form: Form::of(path), file: File::open(path).unwrap(), size: 0, begun: 0 }
    }
}

#[cfg(test)]
mod tests;
