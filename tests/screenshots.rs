//! The pictures in `screenshots/` are real frames of a seeded demo, and stay what the program shows.
//!
//! `REQTOP_UPDATE=1 cargo test --test screenshots` draws them anew. PNGs for the README are made from the SVGs by
//! `screenshots/png.sh` where a converter is installed.

#[path = "common/nobody.rs"]
mod nobody;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use parking_lot::FairMutex;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use reqtop::demo::{Cluster, Settings, Signal};
use reqtop::pipeline::take_in;
use reqtop::source::intake::{Payload, Signal as Wire};
use reqtop::store::{Limits, Store};
use reqtop::tui::Shared;
use reqtop::tui::app::{App, Event};
use reqtop::tui::theme::Theme;
use reqtop::view::header::{Listener, Vitals};

use nobody::Nobody;

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECONDS: u64 = 58;

/// The colours of a usual terminal: background, foreground, then the sixteen.
struct Palette {
    back: &'static str,
    text: &'static str,
    ansi: [&'static str; 16],
}

const DARK: Palette = Palette {
    back: "#16181d",
    text: "#d6d8de",
    ansi: [
        "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#5c6370", "#f07f88",
        "#aad18b", "#f0cf8f", "#7cbff5", "#d48fea", "#6fc8d3", "#ffffff",
    ],
};

const LIGHT: Palette = Palette {
    back: "#fbfbfa",
    text: "#24262b",
    ansi: [
        "#24262b", "#c33b3b", "#3f7f2f", "#8a6300", "#2a5fb0", "#8b3a9e", "#0f7480", "#6b6f76", "#8a8e96", "#d14b4b",
        "#4f8f3f", "#9a7310", "#3a6fc0", "#9b4aae", "#1f8490", "#fbfbfa",
    ],
};

fn shared() -> Shared {
    let mut cluster = Cluster::new(&Settings { seed: 4, ..Settings::default() }, START_NS);
    let mut store = Store::new(Limits::default());
    for delivery in cluster.advance(now()) {
        let signal = match delivery.signal {
            Signal::Traces => Wire::Traces,
            Signal::Logs => Wire::Logs,
        };
        take_in(&mut store, &mut Payload::otlp(signal, delivery.body), delivery.at_ns).unwrap();
        store.refresh(delivery.at_ns);
    }
    let at = |protocol, address: &str| Listener { protocol, address: address.parse().unwrap() };
    let listeners = vec![
        at("grpc", "127.0.0.1:4317"),
        at("grpc", "[::1]:4317"),
        at("http", "127.0.0.1:4318"),
        at("http", "[::1]:4318"),
    ];
    Shared::new(Arc::new(FairMutex::new(store)), Vitals { listeners, ..Vitals::default() })
}

fn now() -> u64 {
    START_NS + SECONDS * 1_000_000_000
}

/// The frame after these keys: characters as they are, `⏎` Enter, `⇥` Tab, `↓`, `⎋` Escape.
fn frame(shared: &Shared, theme: &str, size: (u16, u16), keys: &str) -> Buffer {
    let mut app = App::new(shared, Theme::named(theme).unwrap(), &now);
    app.frame(size.0, size.1);
    for key in keys.chars() {
        let code = match key {
            '⏎' => KeyCode::Enter,
            '⇥' => KeyCode::Tab,
            '↓' => KeyCode::Down,
            '⎋' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        app.press(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), &mut Nobody);
        app.frame(size.0, size.1);
    }
    app.frame(size.0, size.1)
}

fn colour<'a>(palette: &'a Palette, colour: Color, default: &'a str) -> std::borrow::Cow<'a, str> {
    let indexed = |at: usize| palette.ansi[at].into();
    match colour {
        Color::Reset => default.into(),
        Color::Black => indexed(0),
        Color::Red => indexed(1),
        Color::Green => indexed(2),
        Color::Yellow => indexed(3),
        Color::Blue => indexed(4),
        Color::Magenta => indexed(5),
        Color::Cyan => indexed(6),
        Color::Gray => indexed(7),
        Color::DarkGray => indexed(8),
        Color::LightRed => indexed(9),
        Color::LightGreen => indexed(10),
        Color::LightYellow => indexed(11),
        Color::LightBlue => indexed(12),
        Color::LightMagenta => indexed(13),
        Color::LightCyan => indexed(14),
        Color::White => indexed(15),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}").into(),
        Color::Indexed(at) => palette.ansi[usize::from(at) % 16].into(),
    }
}

