//! The page in a browser: it opens without errors, and works by mouse, by keyboard, in dark mode,
//! on a phone and on paper.

mod browser;

use browser::Opened;

/// The flame graph of busy time with four threads.
const FLAME: &str = "document.querySelectorAll('.flame')[1]";

fn width(frame: &str) -> String {
    format!("{FLAME}.querySelector('{frame} rect').getBoundingClientRect().width")
}

#[test]
fn it_opens_quietly_and_everything_is_there() {
    let page = Opened::page_of(
        "everything",
        &["os", "sim", "profile", "before", "after", "paired"],
    );
    let count = |selector| page.count(selector);
    // Four numbers of threads on this machine; three systems at six on a simulated one.
    assert_eq!(count(".linear .dot"), 4.0 + 18.0);
    assert_eq!(count(".log .dot"), 4.0 + 18.0);
    assert_eq!(count("svg.chart[role=img][aria-label]"), 4.0);
    assert_eq!(count(".flame svg.frames"), 4.0);
    assert!(count(".flame .frame") > 100.0);
    // One scale is visible; the radio buttons switch.
    let shown = || {
        (
            page.shown("#curves article:first-of-type .linear"),
            page.shown("#curves article:first-of-type .log"),
        )
    };
    assert_eq!(shown(), (1.0, 0.0));
    page.click("document.querySelector('input[value=log]')");
    assert_eq!(shown(), (0.0, 1.0));
    page.click("document.querySelector('input[value=linear]')");
    page.picture("desktop.png");
    assert_eq!(page.trouble(), Vec::<String>::new());
}

#[test]
fn flames_zoom_search_and_walk() {
    let page = Opened::page_of("flames", &["profile"]);
    let frame = "[aria-label^=osq_lock]";
    let before = page.number(&width(frame));
    page.media("screen", "light"); // and without transitions
    page.click(&format!("{FLAME}.querySelector('{frame}')"));
    assert!(
        page.number(&width(frame)) > 2.0 * before,
        "a click widens a frame"
    );
    let said = page.text(&format!("{FLAME}.querySelector('.info').textContent"));
    assert!(
        said.starts_with("osq_lock: 6.4 % of task time, 509 ms"),
        "{said}"
    );
    let tooltip = page.text(&format!(
        "{FLAME}.querySelector('{frame} title').textContent"
    ));
    assert_eq!(tooltip, said);
    page.press("Escape");
    let hidden = format!("{FLAME}.querySelectorAll('.frame[hidden]').length");
    assert_eq!(page.number(&hidden), 0.0, "Escape shows all again");
    assert_eq!(page.number(&width(frame)), before);

    page.focus(&format!("{FLAME}.querySelector('.frame')"));
    let focused = "document.activeElement.querySelector('text').textContent";
    for (key, name) in [
        ("ArrowDown", "scalevm"),
        ("ArrowDown", "start_thread"),
        ("ArrowDown", "task"),
        ("ArrowDown", "mmap1::iteration"),
        ("ArrowDown", "__munmap"),
        ("ArrowRight", "__mmap"),
        ("ArrowLeft", "__munmap"),
        ("ArrowUp", "mmap1::iteration"),
        ("ArrowDown", "__munmap"),
    ] {
        page.press(key);
        assert_eq!(page.text(focused), name, "{key}");
    }
    page.press("Enter");
    let whole = page.number(&format!(
        "{FLAME}.querySelector('.frames').getBoundingClientRect().width"
    ));
    let zoomed = page.number(&width("[aria-label^=__munmap]"));
    assert!(
        (zoomed - whole).abs() < 2.0,
        "Enter zooms: {zoomed} of {whole}"
    );

    page.focus(&format!("{FLAME}.querySelector('input')"));
    page.type_text("rwsem_spin|osq");
    let hits = format!("[...{FLAME}.querySelectorAll('.hit text')].map(one => one.textContent)");
    let hits = page.get(&hits);
    assert_eq!(
        hits,
        serde_json::json!([
            "rwsem_spin_on_owner",
            "osq_lock",
            "rwsem_spin_on_owner",
            "osq_lock"
        ])
    );
    // 0.26 + 0.08 + 0.12 + 0.05 of 1.006.
    let found = page.text(&format!("{FLAME}.querySelector('output').textContent"));
    assert_eq!(found, "50.7 % in 4 frames");
    page.press("Escape");
    assert_eq!(
        page.text(&format!("{FLAME}.querySelector('output').textContent")),
        ""
    );
    assert_eq!(page.trouble(), Vec::<String>::new());
}

#[test]
fn tables_sort_by_keyboard() {
    let page = Opened::page_of("tables", &["profile"]);
    let rows =
        "[...document.querySelectorAll('#locks tbody tr')].map(row => row.cells[2].textContent)";
    let first = |page: &Opened| page.get(rows)[0].as_str().map(str::to_owned);
    assert_eq!(first(&page).as_deref(), Some("__vm_munmap"));
    page.focus("document.querySelector('#locks th:nth-child(7) button')"); // waits
    page.press("Enter");
    assert_eq!(
        first(&page).as_deref(),
        Some("rwsem_wake"),
        "most waits first"
    );
    assert_eq!(
        page.text("document.querySelector('#locks th[aria-sort]').textContent"),
        "Waits"
    );
    page.press("Enter");
    assert_eq!(
        first(&page).as_deref(),
        Some("perf_event_exit_task"),
        "fewest first"
    );
    assert_eq!(
        page.text("document.querySelector('#locks th[aria-sort]').ariaSort"),
        "ascending"
    );
    page.focus("document.querySelector('#locks th:nth-child(3) button')"); // callers
    page.press("Enter");
    assert_eq!(first(&page).as_deref(), Some("__vm_munmap"), "by name");
    assert_eq!(page.trouble(), Vec::<String>::new());
}

