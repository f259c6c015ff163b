//! Every action in one table: its id, its keys, what it does, where it works. Keys, `?` and the footer read it.

/// Where keys go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Place {
    /// The first screen.
    Live,
    /// A pane that has the keys.
    Pane,
    /// The request screen.
    Request,
    /// A long text.
    Reader,
    /// A menu.
    Menu,
    /// The key help.
    Help,
    /// The checks pane.
    Checks,
    /// The filter line, where characters are text.
    FilterLine,
    /// The command palette, where characters are text.
    Palette,
}

impl Place {
    /// Every place with its name.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Live, "first screen"),
        (Self::Pane, "panes"),
        (Self::Request, "request screen"),
        (Self::Checks, "checks pane"),
        (Self::Reader, "long texts"),
        (Self::Menu, "menus"),
        (Self::Help, "key help"),
        (Self::FilterLine, "filter line"),
        (Self::Palette, "command palette"),
    ];

    /// Its name for people.
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(place, _)| *place == self).map_or("", |(_, title)| title)
    }

    /// Its name in the key file.
    pub fn id(self) -> String {
        self.title().replace(' ', "-")
    }

    /// Whether characters are text there.
    pub fn takes_text(self) -> bool {
        matches!(self, Self::FilterLine | Self::Palette)
    }
}

/// What can be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs, reason = "the table says it")]
pub enum Action {
    Open,
    Pick,
    Filter,
    Pause,
    Earlier,
    Later,
    MuchEarlier,
    MuchLater,
    FirstMoment,
    LastMoment,
    Bookmark,
    Bookmarks,
    Export,
    Sort,
    Reverse,
    Follow,
    NextPart,
    PrevPart,
    Zoom,
    Shorter,
    Longer,
    Queue,
    Selection,
    Dispatch,
    Streaming,
    Requests,
    Workers,
    Sessions,
    Story,
    Raw,
    Copy,
    CopyTrace,
    CopySpan,
    Link,
    Notices,
    Checks,
    Up,
    Down,
    Left,
    Right,
    HalfUp,
    HalfDown,
    PageUp,
    PageDown,
    Top,
    Bottom,
    NextRequest,
    PrevRequest,
    Accept,
    FilterBy,
    DropTerm,
    Complete,
    Clear,
    Erase,
    EraseNext,
    EraseWord,
    Back,
    Help,
    Palette,
    Theme,
    Mouse,
    Redraw,
    Suspend,
    Quit,
}

/// A row of the table.
pub struct Row {
    /// The action.
    pub action: Action,
    /// Its id, for key settings.
    pub id: &'static str,
    /// Its keys; the first is shown in the footer.
    pub keys: &'static [&'static str],
    /// What it does, for `?`.
    pub doc: &'static str,
    /// A word for the footer; empty to leave it out there.
    pub word: &'static str,
    /// Where it works.
    pub places: &'static [Place],
}

macro_rules! actions {
    ($($action:ident $id:literal [$($key:literal)+] $word:literal $doc:literal in [$($place:ident)+];)+) => {
        /// The table, in the order of the footer.
        pub static ACTIONS: &[Row] = &[
            $(Row {
                action: Action::$action, id: $id, keys: &[$($key),+], doc: $doc, word: $word,
                places: &[$(Place::$place),+],
            }),+
        ];
    };
}

