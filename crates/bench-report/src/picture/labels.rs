//! Names beside marks, placed one after the other where they cover nothing.

use super::{
    TEXT,
    canvas::{Align, Canvas, Ink, text_width},
};
use crate::Error;

const HEIGHT: f64 = 17.0;
/// A mark has no name if another of its series is this near.
const NEAR: f64 = 64.0;

/// A rectangle of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) upper: f64,
    pub(super) right: f64,
    pub(super) lower: f64,
}

impl Frame {
    pub(super) fn around((x, y): (f64, f64), half_width: f64, half_height: f64) -> Self {
        Self {
            left: x - half_width,
            upper: y - half_height,
            right: x + half_width,
            lower: y + half_height,
        }
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.upper < other.lower
            && other.upper < self.lower
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.upper <= other.upper
            && other.lower <= self.lower
    }

    /// Its distance from a mark's edge.
    fn distance(&self, mark: &Named<'_>) -> f64 {
        let (x, y) = mark.at;
        let away = (x - x.clamp(self.left, self.right)).hypot(y - y.clamp(self.upper, self.lower));
        (away - mark.reach).max(0.0)
    }

    pub(super) fn middle(&self) -> (f64, f64) {
        (f64::midpoint(self.left, self.right), f64::midpoint(self.upper, self.lower))
    }
}

/// A mark that needs a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) text: &'a str,
    pub(super) at: (f64, f64),
    /// Largest distance from the mark's center to its edge.
    pub(super) reach: f64,
}

/// A name at its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) text: String,
    pub(super) frame: Frame,
}

/// Places the names of `marks` within `inside`, off the marks, off `occupied` and off each other. A
/// name that fits nowhere near its mark, or only as near to a mark with another name, is left out;
/// the legend has all names.
pub(super) fn place(marks: &[Named<'_>], occupied: &[Frame], inside: Frame) -> Vec<Label> {
    let mut occupied = occupied.to_vec();
    occupied.extend(marks.iter().map(|mark| Frame::around(mark.at, mark.reach, mark.reach)));
    let mut labels: Vec<Label> = Vec::new();
    let mut named: Vec<Named<'_>> = Vec::new();
    for mark in marks {
        let is_near = |other: &Named<'_>| {
            let away = (other.at.0 - mark.at.0).hypot(other.at.1 - mark.at.1);
            other.text == mark.text && away < NEAR
        };
        if named.iter().any(is_near) {
            continue;
        }
        let is_other_label = |frame: &Frame| {
            let others = marks.iter().filter(|other| other.text != mark.text);
            others.into_iter().any(|other| frame.distance(other) <= frame.distance(mark))
        };
        let is_free = |frame: &Frame| {
            inside.contains(frame)
                && !occupied.iter().any(|other| other.overlaps(frame))
                && !is_other_label(frame)
        };
        if let Some(frame) = candidates(mark).find(is_free) {
            labels.push(Label { text: mark.text.to_owned(), frame });
            occupied.push(frame);
            named.push(*mark);
        }
    }
    labels
}

/// Positions beside, over and under the mark, then farther off.
fn candidates(mark: &Named<'_>) -> impl Iterator<Item = Frame> {
    let (half_width, half_height) = (text_width(mark.text, TEXT) * 0.53 + 2.0, HEIGHT / 2.0);
    let (at, reach) = (mark.at, mark.reach);
    [3.0, 9.0, 17.0].into_iter().flat_map(move |gap| {
        let (across, down) = (reach + gap + half_width, reach + gap + half_height);
        let (slant, tilt) = (reach * 0.6 + gap + half_width, reach * 0.6 + gap + half_height);
        [
            (across, 0.0),
            (-across, 0.0),
            (0.0, -down),
            (0.0, down),
            (slant, -tilt),
            (slant, tilt),
            (-slant, -tilt),
            (-slant, tilt),
        ]
        .map(|(x, y)| Frame::around((at.0 + x, at.1 + y), half_width, half_height))
    })
}

pub(super) fn draw(canvas: &Canvas<'_>, labels: &[Label]) -> Result<(), Error> {
    for Label { text, frame } in labels {
        // Grid lines would run through the letters.
        let corners = [
            (frame.left, frame.upper),
            (frame.right, frame.upper),
            (frame.right, frame.lower),
            (frame.left, frame.lower),
        ];
        canvas.polygon(
            &corners,
            Ink::PAPER.with_opacity(0.85),
            Ink::PAPER.with_opacity(0.0),
            0.0,
        )?;
        canvas.text(text, frame.middle(), TEXT, Ink::TEXT, Align::Center)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INSIDE: Frame = Frame { left: 0.0, upper: 0.0, right: 400.0, lower: 300.0 };

    #[test]
    fn a_group_of_marks_has_one_name() {
        let mark = |text, x| Named { text, at: (x, 150.0), reach: 8.0 };
        let marks = [mark("a", 100.0), mark("a", 120.0), mark("b", 240.0), mark("a", 320.0)];
        let texts: Vec<String> =
            place(&marks, &[], INSIDE).into_iter().map(|label| label.text).collect();
        assert_eq!(texts, ["a", "b", "a"]);
    }

    #[test]
    fn a_name_that_has_no_room_is_left_out() {
        let long = "a loader of a very, very long name that no picture would have room for";
        assert_eq!(place(&[Named { text: long, at: (200.0, 150.0), reach: 8.0 }], &[], INSIDE), []);
    }

    proptest! {
        #[test]
        fn names_cover_nothing_and_stay_inside(
            places in prop::collection::vec((0.0_f64..400.0, 0.0_f64..300.0, 4.0_f64..20.0, 0_usize..8), 1..25),
        ) {
            let names = ["somafeed", "somafeed, relaid", "annbatch", "annbatch documented", "scdataset", "pipe", "ml", "x"];
            let marks: Vec<Named<'_>> = places
                .iter()
                .map(|&(x, y, reach, idx)| Named { text: names[idx], at: (x, y), reach })
                .collect();
            let bar = Frame { left: 190.0, upper: 0.0, right: 193.0, lower: 300.0 };
            let labels = place(&marks, &[bar], INSIDE);
            for (idx, label) in labels.iter().enumerate() {
                prop_assert!(INSIDE.contains(&label.frame) && !bar.overlaps(&label.frame));
                prop_assert!(labels[..idx].iter().all(|other| !other.frame.overlaps(&label.frame)));
                for mark in &marks {
                    let around = Frame::around(mark.at, mark.reach, mark.reach);
                    prop_assert!(!around.overlaps(&label.frame), "{label:?} {mark:?}");
                }
                let away = |mine: bool| {
                    let chosen = marks.iter().filter(|mark| (mark.text == label.text) == mine);
                    chosen.map(|mark| label.frame.distance(mark)).fold(f64::INFINITY, f64::min)
                };
                prop_assert!(away(true) < away(false), "{label:?} stands beside another");
            }
        }
    }
}
