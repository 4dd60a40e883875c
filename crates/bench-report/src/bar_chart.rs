//! Bars in groups, with deviations, floors and published values.

use crate::{
    Error,
    mean_std::MeanStd,
    picture::{
        ACROSS, Caption, MARGIN, Size, TEXT, WIDTH,
        canvas::{self, Align, Canvas, Ink, WIDER_FONT, rectangle, text_width},
        key::{Key, Sign},
        scale::Axis,
    },
    table::decimal,
};

/// A chart of bars, whose title names the best bar.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// What the bars measure.
    pub subject: String,
    /// Unit of the bars.
    pub unit: &'static str,
    /// Which bar is the best.
    pub best: Best,
    /// Lines below the chart.
    pub notes: Vec<String>,
    /// The bars.
    pub groups: Vec<BarGroup>,
}

/// Which bar is the best, and the word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// The shortest.
    Least(&'static str),
    /// The longest.
    Most(&'static str),
}

/// Bars side by side.
#[derive(Debug, Clone)]
pub struct BarGroup {
    /// Name above the bars.
    pub name: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar with its floors.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Red, green and blue.
    pub color: [u8; 3],
    /// Whether its color is light.
    pub is_light: bool,
    /// Its kind, for the legend: bars of the same name are of one kind.
    pub kind: BarKind,
    /// Length, and its deviation.
    pub value: MeanStd,
    /// What bounds it from below.
    pub floors: Vec<(Floor, f64)>,
    /// A published value, drawn as an outline.
    pub published: Option<f64>,
}

/// A kind of bars in the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct BarKind {
    /// Its name.
    pub name: String,
    /// Its color, if it has one; else bars of it are light or dark.
    pub color: Option<[u8; 3]>,
}

/// What bounds a bar from below: a line across it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Name in the legend.
    pub name: &'static str,
    /// Red, green and blue.
    pub color: [u8; 3],
}

/// Opacity of light bars, and of light and dark ones in the legend.
const LIGHT: f64 = 0.35;
const DARK: f64 = 0.8;
/// Height of a bar and from one to the next, and of a group's name.
const BAR: f64 = 14.0;
const BAR_STEP: f64 = 20.0;
const NAME: f64 = 22.0;
const GROUP_GAP: f64 = 8.0;
/// Left end of the bars, and room for the figures beside them.
const LEFT: f64 = MARGIN + 8.0;
const FIGURES: f64 = 76.0;
/// Height of numbers and title of the axis.
const BELOW: f64 = 58.0;

impl BarChart {
    /// Names the best bar, and the worst of the same kind.
    pub fn title(&self) -> String {
        let several_kinds = kinds(self).len() > 1;
        let all =
            || self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
        let by = |sign: f64, kind: Option<&BarKind>| {
            all()
                .filter(|(_, bar)| kind.is_none_or(|kind| bar.kind == *kind))
                .filter(|(_, bar)| bar.value.mean.is_finite())
                .max_by(|(_, a), (_, b)| (sign * a.value.mean).total_cmp(&(sign * b.value.mean)))
        };
        let (sign, word) = match self.best {
            Best::Least(word) => (-1.0, word),
            Best::Most(word) => (1.0, word),
        };
        let Some((group, best)) = by(sign, None) else { return self.subject.clone() };
        // Colors of bars have no place in a sentence.
        let kind = best.kind.name.rsplit(": ").next().unwrap_or_default();
        let kind = if several_kinds { format!(", {kind}") } else { String::new() };
        let number = |bar: &Bar| number(bar.value.mean, self.most());
        let other = by(-sign, Some(&best.kind)).filter(|(other, _)| other.name != group.name);
        let other = other.map_or_else(String::new, |(other, worst)| {
            format!("; {}: {}", other.name, number(worst))
        });
        format!("{}{kind} is {word}: {} {}{other}", group.name, number(best), self.unit)
    }

    fn most(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let ends = bars.flat_map(|bar| {
            let floors = bar.floors.iter().map(|floor| floor.1);
            floors.chain(bar.published).chain([bar.value.mean + bar.value.std.unwrap_or(0.0)])
        });
        let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    }
}

