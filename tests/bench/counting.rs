//! An allocator that counts what is in use, as the system's allocator rounds it (glibc: a header of 8 bytes, chunks of 16
//! bytes, 32 at least), while counting is switched on. Off, it costs one load, so that it favours nobody in timed lines.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicIsize = AtomicIsize::new(0);

fn chunk(size: usize) -> isize {
    ((size + 8 + 15) & !15).max(32) as isize
}

fn count(bytes: isize) {
    if ON.load(Relaxed) {
        IN_USE.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes on to the system's allocator with the very arguments that came; counting touches no memory
// but two atomics and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(chunk(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(chunk(layout.size()));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-chunk(layout.size()));
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(chunk(size) - chunk(layout.size()));
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Counts from here on.
pub fn start() {
    IN_USE.store(0, Relaxed);
    ON.store(true, Relaxed);
}

/// What has been allocated and not freed since [`start`], bytes.
pub fn in_use() -> usize {
    IN_USE.load(Relaxed).max(0) as usize
}

/// Counts no longer.
pub fn stop() {
    ON.store(false, Relaxed);
}

/// Resident memory of this process, bytes.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}
