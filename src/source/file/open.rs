//! Opening inputs: files or standard input, inflated while they are read. Owns: magic numbers of compression, counting
//! bytes as they lie in the file. Keeps out: what the content is (`sniff`).

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::Input;

/// Bytes read from the system at once.
const CHUNK: usize = 64 << 10;

/// An input that can be read.
pub(super) struct Opened {
    /// Its content, inflated.
    pub reader: Box<dyn Read>,
    /// Bytes read so far, as they lie in the file.
    pub read: Rc<Cell<u64>>,
}

/// The size of an input as it lies there; `None` when that cannot be told.
pub(super) fn size(input: &Input) -> Option<u64> {
    match input {
        Input::Stdin => None,
        Input::Part { from, to, .. } => Some(to.saturating_sub(*from)),
        // A file that is not there adds nothing; opening it will tell.
        Input::File(path) => Some(fs::metadata(path).map_or(0, |file| file.len())),
    }
}

pub(super) fn open(input: &Input) -> io::Result<Opened> {
    let source: Box<dyn Read> = match input {
        Input::Stdin => Box::new(io::stdin().lock()),
        Input::File(path) => Box::new(File::open(path)?),
        Input::Part { path, from, to } => {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*from))?;
            Box::new(file.take(to.saturating_sub(*from)))
        }
    };
    let read = Rc::new(Cell::new(0));
    let mut source = BufReader::with_capacity(CHUNK, Counted { source, read: Rc::clone(&read) });
    let reader: Box<dyn Read> = match source.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(source)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
        _ => Box::new(source),
    };
    Ok(Opened { reader, read })
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
