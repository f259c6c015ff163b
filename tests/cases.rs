//! The tables in documents name things that are there: the tests of the field cases, the bounds of the threat model.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The cases there are; the numbers have gaps on purpose.
const CASES: [u32; 45] = [
    1, 2, 4, 5, 6, 8, 10, 11, 13, 15, 16, 17, 19, 21, 22, 25, 27, 29, 30, 31, 32, 33, 34, 35, 38, 41, 44, 45, 50, 51,
    52, 53, 54, 55, 56, 57, 58, 61, 62, 63, 64, 65, 66, 67, 69,
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            sources(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|ending| ending == "rs") {
            found.push(entry.path());
        }
    }
}

/// What stands between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_case_of_the_field_has_its_tests() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("tests"), &mut files);
    let mut functions = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for part in text.split("fn ").skip(1) {
            functions.insert(part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned());
        }
    }
    let table = fs::read_to_string(root().join("tests/field-cases.md")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| B")).collect();
    let numbers: Vec<u32> = rows.iter().map(|row| row[3..5].parse().unwrap()).collect();
    assert_eq!(numbers, CASES);
    for row in rows {
        assert!(quoted(row).count() > 0, "no test: {row}");
        for test in quoted(row) {
            assert!(functions.contains(test), "{test} is no test: {row}");
        }
    }
}

#[test]
fn every_bound_of_the_threat_model_is_there() {
    let text = fs::read_to_string(root().join("src/threats.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`"));
    let mut seen = 0;
    for row in rows {
        let file = quoted(row).find(|word| word.ends_with(".rs")).unwrap();
        let code = fs::read_to_string(root().join("src").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for word in quoted(row).filter(|word| !word.ends_with(".rs") && !word.starts_with("--")) {
            assert!(code.contains(word), "{word} is not in {file}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