/// A figure with as many digits as the largest needs.
fn number(value: f64, most: f64) -> String {
    let digits = [(2.0, 3), (20.0, 2), (200.0, 1)].iter().find(|(bound, _)| most < *bound);
    decimal(value, digits.map_or(0, |(_, digits)| *digits))
}

/// The kinds of bars in order of appearance, each with whether it is light.
fn kinds(chart: &BarChart) -> Vec<(&BarKind, bool)> {
    let mut kinds: Vec<(&BarKind, bool)> = Vec::new();
    for bar in chart.groups.iter().flat_map(|group| &group.bars) {
        if !kinds.iter().any(|(kind, _)| **kind == bar.kind) {
            kinds.push((&bar.kind, bar.is_light));
        }
    }
    kinds
}

/// Draws a chart of bars as SVG.
///
/// # Errors
/// [`Error::Draw`].
pub fn draw_bars(chart: &BarChart) -> Result<String, Error> {
    let better = match chart.best {
        Best::Least(_) => "shorter bars are better",
        Best::Most(_) => "longer bars are better",
    };
    let about = format!("{}; {better}", chart.subject);
    let caption = Caption::new(&chart.title(), &[about]);
    let upper = caption.bottom();
    let heights =
        chart.groups.iter().map(|group| NAME + BAR_STEP * group.bars.len() as f64 + GROUP_GAP);
    let lower = upper + heights.sum::<f64>() + 4.0;
    let notes = chart.notes.iter().map(|note| vec![(Sign::Words, note.clone())]);
    let key = Key::new(
        std::iter::once(legend(chart)).chain(notes).collect(),
        MARGIN..ACROSS[1],
        lower + BELOW,
    );
    let x = Axis::new(chart.most(), LEFT..ACROSS[1] - FIGURES, 6);
    canvas::svg(Size { width: WIDTH, height: key.bottom() + MARGIN }, |canvas| {
        caption.draw(canvas)?;
        for tick in x.ticks() {
            let at = x.position(tick);
            canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
            let text = decimal(tick, x.digits());
            canvas.text(&text, (at, lower + 9.0), TEXT, Ink::TEXT, Align::Below)?;
        }
        let mut top = upper;
        for group in &chart.groups {
            let middle = top + NAME / 2.0 + 2.0;
            // Grid lines would run through the letters.
            let wide = text_width(&group.name, TEXT) * WIDER_FONT;
            let behind = rectangle(LEFT + 1.0..LEFT + wide, middle, 9.0);
            canvas.polygon(&behind, Ink::PAPER, Ink::PAPER, 0.0)?;
            canvas.text(&group.name, (LEFT + 2.0, middle), TEXT, Ink::TEXT, Align::Left)?;
            top += NAME;
            for bar in &group.bars {
                draw_bar(canvas, bar, &x, (top + BAR_STEP / 2.0, chart.most()))?;
                top += BAR_STEP;
            }
            top += GROUP_GAP;
        }
        canvas.line(&[(LEFT, upper), (LEFT, lower), (ACROSS[1], lower)], Ink::GRAY, 1.5)?;
        let middle = f64::midpoint(LEFT, ACROSS[1] - FIGURES);
        canvas.text(chart.unit, (middle, lower + 31.0), TEXT, Ink::TEXT, Align::Below)?;
        key.draw(canvas)
    })
}

fn draw_bar(canvas: &Canvas<'_>, bar: &Bar, x: &Axis, (y, most): (f64, f64)) -> Result<(), Error> {
    let half = BAR / 2.0;
    let value = if bar.value.mean.is_finite() { bar.value.mean.max(0.0) } else { 0.0 };
    let end = x.position(value);
    let color = Ink::rgb(bar.color);
    let fill = if bar.is_light { color.with_opacity(LIGHT) } else { color };
    canvas.polygon(&rectangle(LEFT..end, y, half), fill, color, 1.0)?;
    let mut right = end;
    if let Some(published) = bar.published.filter(|published| published.is_finite()) {
        // The outline is higher than our bar, and not filled.
        let at = x.position(published);
        let (upper, lower) = (y - half - 2.0, y + half + 2.0);
        canvas.line(&[(LEFT, upper), (at, upper), (at, lower), (LEFT, lower)], Ink::GRAY, 1.0)?;
        right = right.max(at);
    }
    if let Some(std) = bar.value.std.filter(|std| std.is_finite()) {
        let [low, high] = [(value - std).max(0.0), value + std].map(|at| x.position(at));
        canvas.line(&[(low, y), (high, y)], Ink::TEXT, 1.0)?;
        for at in [low, high] {
            canvas.line(&[(at, y - 3.0), (at, y + 3.0)], Ink::TEXT, 1.0)?;
        }
        right = right.max(high);
    }
    for (floor, at) in bar.floors.iter().filter(|(_, at)| at.is_finite()) {
        let at = x.position(*at);
        canvas.line(&[(at, y - half), (at, y + half)], Ink::rgb(floor.color), 3.0)?;
        right = right.max(at);
    }
    canvas.text(&number(value, most), (right + 6.0, y), TEXT, Ink::TEXT, Align::Left)
}

