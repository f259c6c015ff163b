//! Spoiling good input in the ways that find what parsers forget: flips, cuts, splices, wrong lengths, repeated pieces.
//! Seeded: the same seed spoils the same way.

/// Numbers that stand at the edge of something.
const EDGES: [u8; 8] = [0, 1, 0x0a, 0x12, 0x7f, 0x80, 0xfe, 0xff];

/// The longest output, bytes.
const LONGEST: usize = 64 << 10;

pub struct Mutator {
    pub rng: fastrand::Rng,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed) }
    }

    /// One of the corpus, spoiled in one to four places; now and then as it is.
    pub fn from(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.rng.usize(..corpus.len())].clone();
        for _ in 0..self.rng.usize(..5) {
            self.spoil(&mut bytes, corpus);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    /// A piece of at most `most` bytes.
    fn piece(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let from = self.rng.usize(..=length);
        from..(from + self.rng.usize(..=most)).min(length)
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let rng = &mut self.rng;
        let at = rng.usize(..=bytes.len());
        match rng.u8(..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
            1 if at < bytes.len() => bytes[at] = EDGES[rng.usize(..EDGES.len())],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(self.piece(bytes.len(), 64))),
            4 => {
                let piece = self.piece(bytes.len(), 256);
                let piece = bytes[piece].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &corpus[rng.usize(..corpus.len())];
                let piece = self.piece(other.len(), 512);
                bytes.splice(at..at, other[piece].iter().copied());
            }
            6 => {
                // Where a length may stand: one that is too small, too large, or far too large.
                let length: &[u8] = match rng.u8(..4) {
                    0 => &[0],
                    1 => &[0xff, 0x01],
                    2 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                    _ => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                };
                let end = (at + usize::from(rng.bool())).min(bytes.len());
                bytes.splice(at..end, length.iter().copied());
            }
            7 => {
                // The same piece again and again.
                let piece = self.piece(bytes.len(), 16);
                let piece = bytes[piece].repeat(self.rng.usize(1..200));
                bytes.splice(at..at, piece);
            }
            _ => {
                let noise: Vec<u8> = (0..rng.usize(..16)).map(|_| rng.u8(..)).collect();
                bytes.splice(at..at, noise);
            }
        }
        bytes.truncate(LONGEST);
    }
}
