//! Opening inputs: files or standard input, inflated while they are read. Owns: magic numbers of compression, counting
//! bytes as they lie in the file. Keeps out: what the content is (`sniff`).

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::Input;
use super::flow::Flow;
use super::frames::ZSTD;

/// Bytes read from the system at once.
const CHUNK: usize = 64 << 10;
/// Bytes that tell the compression.
const MAGIC: usize = 4;
/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How a zstd frame that holds nothing begins, behind a byte from 0x50 to 0x5f.
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// An input that can be read.
pub(super) struct Opened {
    /// Its content, inflated. Before it waits for more, it says [`ErrorKind::WouldBlock`] once.
    pub reader: Box<dyn Read>,
    /// Bytes read so far, as they lie in the file.
    pub read: Rc<Cell<u64>>,
}

/// The size of an input as it lies there; `None` when that cannot be told.
pub(super) fn size(input: &Input) -> Option<u64> {
    match input {
        Input::Stdin => None,
        Input::Flow(held) => held.0.size(),
        // A file that is not there adds nothing; opening it will tell.
        Input::File(path) => Some(fs::metadata(path).map_or(0, |file| file.len())),
    }
}

pub(super) fn open(input: &Input) -> io::Result<Opened> {
    let source: Box<dyn Read> = match input {
        Input::Stdin => Box::new(Flow::new(io::stdin().as_fd().try_clone_to_owned()?.into(), None)),
        Input::File(path) => Box::new(Flow::new(File::open(path)?, None)),
        Input::Flow(held) => held.0.reader()?,
    };
    let read = Rc::default();
    Ok(Opened { reader: inflated(source, Rc::clone(&read))?, read })
}

/// What a source holds, inflated as its first bytes ask for; what is read of it is counted.
pub(super) fn inflated(source: Box<dyn Read>, read: Rc<Cell<u64>>) -> io::Result<Box<dyn Read>> {
    let mut source = Counted { source, read };
    let magic = magic(&mut source)?;
    let is_gzip = magic.starts_with(&GZIP);
    let is_zstd = magic.starts_with(&ZSTD) || is_skipped(&magic);
    let source = BufReader::with_capacity(CHUNK, io::Cursor::new(magic).chain(source));
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(source)),
        (_, true) => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
        _ => Box::new(source),
    })
}

/// The first bytes: as many as it takes to tell, however few a pipe gives at once.
fn magic(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = [0; MAGIC];
    let mut there = 0;
    while there < MAGIC && may_be_packed(&magic[..there]) {
        match source.read(&mut magic[there..]) {
            Ok(0) => break,
            Ok(count) => there += count,
            // Nothing is there yet that could be shown.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(magic[..there].to_vec())
}

/// Whether what begins so may be compressed.
fn may_be_packed(begin: &[u8]) -> bool {
    let is_skipped = match begin {
        [] => true,
        [first, rest @ ..] => matches!(first, 0x50..=0x5f) && SKIPPED.starts_with(rest),
    };
    is_skipped || GZIP.starts_with(begin) || ZSTD.starts_with(begin)
}

/// Whether a zstd frame begins here that holds nothing: `pzstd` and seekable files write them, and so may come first. The
/// decoder goes over it.
fn is_skipped(magic: &[u8]) -> bool {
    matches!(magic, [0x50..=0x5f, rest @ ..] if *rest == SKIPPED)
}

/// Counts what is read.
struct Counted<R> {
    source: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}