#[test]
fn a_chart_fits_a_phone_with_its_last_point_and_its_labels() {
    let page = Opened::page_of("narrow", &["os", "sim"]);
    page.screen(420, 800);
    page.media("screen", "light");
    let charts = page.number("document.querySelectorAll('.plot').length");
    assert_eq!(charts, 2.0);
    for chart in 0..charts as usize {
        let plot = format!("document.querySelectorAll('.plot')[{chart}]");
        // The positions of the visible elements of a selector, relative to the edges of the box
        // around the chart.
        let places = |selector: &str| {
            let expression = format!(
                "(box => [...{plot}.querySelectorAll('{selector}')].map(one => \
                 one.getBoundingClientRect()).filter(one => one.width).map(one => [one.left - \
                 box.left, box.right - one.right, one.top, \
                 one.bottom]))({plot}.getBoundingClientRect())"
            );
            let places = page.get(&expression);
            let places: Vec<[f64; 4]> = serde_json::from_value(places).expect("numbers");
            places
        };
        for (selector, least) in [(".dot", 4), ("text.axis", 6), (".unit", 1)] {
            let places = places(selector);
            assert!(places.len() >= least, "{selector}: {places:?}");
            for place in &places {
                assert!(place[0] >= 0.0 && place[1] >= 0.0, "{selector}: {place:?}");
            }
        }
        // No label of the lower axis covers another.
        let mut marks = places("text.axis[text-anchor=middle]");
        marks.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let width = page.number(&format!("{plot}.clientWidth"));
        for two in marks.windows(2) {
            assert!(two[1][0] > width - two[0][1], "{two:?} of {width}");
        }
        let size = format!(
            "(svg => parseFloat(getComputedStyle(svg).fontSize) * \
             svg.getBoundingClientRect().width / 680)([...{plot}.querySelectorAll('svg')].find(one \
             => one.getClientRects().length))"
        );
        let size = page.number(&size);
        assert!(size > 9.5, "text of {size} pixels");
        let names = format!(
            "[...{plot}.parentNode.querySelectorAll('.legend li')].filter(one => \
             one.getClientRects().length).map(one => one.textContent)"
        );
        let names = page.get(&names);
        let wanted = [vec!["os"], vec!["freebsd-di", "freebsd-epoch", "scalevm"]];
        assert_eq!(names, serde_json::json!(wanted[chart]));
    }
    page.picture("narrow.png");
    page.screen(1200, 900);
    assert_eq!(page.shown(".legend"), 0.0, "names are next to the lines");
    assert_eq!(page.trouble(), Vec::<String>::new());
}

#[test]
fn long_names_wrap_on_a_phone() {
    let files = [
        "os",
        "sim",
        "profile",
        "before",
        "after",
        "paired",
        "reproduction",
    ];
    let page = Opened::page_from("long", &files, |text| {
        let names = [
            "mmap1",
            "mmap_lock",
            "freebsd-di",
            "vm_mmap_pgoff",
            "__munmap",
            "tests/data/",
        ];
        names.iter().fold(text, |text, name| {
            let long = name
                .trim_end_matches('/')
                .replace(['-', ' ', '/'], "_")
                .repeat(16);
            let end = if name.ends_with('/') { "/" } else { "" };
            text.replace(name, &format!("{long}{end}"))
        })
    });
    page.media("screen", "light");
    page.screen(420, 800);
    page.picture("long.png");
    // The elements that are wider than the screen, outside boxes that scroll by themselves.
    let wide = "[...document.querySelectorAll('body *')].filter(one => one.getClientRects().length \
                && one.getBoundingClientRect().right > 420.5 && !one.closest('.scroll, pre, svg, \
                .skip')).map(one => one.outerHTML.slice(0, 200))";
    assert_eq!(page.get(wide), serde_json::json!([]));
    let width = page.number("document.documentElement.scrollWidth");
    assert_eq!(width, 420.0, "nothing sticks out of a phone");
    assert_eq!(page.trouble(), Vec::<String>::new());
}

#[test]
fn dark_phone_and_paper() {
    let page = Opened::page_of("media", &["os", "sim", "profile", "before", "after"]);
    let paper = "getComputedStyle(document.documentElement).backgroundColor";
    let light = page.text(paper);
    page.media("screen", "dark");
    let dark = page.text(paper);
    assert_ne!(light, dark, "dark mode");
    page.picture("dark.png");

    page.screen(360, 740);
    for scheme in ["dark", "light"] {
        page.media("screen", scheme);
        let wide = page.number("document.documentElement.scrollWidth");
        assert_eq!(wide, 360.0, "nothing sticks out of a phone");
    }
    page.picture("phone.png");

    page.screen(1000, 900);
    page.media("print", "dark");
    assert_eq!(page.text(paper), light, "paper is white");
    assert_eq!(
        page.shown(".scripted, .tools, .scale, nav"),
        0.0,
        "nothing to press on paper"
    );
    assert_eq!(page.shown(".flame svg.frames"), 4.0);
    page.picture("paper.png");
    page.print("paper.pdf");
    assert_eq!(page.trouble(), Vec::<String>::new());
}
