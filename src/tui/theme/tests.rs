//! Themes hold what they promise: whole, readable, told apart, and patient with mistakes.

use std::fs;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::{Depth, Entry, Role, Signs, Source, Theme, Themes};
use crate::view::Tone;

fn built_in() -> Vec<Entry> {
    Themes::default().list()
}

#[test]
fn built_in_themes_are_whole_and_without_warnings() {
    let themes = built_in();
    assert!(themes.len() >= 9 && themes[0].name == "terminal");
    for entry in &themes {
        assert_eq!(entry.warnings, Vec::<String>::new(), "{}", entry.name);
        assert!(!entry.about.is_empty() && entry.source == Source::BuiltIn, "{}", entry.name);
        assert_ne!(entry.theme.tone(Tone::Cancelled), entry.theme.tone(Tone::Rejected), "{}", entry.name);
        assert_ne!(entry.theme.role(Role::Border), entry.theme.role(Role::Focus), "{}", entry.name);
    }
    for name in ["terminal", "light"] {
        let theme = Theme::named(name).unwrap();
        for tone in [Tone::Plain, Tone::Dim, Tone::Strong] {
            assert_eq!((theme.tone(tone).fg, theme.tone(tone).bg), (None, None), "{name} {tone:?}");
        }
    }
    let unknown = Theme::named("zzz").unwrap_err();
    assert!(unknown.contains("terminal, light") && unknown.contains("path of a file"), "{unknown}");
    assert!(Theme::named("drakula").unwrap_err().contains("did you mean dracula?"));
}

/// Relative luminance (WCAG 2).
fn luminance(colour: Color) -> f64 {
    let Color::Rgb(r, g, b) = colour else { panic!("{colour:?} has no luminance of its own") };
    let part = |value: u8| {
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
}

/// Contrast ratio (WCAG 2), 1 to 21.
fn contrast(one: Color, other: Color) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_reads_on_its_background() {
    for Entry { name, theme, .. } in built_in() {
        // A theme without a background of its own says for which one it is.
        let back = match (theme.role(Role::Screen).bg, &*name) {
            (Some(back), _) => back,
            (None, "light") => Color::Rgb(0xff, 0xff, 0xff),
            (None, _) => continue,
        };
        let least = if name == "high-contrast" { 7.0 } else { 4.5 };
        let texts = Tone::ALL.iter().map(|(tone, word)| (*word, theme.tone(*tone)));
        let roles = [Role::Screen, Role::Title, Role::Cursor, Role::Key, Role::Message, Role::Focus];
        let roles = roles.map(|role| (Role::ALL.iter().find(|(other, _)| *other == role).unwrap().1, theme.role(role)));
        for (word, style) in texts.chain(roles) {
            assert!(!style.add_modifier.contains(Modifier::DIM) || style.fg.is_none(), "{name} {word}: dims a colour");
            let Some(front) = style.fg else { continue };
            let ratio = contrast(front, style.bg.unwrap_or(back));
            assert!(ratio >= least, "{name} {word}: {ratio:.2}:1 is less than {least}:1");
        }
    }
    assert!((contrast(Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255)) - 21.0).abs() < 0.01);
}

/// How a colour looks without one kind of cones: G. M. Machado et al., "A Physiologically-based Model for Simulation of
/// Color Vision Deficiency" (2009), severity 1.0: protanopia, deuteranopia, tritanopia.
const BLINDNESS: [[[f64; 3]; 3]; 3] = [
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

/// CIE L*a*b* of a colour (D65), after a matrix in linear light.
fn lab(colour: Color, seen: &[[f64; 3]; 3]) -> [f64; 3] {
    let Color::Rgb(r, g, b) = colour else { panic!("{colour:?}") };
    let linear = [r, g, b].map(|value| {
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    });
    let times = |row: &[f64; 3], of: [f64; 3]| row.iter().zip(of).map(|(a, b)| a * b).sum::<f64>();
    let seen =
        [times(&seen[0], linear), times(&seen[1], linear), times(&seen[2], linear)].map(|part| part.clamp(0.0, 1.0));
    let xyz = [
        times(&[0.4124, 0.3576, 0.1805], seen) / 0.9505,
        times(&[0.2126, 0.7152, 0.0722], seen),
        times(&[0.0193, 0.1192, 0.9505], seen) / 1.089,
    ];
    let f = xyz.map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])]
}

