//! Figures from fixed lines, seen as a reader of the file would see them.

use std::path::{Path, PathBuf};

use super::*;

const OURS: &str = r#"
{"shape":"seed","us":200.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"t1k","us":20.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"t64k","us":1000.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"t8k","us":100.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"s16","us":100.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"s256","us":null,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
{"shape":"m130m","us":1.0,"dtype":"bf16","chunk":128,"device":"A & B","target":"sm_90a"}
"#;

const PEER: &str = r##"# seed chunk 64: 400.0 us
{"peer": "other", "shape": "seed", "us": 800.0, "chunk": 256, "floor_bytes_us": 1.0}
{"peer": "other", "shape": "s256", "us": 900.0, "chunk": 256}
"##;

/// Colours of the first and second series, and of the floor.
const COLOURS: [&str; 3] = ["#0072B2", "#D55E00", "#6E6E6E"];

fn series() -> Vec<Series> {
    let both = [series::parse("ours.jsonl", OURS).unwrap(), series::parse("peer.jsonl", PEER).unwrap()];
    series::merge(both.concat())
}

/// The points of each polyline of a colour.
fn polylines(svg: &str, colour: &str) -> Vec<Vec<(i32, i32)>> {
    let of_colour = |line: &&str| line.starts_with("<polyline") && line.contains(colour);
    let points = |line: &str| {
        let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let point = |pair: &str| {
            let (x, y) = pair.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        points.split_whitespace().map(point).collect()
    };
    svg.lines().filter(of_colour).map(points).collect()
}

/// The texts of the figure.
fn texts(svg: &str) -> Vec<&str> {
    let after = svg.lines().zip(svg.lines().skip(1));
    after.filter(|(line, _)| line.starts_with("<text")).map(|(_, text)| text).collect()
}

#[test]
fn each_series_is_a_line_in_each_panel_and_one_in_the_legend() {
    let svg = image::svg(&series()).unwrap();
    let counts = |colour| polylines(&svg, colour).iter().map(Vec::len).collect::<Vec<_>>();
    // Tokens 1k, 8k, 16k, 64k; states 16, 128; the legend. A wrong result and shapes beside the sweep are not drawn.
    assert_eq!(counts(COLOURS[0]), [4, 2, 2]);
    assert_eq!(counts(COLOURS[1]), [1, 2, 2]);
    assert!(counts(COLOURS[2]).len() > 20, "the floor is dashed");
    // One marker a point, and one in the legend.
    let markers = |tag: &str, colour: &str| {
        svg.lines().filter(|line| line.starts_with(tag) && line.contains(colour)).count()
    };
    assert_eq!(markers("<circle", COLOURS[0]), 7);
    assert_eq!(markers("<polygon", COLOURS[1]), 4);
}

#[test]
fn points_lie_where_their_logarithms_are() {
    let svg = image::svg(&series()).unwrap();
    let lines = polylines(&svg, COLOURS[0]);
    let tokens = &lines[0];
    // 1k, 8k, 16k, 64k: 3, 1 and 2 doublings. 20, 100, 200, 1000 us: factors of 5, 2 and 5.
    let (x, y): (Vec<i32>, Vec<i32>) = tokens.iter().copied().unzip();
    let doubling = f64::from(x[3] - x[0]) / 6.0;
    for (i, doublings) in [(1, 3.0), (2, 4.0)] {
        assert!((f64::from(x[i] - x[0]) - doublings * doubling).abs() <= 1.0, "{tokens:?}");
    }
    assert!(y.windows(2).all(|pair| pair[1] < pair[0]), "{tokens:?}");
    let decade = f64::from(y[1] - y[0]) / 5f64.log10();
    assert!((f64::from(y[2] - y[1]) - decade * 2f64.log10()).abs() <= 2.0, "{tokens:?}");
    assert!((f64::from(y[3] - y[2]) - decade * 5f64.log10()).abs() <= 2.0, "{tokens:?}");
    // The peer takes longer, so that its point is higher.
    assert!(polylines(&svg, COLOURS[1])[0][0].1 < y[2]);
    // The floor of the seed shape is 40 us, a fifth of its time.
    let floor: Vec<(i32, i32)> = polylines(&svg, COLOURS[2]).concat();
    let at_seed = floor.iter().filter(|p| p.0 < x[3] + 9).min_by_key(|p| (p.0 - x[2]).abs()).unwrap();
    let below = f64::from(at_seed.1 - y[2]) / -decade;
    assert!((below - 5f64.log10()).abs() < 0.05, "{below}");
}

#[test]
fn labels_name_axes_units_devices_and_targets() {
    let svg = image::svg(&series()).unwrap();
    let texts = texts(&svg);
    for text in [
        "sequence length, tokens",
        "state size, values a channel",
        "time of one pass, µs",
        "state 128",
        "16384 tokens",
        "mamba2, A &amp; B, sm_90a, bf16",
        "other",
        draw::FLOOR_LABEL,
        "1k",
        "64k",
        "256",
        "1000",
        "Mamba-2 forward pass: batch 4, groups 1, heads 8, head_dim 64",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn a_figure_of_a_cpu_has_no_floor_and_one_panel_may_be_empty() {
    let line = r#"{"shape":"t2k","us":200000.0,"device":"CPU, 2 threads","target":"cpu","dtype":"f32"}"#;
    let svg = image::svg(&series::parse("cpu.jsonl", line).unwrap()).unwrap();
    let texts = texts(&svg);
    assert!(texts.contains(&"mamba2, CPU, 2 threads, cpu, f32"), "{texts:?}");
    assert!(!texts.contains(&draw::FLOOR_LABEL) && !texts.contains(&"16384 tokens"), "{texts:?}");
    assert_eq!(polylines(&svg, COLOURS[2]), Vec::<Vec<(i32, i32)>>::new());
}

#[test]
fn series_of_one_name_are_one_and_the_last_time_counts() {
    let twice =
        "{\"shape\":\"seed\",\"us\":1}\n{\"shape\":\"seed\",\"us\":2}\n{\"shape\":\"t2k\",\"us\":3}\n";
    let series = series::parse("folder/lab.jsonl", twice).unwrap();
    assert_eq!(series.len(), 1);
    assert_eq!(series[0].label, "lab");
    assert_eq!(series[0].points.iter().map(|point| point.1).collect::<Vec<_>>(), [2.0, 3.0]);
}

#[test]
fn a_png_has_the_right_size_and_the_colours_of_the_series() {
    let series = series();
    let file = image::png(&series).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let (width, height) = draw::size(&series);
    assert_eq!((info.width, info.height), (width * image::SCALE, height * image::SCALE));
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let count = |colour: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count();
    for colour in [[0x00, 0x72, 0xB2], [0xD5, 0x5E, 0x00], [0x6E, 0x6E, 0x6E]] {
        assert!(count(colour) > 500, "{colour:?}: {}", count(colour));
    }
    // Mostly paper, and text in black.
    let all = pixels.len() / 3;
    assert!(count([255; 3]) > all * 8 / 10 && count([0; 3]) > all / 1000);
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    for (text, part) in [
        ("\n{\"shape\": \"seed\"", "lines.jsonl, line 2: EOF"),
        ("# fine\n\n[1]\n", "line 3: "),
        ("{\"us\": 3.0}", "line 1: missing field `shape`"),
        ("{\"shape\": \"huge\", \"us\": 3.0}", "line 1: no shape is called 'huge'"),
        ("{\"shape\": \"seed\", \"us\": \"3\"}", "line 1: invalid type: string"),
        ("{\"shape\": \"seed\", \"us\": 0}", "line 1: `us` is 0, expected a time above 0"),
        ("{\"shape\": \"seed\", \"us\": -1e3}", "line 1: `us` is -1000"),
    ] {
        let error = series::parse("lines.jsonl", text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn files_that_cannot_be_drawn_are_errors() {
    let new = |path: &'static str, peers: &[PathBuf]| Figure::new(Path::new(path), peers).err();
    for path in ["figure.jpg", "figure", "svg"] {
        let error = new(path, &[]).unwrap().to_string();
        assert!(error.contains(path) && error.contains("must end in .svg or .png"), "{error}");
    }
    assert!(new("figure.PNG", &[]).is_none());
    let error = new("figure.svg", &["nowhere.jsonl".into()]).unwrap().to_string();
    assert!(error.starts_with("nowhere.jsonl: "), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no folder/figure.svg");
    let error = Figure::new(&path, &[]).unwrap().draw_lines(OURS).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    let path = folder.path().join("figure.svg");
    for lines in ["", "{\"shape\":\"m130m\",\"us\":3.0}", "{\"shape\":\"seed\",\"us\":null}"] {
        let error = Figure::new(&path, &[]).unwrap().draw_lines(lines).unwrap_err().to_string();
        assert!(error.contains("there is no time to draw; time some of seed, t2k"), "{error}");
    }
    assert!(!path.exists());
}
