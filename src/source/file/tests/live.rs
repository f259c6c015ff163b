//! What comes when it comes: each line is handed on before the next is waited for.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::*;

/// Gives a piece at a time; between them nothing is there, which it says once.
struct Slow {
    pieces: VecDeque<Vec<u8>>,
    given: Rc<Cell<usize>>,
    is_told: bool,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.pieces.pop_front() else { return Ok(0) };
        self.is_told = !self.is_told;
        if self.is_told {
            self.pieces.push_front(piece);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let rest = piece.split_off(piece.len().min(buffer.len()));
        buffer[..piece.len()].copy_from_slice(&piece);
        if rest.is_empty() {
            self.given.set(self.given.get() + 1);
        } else {
            // It is there already.
            self.is_told = true;
            self.pieces.push_front(rest);
        }
        Ok(piece.len())
    }
}

/// Notes how many pieces were given when something came.
struct Watch {
    given: Rc<Cell<usize>>,
    desk: Desk,
    seen: Vec<(usize, String)>,
}

impl Sink for Watch {
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal> {
        let before = self.desk.spans.len();
        let receipt = self.desk.payload(payload);
        let given = self.given.get();
        self.seen.extend(self.desk.spans[before..].iter().map(|id| (given, id.trim_start_matches('0').to_owned())));
        receipt
    }

    fn problem(&mut self, problem: Problem) {
        let Problem { place, .. } = problem;
        self.seen.push((self.given.get(), format!("{place:?}")));
    }

    fn left_out(&mut self, problem: Problem) {
        self.problem(problem);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.desk.progress(progress)
    }
}

/// What came, each after how many pieces.
fn seen(pieces: &[&[u8]]) -> Vec<(usize, String)> {
    let given = Rc::new(Cell::new(0));
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    let slow = Slow { pieces, given: Rc::clone(&given), is_told: false };
    let mut watch = Watch { given, desk: Desk::default(), seen: Vec::new() };
    let read = Rc::default();
    let reader = open::inflated(Box::new(slow), Rc::clone(&read)).unwrap();
    let (summary, progress, limits) = (Summary::default(), Progress::default(), Limits::default());
    let mut reading = Reading { sink: &mut watch, summary, progress, limits };
    let mut texts = Texts::default();
    let done = reading.stream("pipe", limits.blank, &mut Stream::new(reader, read), &mut texts);
    assert!(done.and_then(|()| texts.end(&mut reading)).is_ok());
    watch.seen
}

fn came<const N: usize>(what: [(usize, &str); N]) -> Vec<(usize, String)> {
    what.map(|(given, what)| (given, what.to_owned())).into()
}

#[test]
fn each_line_is_handed_on_before_the_next_is_waited_for() {
    let [one, two, three] = [1, 2, 3].map(|id| line(id) + "\n");
    let [one, two, three] = [&one, &two, &three].map(|line| line.as_bytes());
    assert_eq!(seen(&[one, two, three]), came([(1, "1"), (2, "2"), (3, "3")]));
    // Torn anywhere: those that are whole come, the other is waited for.
    for at in [1, 2, 5, two.len() - 1] {
        let (begin, end) = two.split_at(at);
        let all = [&[one, begin].concat()[..], &[end, three].concat()];
        assert_eq!(seen(&all), came([(1, "1"), (2, "2"), (2, "3")]), "{at}");
        let (begin, end) = one.split_at(at);
        assert_eq!(seen(&[begin, end, three]), came([(2, "1"), (3, "3")]), "{at}");
    }
    // A bad line is told at once, also as the first one; a last one without its end when there is no more.
    let bad = &b"bad\n"[..];
    let all = [bad, one, bad, &three[..three.len() - 1]];
    assert_eq!(seen(&all), came([(1, "Line(1)"), (2, "1"), (3, "Line(3)"), (4, "3")]));
    assert_eq!(seen(&[b"\n", b"\n", one, b"x\n", two]), came([(3, "1"), (4, "Line(4)"), (5, "2")]));
    // A document over many lines.
    assert_eq!(seen(&[(pretty(&line(1)) + "\n").as_bytes(), two]), came([(1, "1"), (2, "2")]));
    // A long line in many pieces.
    let long = two.strip_suffix(b"}\n").unwrap();
    let long = [long, &[b' '; 700_000], b"}\n"].concat();
    let mut pieces: Vec<&[u8]> = long.chunks(10_000).collect();
    let count = pieces.len();
    pieces.push(three);
    assert_eq!(seen(&pieces), came([(count, "2"), (count + 1, "3")]));
}

#[test]
fn lines_that_are_there_are_joined() {
    let all: Vec<u8> = (1..=2000).flat_map(|id| (line(id) + "\n").into_bytes()).collect();
    let given = Rc::new(Cell::new(0));
    let mut desk = Desk::default();
    let (read, slow) = (Rc::default(), Slow { pieces: [all].into(), given, is_told: false });
    let reader = open::inflated(Box::new(slow), Rc::clone(&read)).unwrap();
    let (summary, progress, limits) = (Summary::default(), Progress::default(), Limits::default());
    let mut reading = Reading { sink: &mut desk, summary, progress, limits };
    assert!(reading.stream("pipe", 0, &mut Stream::new(reader, read), &mut Texts::default()).is_ok());
    assert_eq!((desk.spans.len(), desk.payloads), (2000, 1));
}