#[test]
fn outcomes_are_told_apart_with_any_colour_vision() {
    let theme = Theme::named("colour-blind").unwrap();
    let tones = [Tone::Good, Tone::Bad, Tone::Cancelled, Tone::Rejected];
    for (kind, matrix) in BLINDNESS.iter().enumerate() {
        let seen = tones.map(|tone| lab(theme.tone(tone).fg.unwrap(), matrix));
        for (at, one) in seen.iter().enumerate() {
            for (other_at, other) in seen.iter().enumerate().skip(at + 1) {
                let far = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(far > 20.0, "kind {kind}: {:?} and {:?} are {far:.1} apart", tones[at], tones[other_at]);
            }
        }
    }
}

#[test]
fn every_terminal_shows_every_theme() {
    for depth in [Depth::None, Depth::Sixteen, Depth::Indexed] {
        for Entry { name, theme, .. } in Themes::new(None, depth, Signs::Ascii).list() {
            let looks = Tone::ALL.iter().map(|(tone, _)| theme.tone(*tone));
            for style in looks.chain(Role::ALL.iter().map(|(role, _)| theme.role(*role))) {
                for colour in [style.fg, style.bg].into_iter().flatten() {
                    let fits = match depth {
                        Depth::None => false,
                        Depth::Sixteen => !matches!(colour, Color::Rgb(..) | Color::Indexed(16..)),
                        _ => !matches!(colour, Color::Rgb(..)),
                    };
                    assert!(fits, "{name} has {colour:?} with {depth:?}");
                }
            }
            // What has the keys and what the cursor stands on can always be seen.
            assert_ne!(theme.role(Role::Border), theme.role(Role::Focus), "{name} with {depth:?}");
            let cursor = theme.role(Role::Cursor);
            assert!(cursor.add_modifier.contains(Modifier::REVERSED) || cursor.bg.is_some(), "{name} with {depth:?}");
            assert_eq!(theme.signs(), Signs::Ascii);
        }
    }
}

#[test]
fn the_screens_colours_fill_what_has_none() {
    let theme = Theme::named("nord").unwrap();
    let mut buf = Buffer::empty(Rect::new(0, 0, 2, 1));
    buf[(1, 0)].set_style(Style::new().fg(Color::Red));
    theme.fill(&mut buf);
    let back = theme.role(Role::Screen).bg.unwrap();
    assert_eq!((buf[(0, 0)].bg, buf[(1, 0)].bg, buf[(1, 0)].fg), (back, back, Color::Red));
    let mut plain = Buffer::empty(Rect::new(0, 0, 2, 1));
    Theme::named("terminal").unwrap().fill(&mut plain);
    assert_eq!(plain, Buffer::empty(Rect::new(0, 0, 2, 1)));
}

/// A folder of own themes.
fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Themes) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let themes = Themes::new(Some(folder.path().to_owned()), Depth::Full, Signs::Unicode);
    (folder, themes)
}

#[test]
fn mistakes_are_warnings_and_the_rest_is_kept() {
    let text = "about = 'mine'\ncolour = 'odd'\ninherits = 'terminal'\n[palette]\nsand = '#d7b98e'\nbad = '#12345'\n\
                [roles]\nwarn = 'sand'\nwarm = 'sand'\ngood = 'snad'\nbad = { fg = 'sand', bold = 3, glow = true }\n\
                dim = { fg = 'sand', bg = 'nothing' }\nqueue = [1]\n";
    let (_kept, themes) = folder(&[("mine.toml", text)]);
    let entry = themes.find("mine").unwrap();
    let sand = Some(Color::Rgb(0xd7, 0xb9, 0x8e));
    assert_eq!((entry.theme.tone(Tone::Warn).fg, entry.theme.tone(Tone::Bad).fg), (sand, sand));
    // What cannot be read looks as the theme it builds on has it.
    assert_eq!(entry.theme.tone(Tone::Good).fg, Some(Color::Green));
    assert_eq!(entry.theme.tone(Tone::Dim).add_modifier, Modifier::DIM);
    let all = entry.warnings.join("\n");
    for part in [
        "line 2: expected about, inherits, [palette] or [roles], found colour",
        "line 6: bad: \"#12345\" is no #rrggbb",
        "line 9: no role is called warm; did you mean warn?",
        "line 10: good: \"snad\" is no colour of the palette",
        "did you mean sand?",
        "line 11: bad: bold is true or false, found integer",
        "line 11: bad: glow is none of fg, bg, bold",
        "line 12: dim: \"nothing\" is no colour",
        "line 13: queue: expected a text, found array",
    ] {
        assert!(all.contains(part), "{part} in:\n{all}");
    }
    assert_eq!(entry.warnings.len(), 8, "{all}");
}

