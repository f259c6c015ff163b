//! Editing one line of text: what the filter line and the palette have in common.

use tui_input::{Input, InputRequest};

use crate::tui::action::Action;

/// What an action came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// It is none of a line.
    None,
    /// The cursor moved.
    Moved,
    /// The text may be another one.
    Changed,
}

/// Does an action on the line.
pub fn edit(input: &mut Input, action: Action) -> Edit {
    let (request, edit) = match action {
        Action::Clear => {
            input.reset();
            return Edit::Changed;
        }
        Action::Left => (InputRequest::GoToPrevChar, Edit::Moved),
        Action::Right => (InputRequest::GoToNextChar, Edit::Moved),
        Action::Top => (InputRequest::GoToStart, Edit::Moved),
        Action::Bottom => (InputRequest::GoToEnd, Edit::Moved),
        Action::Erase => (InputRequest::DeletePrevChar, Edit::Changed),
        Action::EraseNext => (InputRequest::DeleteNextChar, Edit::Changed),
        Action::EraseWord => (InputRequest::DeletePrevWord, Edit::Changed),
        _ => return Edit::None,
    };
    input.handle(request);
    edit
}

/// Puts typed or pasted text in.
pub fn insert(input: &mut Input, text: &str) {
    for c in text.chars().filter(|c| !c.is_control()) {
        input.handle(InputRequest::InsertChar(c));
    }
}

/// The byte of the text at which the cursor stands.
pub fn byte_cursor(input: &Input) -> usize {
    input.value().char_indices().nth(input.cursor()).map_or(input.value().len(), |(at, _)| at)
}
