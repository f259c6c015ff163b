//! Memory that was given up goes back to the system.
//!
//! glibc keeps what was freed below anything still in use: after old requests have made room for one huge trace, the process
//! would stay as large as both. Owns: when the allocator is asked to give back, the crate's one foreign call, and who frees
//! what is large. Keeps out: what is held and what goes (`store`).

use std::time::{Duration, Instant};

/// How often the system is asked how much is resident, at most.
const LOOKED_AT: Duration = Duration::from_millis(200);

/// What may be resident beyond what is accounted before it is worth a pause, bytes.
const WORTH: usize = 32 << 20;

/// From how many requests on what was counted of them is large.
const LARGE: usize = 10_000;

/// Gives up what was counted of so many requests: of many on a thread of its own, since freeing its millions of pieces takes
/// longer than a key may wait.
pub fn give_up<T: Send + 'static>(requests: usize, counted: T) {
    if requests >= LARGE {
        // Where no thread can be had, it is freed here.
        _ = std::thread::Builder::new().name("giving up".into()).spawn(move || drop(counted));
    }
}

/// How resident memory stands against what is held.
#[derive(Default)]
pub struct Heap {
    looked: Option<Instant>,
    /// What was resident beyond what is held when that was least: the program itself, and what the allocator must keep.
    least: usize,
}

impl Heap {
    /// Asks the allocator to give back when much more is resident than the `held` bytes. To be called by the writer, without
    /// the store's lock: it may take some milliseconds. Where the system tells nothing or the allocator cannot, nothing is
    /// done.
    pub fn follow(&mut self, held: usize) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOKED_AT) {
            return;
        }
        self.looked = Some(Instant::now());
        let Some(beyond) = resident().map(|resident| resident.saturating_sub(held)) else { return };
        self.least = self.least.min(beyond);
        if beyond > self.least + WORTH.max(held / 8) {
            give_back();
            self.least = resident().map_or(beyond, |resident| resident.saturating_sub(held));
        }
    }
}

/// Resident memory of this process, bytes; `None` where the system does not tell.
fn resident() -> Option<usize> {
    /// Of every Linux that runs on machines with glibc's default pages; a larger page only makes this look sooner.
    const PAGE: usize = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * PAGE)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    #[expect(
        unsafe_code,
        reason = "the declaration of a C function; calling it is safe: it takes a number and no pointer"
    )]
    // SAFETY: glibc's malloc_trim(3) is `int malloc_trim(size_t)`, is thread-safe and touches only free memory.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> i32;
    }
    malloc_trim(0);
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
