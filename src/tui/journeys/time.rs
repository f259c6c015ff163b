//! Moving in time, and taking what is shown along.

use super::*;

#[test]
fn time_moves_back_and_forth_and_moments_are_marked() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let back = journey.keys(",");
    assert!(back.contains("BACK") && back.contains("p live"), "{back}");
    let first = journey.keys("m (");
    assert!(first.contains("BACK") && !first.contains("Z −1.0 s"), "{first}");
    let message = journey.keys(",");
    assert!(message.contains("nothing older is kept"), "{message}");
    let list = journey.keys("m '");
    assert!(list.contains("Bookmarks") && list.contains("after what is shown") && list.contains("shown"), "{list}");
    let gone = journey.keys("j Enter");
    assert!(!gone.contains("Bookmarks") && gone.contains("Z −1.0 s"), "{gone}");
    let live = journey.keys("p");
    assert!(live.contains("LIVE") && !live.contains("BACK"), "{live}");
}

#[test]
fn a_request_says_at_which_moment_it_is_shown() {
    let desk = desk(cluster());
    for width in [80, 140] {
        let mut journey = Journey::new(&desk, (width, 40));
        let live = journey.keys("j j j Enter");
        assert!(!live.contains("BACK") && !live.contains("PAUSED"), "{live}");
        let still = journey.keys("p");
        assert!(still.contains("PAUSED"), "{still}");
        let back = journey.keys(",");
        let (moment, _) = back.split_once("BACK ").unwrap().1.split_once("Z −").unwrap();
        assert!(moment.len() == "12:04:31.123".len() && !back.contains("PAUSED"), "{back}");
        assert!(!journey.keys("p").contains("BACK"));
    }
}

#[test]
fn what_is_shown_is_exported_to_a_file_that_is_told() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let told = journey.keys("Enter e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let names: Vec<&str> = journey.hands.saved.iter().map(|(stem, _)| stem.as_str()).collect();
    assert!(names[0].ends_with("-requests") && !names[1].ends_with("-requests"), "{names:?}");
    for (_, text) in &journey.hands.saved {
        for line in text.lines() {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(json["resourceSpans"].is_array() || json["resourceLogs"].is_array());
        }
    }
}