actions! {
    Open "open" ["Enter"] "open" "open the request; read the whole value; choose" in [Live Request Menu Checks Palette];
    Pick "pick" ["Enter"] "filter by it" "add what the cursor stands on to the filter" in [Pane];
    Accept "accept" ["Enter"] "keep" "keep the filter" in [FilterLine];
    Complete "complete" ["Tab"] "complete" "take the completion" in [FilterLine];
    Filter "filter" ["/" "F3" "F4"] "filter" "edit the filter" in [Live Pane];
    FilterBy "filter-by" ["="] "" "add the attribute's value to the filter" in [Request];
    DropTerm "filter-drop" ["Backspace"] "" "take the filter's last term off" in [Live Pane];
    Clear "clear" ["C-u"] "clear" "empty the line" in [FilterLine Palette];
    Erase "erase" ["Backspace" "C-h"] "" "erase the character before" in [FilterLine Palette];
    EraseNext "erase-next" ["Del"] "" "erase the character under the cursor" in [FilterLine Palette];
    EraseWord "erase-word" ["C-w"] "" "erase the word before" in [FilterLine Palette];
    Pause "pause" ["p" "Space"] "pause" "freeze what is shown, or go on; data still comes in" in [Live Request Pane];
    Sort "sort" ["s" "F6" ">"] "sort" "choose the column to sort by; the same one again turns it round; on the checks, the violated ones first" in [Live Checks];
    Reverse "reverse" ["S" "I"] "" "turn the order round" in [Live];
    Follow "follow" ["f"] "follow" "follow the first row, or hold the chosen request" in [Live];
    NextPart "next-part" ["Tab"] "pane" "go to the next pane or part" in [Live Pane Request];
    PrevPart "previous-part" ["S-Tab"] "" "go to the pane or part before" in [Live Pane Request];
    Left "fold" ["←" "h" "-"] "" "fold the span, or go to its parent; in a pane or text, one left" in [Request FilterLine Pane Palette];
    Right "unfold" ["→" "l" "+"] "" "unfold the span; in a pane or text, one right" in [Request FilterLine Pane Palette];
    Zoom "zoom" ["z"] "zoom" "give the pane or the list the whole screen, or take it back" in [Live Pane];
    Shorter "window-shorter" ["["] "" "look back less far: 5 m, 1 m, 10 s" in [Live Pane];
    Longer "window-longer" ["]"] "window" "look back farther" in [Live Pane];
    Queue "pane-queue" ["1"] "" "the queue" in [Live Pane];
    Selection "pane-selection" ["2"] "" "the router's choices" in [Live Pane];
    Dispatch "pane-dispatch" ["3"] "" "attempts, results, migrations, admissions" in [Live Pane];
    Streaming "pane-streaming" ["4"] "" "streams and who left when" in [Live Pane];
    Requests "pane-requests" ["5"] "" "the request list" in [Live Pane];
    Workers "pane-workers" ["w" "6"] "workers" "workers and their ranks" in [Live Pane];
    Sessions "pane-sessions" ["a" "7"] "sessions" "agent sessions" in [Live Pane];
    Story "story" ["t"] "story" "read the request's whole story" in [Request];
    Raw "raw" ["v"] "raw" "show the span as OTLP JSON; of a check, its latest violation whole" in [Request Checks];
    Copy "copy" ["y"] "copy id" "copy the request id; in a long text, the text" in [Live Request Reader];
    CopyTrace "copy-trace" ["Y"] "" "copy the trace id" in [Live Request];
    CopySpan "copy-span" ["u"] "" "copy the span id" in [Request];
    Link "link" ["o"] "" "the trace's address in its store's own screens, to copy (--trace-url)" in [Request];
    Checks "checks" ["c" "K"] "checks" "what the checks say: of all requests, on a request of this one" in [Live Request Pane];
    Notices "notices" ["!"] "" "read the notices: bad input, odd paths" in [Live];
    Up "up" ["↑" "k"] "" "one up" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Down "down" ["↓" "j"] "" "one down" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    HalfUp "half-up" ["C-u"] "" "half a screen up" in [Live Request Checks Reader Help Pane];
    HalfDown "half-down" ["C-d"] "" "half a screen down" in [Live Request Checks Reader Help Pane];
    PageUp "page-up" ["PgUp" "C-b"] "" "a screen up" in [Live Request Checks Reader Menu Help Pane Palette];
    PageDown "page-down" ["PgDn" "C-f"] "" "a screen down" in [Live Request Checks Reader Menu Help Pane Palette];
    Top "top" ["g" "Home"] "" "to the top" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Bottom "bottom" ["G" "End"] "" "to the bottom" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Earlier "earlier" ["," "<"] "" "look back: a second earlier; p comes back to what comes in" in [Live Request Pane];
    Later "later" ["."] "" "a second later" in [Live Request Pane];
    MuchEarlier "much-earlier" ["{"] "" "fifteen seconds earlier" in [Live Request Pane];
    MuchLater "much-later" ["}"] "" "fifteen seconds later" in [Live Request Pane];
    FirstMoment "first-moment" ["("] "" "the first moment that is kept" in [Live Request Pane];
    LastMoment "last-moment" [")"] "" "the last moment that is kept" in [Live Request Pane];
    Bookmark "bookmark" ["m"] "" "mark the moment that is shown" in [Live Request Pane];
    Bookmarks "bookmarks" ["'"] "" "go to a marked moment" in [Live Request Pane];
    Export "export" ["e"] "" "write the request, or those of the list, to a new file as OTLP JSON" in [Live Request];
    NextRequest "next" ["n"] "next" "the next request of the list" in [Request];
    PrevRequest "previous" ["N"] "" "the request before it in the list" in [Request];
    Help "help" ["?" "F1"] "help" "all keys" in [Live Request Checks Reader Menu Pane];
    Back "back" ["Esc"] "back" "close one level; on the first screen, leave the pane, then take the filter off" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Palette "palette" [":" "C-p"] "" "find an action by a word and do it" in [Live Request Checks Reader Pane];
    Theme "theme" ["T"] "" "choose another theme; the one under the cursor is shown at once" in [Live Request Checks Reader Pane];
    Mouse "mouse" ["M"] "" "let the mouse click, turn and drag here, or leave it to the terminal" in [Live Request Checks Reader Pane];
    Redraw "redraw" ["C-l"] "" "draw everything anew" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Suspend "suspend" ["C-z"] "" "stop, until fg" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
    Quit "quit" ["q" "F10" "C-c"] "quit" "end the program" in [Live Request Checks Reader Menu Help FilterLine Pane Palette];
}

impl Action {
    /// Whether holding its key down does it again (field case B58).
    pub fn repeats(self) -> bool {
        matches!(
            self,
            Self::Up
                | Self::Down
                | Self::Left
                | Self::Right
                | Self::HalfUp
                | Self::HalfDown
                | Self::PageUp
                | Self::PageDown
                | Self::Erase
                | Self::EraseNext
                | Self::EraseWord
                | Self::NextRequest
                | Self::PrevRequest
                | Self::Earlier
                | Self::Later
                | Self::MuchEarlier
                | Self::MuchLater
        )
    }
}

/// The rows that work at a place.
pub fn rows(place: Place) -> impl Iterator<Item = &'static Row> {
    ACTIONS.iter().filter(move |row| row.places.contains(&place))
}

impl Row {
    /// The row of an action.
    pub fn of(action: Action) -> Option<&'static Self> {
        ACTIONS.iter().find(|row| row.action == action)
    }
}