#[test]
fn messages_and_what_is_packed_come_as_they_are_whole() {
    let message = |id| {
        let mut message = Vec::new();
        json::transcode(json::Shape::Request(Signal::Traces), line(id).as_bytes(), &mut message).unwrap();
        message
    };
    let framed = |id| [&(message(id).len() as u32).to_be_bytes()[..], &message(id)].concat();
    let (one, two) = (framed(1), framed(2));
    assert_eq!(seen(&[&one, &two]), came([(1, "1"), (2, "2")]));
    // Its length by itself.
    assert_eq!(seen(&[&one[..4], &one[4..], &two[..4], &two[4..]]), came([(2, "1"), (4, "2")]));
    for at in 1..one.len() {
        assert_eq!(seen(&[&one[..at], &one[at..], &two]), came([(2, "1"), (3, "2")]), "{at}");
    }
    let packed = [1, 2].map(|id| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all((line(id) + "\n").as_bytes()).unwrap();
        gzip.finish().unwrap()
    });
    assert_eq!(seen(&[&packed[0], &packed[1]]), came([(1, "1"), (2, "2")]));
    assert_eq!(seen(&[&packed[0][..1], &packed[0][1..], &packed[1]]), came([(2, "1"), (3, "2")]));
    let packed = [1, 2].map(|id| zstd::encode_all((line(id) + "\n").as_bytes(), 1).unwrap());
    assert_eq!(seen(&[&packed[0], &packed[1][..20], &packed[1][20..]]), came([(1, "1"), (3, "2")]));
}

#[test]
fn a_followed_file_is_read_as_it_grows_whatever_its_format() {
    let framed = |id, prefix: fn(usize) -> Vec<u8>| {
        let mut message = Vec::new();
        json::transcode(json::Shape::Request(Signal::Traces), line(id).as_bytes(), &mut message).unwrap();
        [prefix(message.len()), message].concat()
    };
    let gzip = |id| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all((line(id) + "\n").as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let varint = |length: usize| vec![length as u8 | 0x80, (length >> 7) as u8];
    let files = Files::new();
    for (name, two) in [
        ("lines", [1, 2].map(|id| (line(id) + "\n").into_bytes())),
        ("gzip", [1, 2].map(gzip)),
        ("zstd", [1, 2].map(|id| zstd::encode_all((line(id) + "\n").as_bytes(), 1).unwrap())),
        ("big-endian", [1, 2].map(|id| framed(id, |length| (length as u32).to_be_bytes().to_vec()))),
        ("varint", [1, 2].map(|id| framed(id, varint))),
    ] {
        let all = two.concat();
        for at in [1, 3, two[0].len() - 1, two[0].len(), two[0].len() + 2, all.len()] {
            let path = files.0.path().join(name);
            fs::write(&path, &all[..at]).unwrap();
            let news = follow::Followed::new(&path).news().unwrap().unwrap();
            let rest = all[at..].to_vec();
            let writer = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                fs::File::options().append(true).open(&path).unwrap().write_all(&rest).unwrap();
                fs::remove_file(&path).unwrap();
            });
            let (desk, summary) = read_all(&[news]);
            writer.join().unwrap();
            let told = (desk.spans.len(), summary.pieces, desk.problems.len());
            assert_eq!(told, (2, 2, 0), "{name} at {at}: {:?}", desk.problems);
        }
    }
}

fn named_pipe(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

#[test]
fn a_followed_pipe_is_read_by_one_writer_after_the_other() {
    let files = Files::new();
    let path = named_pipe(files.0.path());
    let mut followed = follow::Followed::new(&path);
    assert_eq!(followed.news().unwrap(), None, "nobody waits for a writer");
    for id in 1..3 {
        // Between two looks it stays open.
        let mut writer = fs::File::options().write(true).open(&path).unwrap();
        assert_eq!(followed.news().unwrap(), None);
        writer.write_all((line(id) + "\n").as_bytes()).unwrap();
        let news = followed.news().unwrap().unwrap();
        assert!(matches!(news, Input::Flow(_)) && news.to_string() == path.to_string_lossy());
        drop(writer);
        let (desk, summary) = read_all(&[news]);
        assert_eq!((desk.spans.len(), summary.pieces), (1, 1));
        assert_eq!(desk.progress.last().unwrap().total, None);
        assert_eq!(followed.news().unwrap(), None);
    }
}

#[test]
fn a_file_that_comes_after_a_pipe_is_read_though_a_writer_holds_the_pipe() {
    let files = Files::new();
    let path = named_pipe(files.0.path());
    let mut followed = follow::Followed::new(&path);
    assert_eq!(followed.news().unwrap(), None);
    let mut writer = fs::File::options().write(true).open(&path).unwrap();
    writer.write_all((line(1) + "\n").as_bytes()).unwrap();
    let news = followed.news().unwrap().unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, line(2) + "\n" + &line(3) + "\n").unwrap();
    let (desk, _) = read_all(&[news]);
    assert_eq!(desk.spans, ["0000000000000001"]);
    let news = followed.news().unwrap().unwrap();
    // And a pipe after a file.
    fs::remove_file(&path).unwrap();
    named_pipe(files.0.path());
    assert_eq!(read_all(&[news]).0.spans.len(), 2);
    assert_eq!(followed.news().unwrap(), None);
    let _writer = fs::File::options().write(true).open(&path).unwrap();
    // A device that is always at its end.
    assert_eq!(
        read_all(&[follow::Followed::new(Path::new("/dev/null")).news().unwrap().unwrap()]).1,
        Summary::default()
    );
}

#[test]
fn a_list_from_a_pipe_is_read_to_its_end() {
    let (read, mut write) = io::pipe().unwrap();
    let writer = std::thread::spawn(move || write.write_all("long ".repeat(50_000).as_bytes()).unwrap());
    let flow = flow::Flow::new(OwnedFd::from(read).into(), None);
    let read = open::inflated(Box::new(flow), Rc::default()).unwrap();
    assert_eq!(text_of(Steady(read), LONGEST_TEXT).unwrap().len(), 250_000);
    writer.join().unwrap();
}
