//! What memory really costs: the account of a store is only worth something if it is what the system sees.

/// The bytes that an allocation of this size takes with the system's allocator: a header of eight bytes, in steps of
/// sixteen, 32 at least (glibc and its like). Nothing for nothing.
#[inline]
pub const fn chunk(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = (bytes + 8 + 15) & !15;
    if rounded < 32 { 32 } else { rounded }
}

/// The bytes that a `Vec` of this many items takes.
#[inline]
pub const fn chunk_of<T>(items: usize) -> usize {
    chunk(items * size_of::<T>())
}

/// The bytes that an entry of a hash table takes: tables are between seven sixteenths and seven eighths full, two thirds
/// on average, and keep a byte beside each place.
#[inline]
pub const fn entry<T>() -> usize {
    (size_of::<T>() + 1) * 3 / 2
}