#[test]
fn a_file_that_is_no_toml_still_gives_a_screen() {
    let (_kept, themes) = folder(&[("torn.toml", "[roles]\nwarn = 'red'\nbad = \n[[[\x00"), ("empty.toml", "")]);
    let torn = themes.find("torn").unwrap();
    assert!(torn.warnings.iter().any(|warning| warning.starts_with("line 3")), "{:?}", torn.warnings);
    assert_eq!(torn.theme.tone(Tone::Warn).fg, Some(Color::Red));
    let empty = themes.find("empty").unwrap();
    assert_eq!((empty.theme, empty.warnings.len()), (Theme::named("terminal").unwrap(), 0));
}

#[test]
fn missing_parents_and_circles_are_told() {
    let (kept, themes) = folder(&[
        ("lost.toml", "inherits = 'nowhere'\n[roles]\nwarn = 'red'"),
        ("a.toml", "inherits = 'b'\n[roles]\nwarn = 'blue'"),
        ("b.toml", "inherits = 'a'\n[roles]\ngood = 'blue'"),
        ("self.toml", "inherits = 'self'"),
        ("nord.toml", "about = 'brighter'\ninherits = 'nord'\n[palette]\nnord4 = '#ffffff'"),
    ]);
    let find = |name: &str| themes.find(name).unwrap();
    assert!(find("lost").warnings[0].contains("inherits \"nowhere\", which is no theme"));
    assert_eq!(find("lost").theme.tone(Tone::Warn).fg, Some(Color::Red));
    let a = find("a");
    assert!(a.warnings[0].contains("inherits itself: a → b → a"), "{:?}", a.warnings);
    assert_eq!((a.theme.tone(Tone::Warn).fg, a.theme.tone(Tone::Good).fg), (Some(Color::Blue), Some(Color::Blue)));
    assert!(find("self").warnings[0].contains("which is no theme"), "{:?}", find("self").warnings);
    // An own theme hides the one in the program and may build on it.
    let nord = find("nord");
    assert_eq!((nord.theme.tone(Tone::Plain).fg, nord.warnings.len()), (Some(Color::Rgb(255, 255, 255)), 0));
    assert_eq!(nord.theme.tone(Tone::Good), Theme::named("nord").unwrap().tone(Tone::Good));
    assert_eq!(themes.list().iter().filter(|entry| entry.name == "nord").count(), 1);
    // By path, from anywhere.
    let path = kept.path().join("lost.toml");
    let by_path = Themes::default().find(path.to_str().unwrap()).unwrap();
    assert_eq!((by_path.source, by_path.name), (Source::File(path), "lost".to_owned()));
    assert!(Themes::default().find("./none.toml").unwrap_err().contains("./none.toml"));
}

#[test]
fn what_is_no_file_is_no_theme() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|made| made.success()) {
        println!("skipped: no mkfifo here");
        return;
    }
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.toml")).unwrap();
    fs::write(folder.path().join("good"), "about = 'mine'\n").unwrap();
    std::os::unix::fs::symlink("good", folder.path().join("link.toml")).unwrap();
    let themes = Themes::new(Some(folder.path().to_owned()), Depth::Full, Signs::Unicode);
    // It comes back at all.
    let list = themes.list();
    for name in ["pipe", "folder", "zero"] {
        let entry = list.iter().find(|entry| entry.name == name).unwrap();
        assert_eq!(entry.warnings, ["a pipe, a device or a folder, so no theme"], "{name}");
    }
    let link = list.iter().find(|entry| entry.name == "link").unwrap();
    assert_eq!((link.about.as_str(), link.warnings.len()), ("mine", 0));
    assert!(themes.find(pipe.to_str().unwrap()).unwrap_err().ends_with("so no theme"));
}
