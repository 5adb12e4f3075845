//! A page is one file, whatever the names in it are.

mod sample;

use iolab_report::chart::{Axis, Chart, Mark, Series, Unit};
use iolab_report::page::{Cell, Finding, Jump, Page, Section, Table, Timeline, Tone, render};
use iolab_trace::{Event, Function, Trace};
use iolab_vocab::Nanos;

const EVIL: &str = "</script><img src=x onerror=alert(1)>\"'&\u{0}";

fn evil_page() -> String {
    let trace = sample::small();
    let jump = Jump::to_rows(EVIL, 0, &trace, [1, 2]).expect("the rows exist");
    let page = Page {
        title: EVIL.into(),
        headline: EVIL.into(),
        facts: vec![(EVIL.into(), EVIL.into())],
        sections: vec![
            Section::Text { title: EVIL.into(), paragraphs: vec![EVIL.into()] },
            Section::Table(
                Table::new(EVIL, [EVIL]).row([Cell::toned(EVIL, Tone::Bad)]).caption(EVIL),
            ),
            Section::Findings(vec![Finding {
                title: EVIL.into(),
                evidence: EVIL.into(),
                remedy: EVIL.into(),
                gain: EVIL.into(),
                jumps: vec![Jump { filter: EVIL.into(), ..jump }],
                ..Finding::default()
            }]),
            Section::Charts(vec![
                Chart::new(EVIL, Axis::categories(EVIL, [EVIL]), Axis::linear(EVIL, Unit::Plain))
                    .with(Series::new(EVIL, Mark::Bars, [(0.0, 1.0)])),
            ]),
        ],
        timelines: vec![Timeline::new(EVIL, &trace)],
    };
    String::from_utf8(render(&page)).expect("a page is UTF-8")
}

#[test]
fn no_name_from_outside_becomes_markup_or_script() {
    let html = evil_page();
    assert!(!html.contains("<img"), "a name became an element");
    assert!(!html.contains('\0'));
    // Policy and styles aside: the jumps, one timeline, the viewer.
    assert_eq!(html.matches("</script>").count(), 3);
}

#[test]
fn a_large_trace_has_an_overview_before_the_script_and_its_calls_behind() {
    let scripts = |events: usize| {
        let event = |at: usize| Event {
            start: Nanos(at as u64 * 10),
            end: Nanos(at as u64 * 10 + 7),
            ..Event::of(Function::WRITE)
        };
        let trace = Trace { events: (0..events).map(event).collect(), ..Trace::default() };
        let timelines = vec![Timeline::new("run", &trace)];
        let page = render(&Page { timelines, ..Page::default() });
        let html = String::from_utf8(page).expect("a page is UTF-8");
        let kinds = html.split("<script").skip(1).map(|rest| rest.split('>').next().unwrap_or(""));
        kinds.map(|kind| kind.split("x-iolab-").last().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let jumps = " type=\"application/json\" id=\"jumps\"";
    assert_eq!(scripts(1000), [jumps, "", "timeline\""]);
    assert_eq!(scripts(300_000), [jumps, "overview\"", "", "timeline\""]);
}

#[test]
fn a_page_asks_for_nothing_outside_itself() {
    let html = evil_page();
    for reference in ["src=\"", "href=\"", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!html.contains(reference), "the page contains {reference}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_jump_points_at_the_place_where_its_event_is_drawn() {
    let trace = sample::small();
    let jump = Jump::to_rows("writes", 0, &trace, [1, 2, 99]).expect("the rows exist");
    assert_eq!((jump.start_ns, jump.end_ns, jump.row), (21_100, 22_000, Some(1)));
    assert_eq!(Jump::to_rows("none", 0, &trace, [99]).map(|jump| jump.row), None);
    assert!(evil_page().contains(r#""event":1,"#));
}

#[test]
fn the_timeline_stands_where_its_section_is_or_else_at_the_end_and_only_with_traces() {
    let trace = sample::small();
    let text = || Section::Text { title: "after".into(), paragraphs: vec![] };
    let page = |sections, timelines| {
        let page = Page { sections, timelines, ..Page::default() };
        let html = String::from_utf8(render(&page)).expect("a page is UTF-8");
        (html.find("<div id=\"timeline\">"), html.find("<h2>after</h2>"))
    };
    let timelines = || vec![Timeline::new("run", &trace)];
    let (first, second) = page(vec![Section::Timeline, text()], timelines());
    assert!(first.is_some() && first < second);
    let (first, second) = page(vec![text()], timelines());
    assert!(second.is_some() && second < first);
    assert_eq!(page(vec![text()], vec![]).0, None);
}

#[test]
fn a_drawing_is_a_document_of_its_own_whatever_the_names_in_it_are() {
    let axis = || Axis::categories(EVIL, [EVIL]);
    for mark in [Mark::Line, Mark::Steps, Mark::Area, Mark::Points, Mark::Bars] {
        let series = || Series::new(EVIL, mark, []).point_with_error(0.0, 2.0, 1.0, 3.0);
        let chart = Chart::new(EVIL, axis(), Axis::linear(EVIL, Unit::Seconds));
        let svg = chart.with(series()).with(series()).svg();
        let mut reader = quick_xml::Reader::from_str(&svg);
        let mut texts = String::new();
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error} in {svg}")) {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Text(text) => texts += &text.decode().unwrap(),
                quick_xml::events::Event::GeneralRef(name) => texts += &name.decode().unwrap(),
                _ => {}
            }
        }
        assert!(!svg.contains("<img") && texts.contains("img src=x onerror=alert(1)"), "{svg}");
    }
}
