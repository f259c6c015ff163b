//! What the README says of the program is what the program says.
//!
//! `REQTOP_UPDATE=1 cargo test --test docs` writes it anew.

use std::path::Path;

/// The README with a generated part in its place: between `<!-- NAME: … -->` and `<!-- end -->`.
fn with(readme: &str, name: &str, part: &str) -> String {
    let start = readme.find(&format!("<!-- {name}: ")).unwrap_or_else(|| panic!("README.md has no place for {name}"));
    let from = start + readme[start..].find("-->\n").unwrap() + 4;
    let to = from + readme[from..].find("<!-- end -->").unwrap();
    format!("{}{part}{}", &readme[..from], &readme[to..])
}

#[test]
fn the_readme_says_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let right = with(&readme, "keys", &reqtop::tui::keymap::markdown());
    if std::env::var_os("REQTOP_UPDATE").is_some() {
        std::fs::write(path, &right).unwrap();
    } else {
        assert!(readme == right, "README.md lists other keys; write them anew: REQTOP_UPDATE=1 cargo test --test docs");
    }
    let themes = reqtop::tui::theme::Themes::default().list().into_iter().map(|entry| entry.name);
    for name in themes.chain(reqtop::tui::theme::names().map(ToOwned::to_owned)) {
        let mut words = right.split(|c: char| !c.is_alphanumeric() && c != '-');
        assert!(words.any(|word| word == name), "README.md does not name {name}");
    }
}