/// Names what the bars' fills, ticks and outlines mean, as far as the chart has them.
fn legend(chart: &BarChart) -> Vec<(Sign, String)> {
    let swatch = |(kind, is_light): (&BarKind, bool)| {
        let shade = if is_light { LIGHT } else { DARK };
        let ink = kind.color.map_or_else(|| Ink::TEXT.with_opacity(shade), Ink::rgb);
        (Sign::Swatch(ink), kind.name.clone())
    };
    let mut entries: Vec<(Sign, String)> = kinds(chart).into_iter().map(swatch).collect();
    let bars = || chart.groups.iter().flat_map(|group| &group.bars);
    let mut floors: Vec<Floor> = Vec::new();
    for (floor, _) in bars().flat_map(|bar| &bar.floors) {
        if !floors.contains(floor) {
            floors.push(*floor);
        }
    }
    entries.extend(
        floors
            .into_iter()
            .map(|floor| (Sign::Tick(Ink::rgb(floor.color)), format!("floor: {}", floor.name))),
    );
    if bars().any(|bar| bar.published.is_some()) {
        entries.push((Sign::Outline, "outline: published".to_owned()));
    }
    if bars().any(|bar| bar.value.std.is_some()) {
        entries.push((Sign::Words, "whiskers: standard deviation".to_owned()));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> BarChart {
        let (disk, device) = (
            Floor { name: "disk", color: [0, 0, 0] },
            Floor { name: "device", color: [0xCC, 0, 0x66] },
        );
        let bar = |name: &str, is_light, mean: f64| Bar {
            color: [0xFF, 0, 0],
            is_light,
            kind: BarKind { name: name.to_owned(), color: None },
            value: MeanStd { mean, std: Some(0.5) },
            floors: vec![(disk, 0.8 * mean), (device, 2.0)],
            published: Some(1.5 * mean),
        };
        let group = |name: &str| BarGroup {
            name: name.to_owned(),
            bars: vec![bar("light: limited", true, 9.0), bar("dark: no limit", false, 5.0)],
        };
        BarChart {
            subject: "duration of an epoch".to_owned(),
            unit: "s",
            best: Best::Least("fastest"),
            notes: vec!["a note".to_owned()],
            groups: vec![group("original"), group("+blosc, form raw16")],
        }
    }

    #[test]
    fn every_bar_floor_and_name_is_drawn() {
        let text = draw_bars(&chart()).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert_eq!(text.matches("fill=\"#FF0000\"").count(), 4, "{text}");
        for part in [
            "original",
            "+blosc, form raw16",
            "light: limited",
            "dark: no limit",
            "floor: disk",
            "floor: device",
            "outline: published",
            "a note",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("floor: decoder"));
        assert!(crate::to_png(&text).is_ok());
    }

    #[test]
    fn the_title_names_the_best_bar_and_the_worst_of_its_kind() {
        let mut chart = chart();
        chart.groups[1].bars[1].value.mean = 4.0;
        let title = chart.title();
        assert_eq!(title, "+blosc, form raw16, no limit is fastest: 4.00 s; original: 5.00");
        chart.best = Best::Most("slowest");
        assert!(chart.title().starts_with("+blosc, form raw16, limited is slowest: 9.00 s"));
    }

    #[test]
    fn nothing_measured_is_an_empty_chart() {
        let chart = BarChart { groups: Vec::new(), ..chart() };
        assert!(draw_bars(&chart).unwrap().starts_with("<svg"));
    }
}
