//! Seeded chance: the distributions and ids everything random is drawn from. Keeps out: any other source of randomness.

use fastrand::Rng;

/// A seeded source of chance.
pub struct Chance(Rng);

impl Chance {
    /// A source of its own for `purpose`, so that what one part draws never shifts what another part draws.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self(Rng::with_seed(mix(seed ^ mix(purpose))))
    }

    /// True with probability `p`.
    pub fn happens(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }

    /// Uniform within `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.u64(low..=high)
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.0.f64()).ln() * mean
    }

    /// Log-normal with this median; about 95 % lie within `spread²` of it either way.
    pub fn around(&mut self, median: f64, spread: f64) -> f64 {
        let normal = (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0;
        median * spread.powf(normal)
    }

    /// Any number but 0.
    pub fn id(&mut self) -> u64 {
        self.0.u64(1..)
    }

    /// A trace id.
    pub fn trace_id(&mut self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.id().to_be_bytes());
        id[8..].copy_from_slice(&self.id().to_be_bytes());
        id
    }

    /// A span id.
    pub fn span_id(&mut self) -> [u8; 8] {
        self.id().to_be_bytes()
    }

    /// A random (version 4) UUID's text.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.0.u64(..), self.0.u64(..));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

/// Spreads a number over all 64 bits (splitmix64): equal in, equal out.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
