//! What the first screen says in words: its notices, what the list holds, and why it is empty.

use super::{Action, Place, Scene};
use crate::view::account::Account;
use crate::view::format;
use crate::view::index::Sort;
use crate::view::list::{COLUMNS, ColumnId};

/// What became of all that came, then what is worth telling.
pub fn notices(scene: &Scene<'_>) -> String {
    let counts = scene.data.counts();
    let mut text = format!("spans: {}\nrecords: {}\n", Account::of_spans(counts), Account::of_records(counts));
    for way in &scene.vitals.ways_out {
        text.push_str(&way.in_full());
        text.push('\n');
    }
    for notice in &scene.vitals.notices {
        text.push('\n');
        text.push_str(notice);
    }
    text
}

/// Why the list is empty.
pub fn nothing(scene: &Scene<'_>) -> String {
    let (env, vitals, total) = (scene.env, scene.vitals, scene.data.standing().total);
    let key = |action, does: &str| {
        env.keys.shown(Place::Live, action).map_or_else(String::new, |key| format!("; {key} {does}"))
    };
    // What hides all there is, and the key that shows it again.
    let window = env.window.length_ns().filter(|_| total > 0).map(|_| env.window.word());
    let some_went = total > 0 && scene.data.gone() > 0;
    let longer = || key(Action::Longer, "looks back farther");
    // A slip in a field's name asks for an attribute that nothing has.
    let read = match &env.filter.query().attributes()[..] {
        [] => String::new(),
        [name] => format!("; {name} is no field, and taken for an attribute"),
        names => format!("; {} are no fields, and taken for attributes", names.join(", ")),
    };
    match (env.filter.is_empty(), window) {
        (false, Some(window)) => {
            return format!("no request passes the filter within the last {window}{}{read}", longer());
        }
        (false, None) if some_went => return format!("no request that is left passes the filter{read}"),
        (false, None) => return format!("no request passes the filter{read}"),
        (true, Some(window)) => return format!("no request within the last {window}{}", longer()),
        (true, None) => {}
    }
    match (&vitals.loading, &vitals.store) {
        _ if some_went => {
            format!("all that stood here was let go since{}", key(Action::Pause, "shows what there is"))
        }
        (Some(loading), _) => format!("reading {} …", loading.name),
        (None, Some(store)) => format!("no requests yet in {store}"),
        (None, None) if vitals.listeners.is_empty() => "no requests".into(),
        (None, None) => "waiting for spans: point the cluster's OTLP exporter at an address above".into(),
    }
}

/// How the list is sorted and what it holds: `following · newest first · 64 of 1,204`.
pub fn summary(sort: Sort, holding: bool, len: usize, scene: &Scene<'_>) -> String {
    let title = COLUMNS.iter().find(|column| column.id == sort.column).map_or("", |column| column.title);
    let order = match (sort.column, sort.reversed) {
        (ColumnId::Age, false) => "newest first".to_owned(),
        (ColumnId::Age, true) => "oldest first".to_owned(),
        (_, false) => format!("by {title}"),
        (_, true) => format!("by {title}, reversed"),
    };
    let hold = if holding { "holding" } else { "following" };
    let (shown, total) = (len as u64, scene.data.standing().total);
    let count = if shown == total {
        format::count(total)
    } else {
        format!("{} of {}", format::count(shown), format::count(total))
    };
    // Those that came since go too: not as many are missing as went.
    let gone = if shown < total && scene.data.gone() > 0 { " · some let go since" } else { "" };
    format!("{hold} · {order} · {count}{gone}")
}
