//! How many colours the terminal shows, and what stands for those it cannot.

use ratatui::style::{Color, Modifier, Style};

/// How many colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Depth {
    /// None: weight alone.
    None,
    /// The sixteen, whose exact colours are the terminal's.
    Sixteen,
    /// The 256 of xterm.
    Indexed,
    /// All.
    #[default]
    Full,
}

impl Depth {
    /// What the environment says of the terminal: `NO_COLOR` (no-color.org) before all, then `COLORTERM`, then `TERM`.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("NO_COLOR") {
            return Self::None;
        }
        let says = |name: &str, words: &[&str]| {
            let value = variable(name).unwrap_or_default().to_ascii_lowercase();
            words.iter().any(|word| value.contains(word))
        };
        if says("COLORTERM", &["truecolor", "24bit"]) || is_set("WT_SESSION") {
            return Self::Full;
        }
        let term = variable("TERM").unwrap_or_default();
        // Terminals that show all colours and name themselves, also where COLORTERM got lost on the way (ssh, sudo).
        if term.ends_with("-direct")
            || ["kitty", "alacritty", "ghostty", "wezterm", "foot"].iter().any(|t| term.contains(t))
        {
            return Self::Full;
        }
        match &*term {
            term if term.contains("256color") => Self::Indexed,
            "dumb" => Self::None,
            term if term.starts_with("vt") => Self::None,
            _ => Self::Sixteen,
        }
    }

    /// A look as this many colours can show it.
    pub(super) fn style(self, style: Style) -> Style {
        match self {
            Self::Full => style,
            Self::Indexed => Style { fg: style.fg.map(indexed), bg: style.bg.map(indexed), ..style },
            Self::Sixteen => sixteen(style),
            Self::None => Style { fg: None, bg: None, ..style },
        }
    }
}

/// Of the 256, the nearest: from the cube of 6 × 6 × 6 or the greys.
fn indexed(colour: Color) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |part: u8| (0..6u8).min_by_key(|at| STEPS[usize::from(*at)].abs_diff(part)).unwrap_or(0);
    let far = |[x, y, z]: [u8; 3]| {
        let part = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        part(x, r) + part(y, g) + part(z, b)
    };
    let cube = [step(r), step(g), step(b)];
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
    if far([8 + 10 * grey; 3]) < far(cube.map(|at| STEPS[usize::from(at)])) {
        return Color::Indexed(232 + grey);
    }
    Color::Indexed(16 + 36 * cube[0] + 6 * cube[1] + cube[2])
}

/// Of the sixteen, the one of the same hue. Their exact colours are not known, so greys are the terminal's own foreground
/// (dim when they are dark on a dark screen) and what has a background is reversed.
fn sixteen(style: Style) -> Style {
    let is_exact = |colour: Option<Color>| matches!(colour, Some(Color::Rgb(..) | Color::Indexed(16..)));
    if is_exact(style.bg) {
        let plain = Style { fg: None, bg: None, ..style };
        // A look with both is a bar of its own; a background alone, or the whole screen's, is the terminal's business.
        return if style.fg.is_some() { plain.add_modifier(Modifier::REVERSED) } else { plain };
    }
    match style.fg {
        Some(Color::Rgb(r, g, b)) => Style { fg: hue(r, g, b), ..style },
        Some(Color::Indexed(at @ 16..)) => {
            let (r, g, b) = rgb(at);
            Style { fg: hue(r, g, b), ..style }
        }
        _ => style,
    }
}

/// The colour of one of the upper 240 of the 256.
fn rgb(at: u8) -> (u8, u8, u8) {
    if at >= 232 {
        let grey = 8 + 10 * (at - 232);
        return (grey, grey, grey);
    }
    let part = |at: u8| if at == 0 { 0 } else { 55 + 40 * at };
    let at = at.saturating_sub(16);
    (part(at / 36), part(at / 6 % 6), part(at % 6))
}

fn hue(r: u8, g: u8, b: u8) -> Option<Color> {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let spread = f64::from(most - least);
    // As good as grey.
    if spread < 0.18 * f64::from(most.max(1)) {
        return if most < 128 { Some(Color::DarkGray) } else { None };
    }
    let (red, green, blue) = (f64::from(r), f64::from(g), f64::from(b));
    let degrees = 60.0
        * if most == r {
            ((green - blue) / spread).rem_euclid(6.0)
        } else if most == g {
            (blue - red) / spread + 2.0
        } else {
            (red - green) / spread + 4.0
        };
    let pair = match degrees as u32 {
        15..75 => (Color::Yellow, Color::LightYellow),
        75..160 => (Color::Green, Color::LightGreen),
        160..205 => (Color::Cyan, Color::LightCyan),
        205..260 => (Color::Blue, Color::LightBlue),
        260..340 => (Color::Magenta, Color::LightMagenta),
        _ => (Color::Red, Color::LightRed),
    };
    Some(if most > 200 && least > 90 { pair.1 } else { pair.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_how_many_colours_there_are() {
        for (variables, depth) in [
            (&[("COLORTERM", "truecolor"), ("TERM", "xterm-256color")][..], Depth::Full),
            (&[("COLORTERM", "24bit")], Depth::Full),
            (&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")], Depth::None),
            (&[("NO_COLOR", ""), ("TERM", "xterm-256color")], Depth::Indexed),
            (&[("TERM", "tmux-256color")], Depth::Indexed),
            (&[("TERM", "xterm-kitty")], Depth::Full),
            (&[("TERM", "xterm-direct")], Depth::Full),
            (&[("TERM", "xterm")], Depth::Sixteen),
            (&[("TERM", "linux")], Depth::Sixteen),
            (&[("TERM", "vt220")], Depth::None),
            (&[], Depth::Sixteen),
        ] {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Depth::of(find), depth, "{variables:?}");
        }
    }

    #[test]
    fn colours_a_terminal_has_not_become_near_ones() {
        let of = |r, g, b| indexed(Color::Rgb(r, g, b));
        assert_eq!((of(255, 0, 0), of(95, 135, 175)), (Color::Indexed(196), Color::Indexed(67)));
        assert_eq!(
            (of(30, 30, 46), of(0, 0, 0), of(255, 255, 255)),
            (Color::Indexed(235), Color::Indexed(16), Color::Indexed(231))
        );
        for at in 16..=255 {
            let (r, g, b) = rgb(at);
            let again = indexed(Color::Rgb(r, g, b));
            let same = |colour| matches!(colour, Color::Indexed(at) if rgb(at) == (r, g, b));
            assert!(same(again), "{at}: {again:?}");
        }
        assert_eq!(hue(0xf3, 0x8b, 0xa8), Some(Color::LightRed));
        assert_eq!(hue(0xb0, 0x00, 0x20), Some(Color::Red));
        assert_eq!(hue(0x89, 0xb4, 0xfa), Some(Color::LightBlue));
        assert_eq!((hue(0xcd, 0xd6, 0xd4), hue(0x40, 0x40, 0x44)), (None, Some(Color::DarkGray)));
        let bar = Style { fg: Some(Color::Rgb(1, 2, 3)), bg: Some(Color::Rgb(250, 200, 9)), ..Style::default() };
        assert_eq!(Depth::Sixteen.style(bar), Style::default().add_modifier(Modifier::REVERSED));
    }
}
