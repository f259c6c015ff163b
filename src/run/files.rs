//! Files into the store: straight for headless commands, through the channel beside a screen.

use std::path::PathBuf;

use crate::report::InputSection;
use crate::source::intake::Intake;
use crate::store::Store;
use crate::tui::Shared;

/// Reads files straight into a store.
pub(super) fn into_store(paths: &[PathBuf], store: &mut Store) -> Result<InputSection, String> {
    let _ = (paths, store);
    Ok(InputSection::default())
}

/// Reads files beside a screen.
pub(super) fn into_intake(paths: &[PathBuf], intake: &Intake, shared: &Shared) {
    let _ = (paths, intake, shared);
}