/// The buffer as a picture: one run of text for cells that look alike.
fn svg(buf: &Buffer, palette: &Palette) -> String {
    const WIDE: f64 = 8.4;
    const HIGH: f64 = 17.0;
    let (width, height) = (f64::from(buf.area.width) * WIDE + 16.0, f64::from(buf.area.height) * HIGH + 16.0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">",
        palette.back
    );
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let style = buf[(x, y)].style();
            let mut text = String::new();
            let start = x;
            while x < buf.area.width && buf[(x, y)].style() == style {
                text.push_str(buf[(x, y)].symbol());
                x += 1;
            }
            let modifiers = style.add_modifier;
            let mut front = colour(palette, style.fg.unwrap_or(Color::Reset), palette.text);
            let mut back = colour(palette, style.bg.unwrap_or(Color::Reset), palette.back);
            if modifiers.contains(Modifier::REVERSED) {
                std::mem::swap(&mut front, &mut back);
            }
            let (left, top) = (8.0 + f64::from(start) * WIDE, 8.0 + f64::from(y) * HIGH);
            if back != palette.back {
                let _ = writeln!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{HIGH}\" fill=\"{back}\"/>",
                    f64::from(x - start) * WIDE
                );
            }
            if text.trim().is_empty() {
                continue;
            }
            let weight = if modifiers.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let faint = if modifiers.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
            let length = f64::from(x - start) * WIDE;
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                out,
                "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" fill=\"{front}\"{weight}{faint}>{escaped}</text>",
                top + 13.0
            );
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[test]
fn the_pictures_are_what_the_program_shows() {
    let shared = shared();
    let mut stale = Vec::new();
    for (name, theme, palette, size, keys) in [
        ("live-150x40", "terminal", &DARK, (150, 40), ""),
        ("live-80x24", "terminal", &DARK, (80, 24), ""),
        ("live-light-150x40", "light", &LIGHT, (150, 40), ""),
        ("filter-150x40", "terminal", &DARK, (150, 40), "/outcome:cancelled "),
        ("request-150x40", "terminal", &DARK, (150, 40), "↓↓↓↓↓↓↓↓⏎"),
        ("help-150x40", "terminal", &DARK, (150, 40), "?"),
        ("queue-150x40", "terminal", &DARK, (150, 40), "1z"),
        ("selection-150x40", "terminal", &DARK, (150, 40), "2z"),
        ("dispatch-150x40", "terminal", &DARK, (150, 40), "3z"),
        ("streaming-150x40", "terminal", &DARK, (150, 40), "4z"),
        ("workers-150x40", "terminal", &DARK, (150, 40), "w"),
        ("sessions-150x40", "terminal", &DARK, (150, 40), "a"),
        ("themes-150x40", "terminal", &DARK, (150, 40), "T↓↓↓↓↓"),
        ("palette-150x40", "terminal", &DARK, (150, 40), ":pane"),
        ("live-colour-blind-150x40", "colour-blind", &DARK, (150, 40), ""),
        ("live-200x60", "terminal", &DARK, (200, 60), ""),
    ] {
        let picture = svg(&frame(&shared, theme, size, keys), palette);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("screenshots").join(format!("{name}.svg"));
        if std::env::var_os("REQTOP_UPDATE").is_some() {
            std::fs::write(&path, picture).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&*picture) {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "not what the program shows: {stale:?}; look at REQTOP_UPDATE=1 cargo test --test screenshots"
    );
}
