//! Times: what the numbers of a time axis stand for, and which step is at a time.
//!
//! By the CF conventions (1.12, section 4.4): `units` is a unit of time since a date, `calendar`
//! says how dates are counted.

use crate::calendar::{Calendar, Date, gregorian_day};
use crate::coordinates::{CoordinateValues, Coordinates};

const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
const MICROS_PER_MINUTE: i64 = 60_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
/// Times that are floating point numbers are compared this exactly, at best.
const LEAST_TOLERANCE: i64 = 1_000;

/// A length of time, to the microsecond; it may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan {
    /// Microseconds.
    pub micros: i64,
}

impl TimeSpan {
    /// So many hours.
    pub const fn hours(hours: i64) -> Self {
        Self { micros: hours.saturating_mul(MICROS_PER_HOUR) }
    }

    /// So many days.
    pub const fn days(days: i64) -> Self {
        Self { micros: days.saturating_mul(MICROS_PER_DAY) }
    }
}

impl std::fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.micros {
            micros if micros % MICROS_PER_HOUR == 0 => write!(f, "{}h", micros / MICROS_PER_HOUR),
            micros => write!(f, "{micros}us"),
        }
    }
}

/// The unit and the date that times are counted from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeUnits {
    calendar: Calendar,
    /// Microseconds of a unit.
    unit: i64,
    /// The date, in microseconds since the calendar's day 0.
    since: i64,
}

impl TimeUnits {
    /// Parses the attributes `units` and `calendar`.
    pub(crate) fn parse(units: &str, calendar: Option<&str>) -> Result<Self, String> {
        let calendar = Calendar::named(calendar.unwrap_or("standard"))?;
        let mut words = units.trim().splitn(3, char::is_whitespace);
        let (unit, since, date) = (words.next(), words.next(), words.next());
        let (Some(unit), Some(true), Some(date)) =
            (unit, since.map(|since| since.eq_ignore_ascii_case("since")), date)
        else {
            return Err(format!("the units {units:?} are not those of times: a unit since a date"));
        };
        let unread = |reason| format!("the units {units:?} are not read: {reason}");
        let unit = unit_micros(unit, calendar).map_err(unread)?;
        let (since, _) = parse_moment(date, calendar).map_err(unread)?;
        Ok(Self { calendar, unit, since })
    }

    /// The units of coordinates, if they are times.
    pub(crate) fn of(coordinates: &Coordinates) -> Option<Self> {
        Self::parse(coordinates.attribute("units")?, coordinates.attribute("calendar")).ok()
    }

    /// The number that stands in these units for what `number` stands for in `other`; `None` if
    /// their dates are of different calendars.
    pub(crate) fn converted(&self, number: f64, other: &Self) -> Option<f64> {
        let since = (other.since - self.since) as f64;
        (self.calendar == other.calendar)
            .then_some((number * other.unit as f64 + since) / self.unit as f64)
    }
}

/// The microseconds of coordinates that are lengths of time, such as lead times: `units` is a unit
/// of time alone.
pub(crate) fn span_micros(coordinates: &Coordinates) -> Result<Vec<i64>, String> {
    let units = coordinates.attribute("units").ok_or("they have no attribute `units` (`hours`)")?;
    let units = units.trim();
    let is_nanos = ["nanoseconds", "nanosecond", "ns"].contains(&units);
    let unit = if is_nanos { 1 } else { unit_micros(units, Calendar::Standard)? };
    let divisor = if is_nanos { 1_000 } else { 1 };
    let outside = |at: usize| format!("that at {at} is beyond what 64 bits count");
    match coordinates.values() {
        CoordinateValues::Integers(values) => {
            let each = values.iter().enumerate().map(|(at, value)| {
                let micros = i128::from(*value) * i128::from(unit) / divisor;
                i64::try_from(micros).map_err(|_| outside(at))
            });
            each.collect()
        }
        CoordinateValues::Floats(values) => {
            // As exactly as they are known, they are whole seconds.
            let exact = tolerance(values, unit) as f64;
            let each = values.iter().enumerate().map(|(at, value)| {
                let micros = value * unit as f64 / divisor as f64;
                if !micros.is_finite() {
                    return Err(format!("that at {at} is {value}"));
                }
                let second = (micros / 1e6).round() * 1e6;
                let micros = if (micros - second).abs() <= exact { second } else { micros.round() };
                i64::try_from(micros as i128).map_err(|_| outside(at))
            });
            each.collect()
        }
        CoordinateValues::Strings(_) => Err("they are texts".to_owned()),
    }
}

/// Microseconds of a unit of time.
fn unit_micros(unit: &str, calendar: Calendar) -> Result<i64, String> {
    Ok(match unit.to_ascii_lowercase().as_str() {
        "days" | "day" | "d" => MICROS_PER_DAY,
        "hours" | "hour" | "hrs" | "hr" | "h" => MICROS_PER_HOUR,
        "minutes" | "minute" | "mins" | "min" => MICROS_PER_MINUTE,
        "seconds" | "second" | "secs" | "sec" | "s" => MICROS_PER_SECOND,
        "milliseconds" | "millisecond" | "millisecs" | "millisec" | "msecs" | "msec" | "ms" => {
            1_000
        }
        "microseconds" | "microsecond" | "microsecs" | "microsec" | "us" => 1,
        "months" | "month" if calendar == Calendar::Days360 => 30 * MICROS_PER_DAY,
        "months" | "month" | "years" | "year" => {
            return Err("months and years have no fixed length in this calendar".to_owned());
        }
        other => return Err(format!("{other:?} is no unit of time")),
    })
}

/// A text of a date as a range of moments in microseconds: `2020` is from the beginning of the year
/// to before the next one's.
fn parse_moment(text: &str, calendar: Calendar) -> Result<(i64, i64), String> {
    let bad = || format!("{text:?} is no date like 2020-03-01 06:00:00");
    let text = text.trim();
    // A year may be negative.
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let end = rest.find(|at: char| at == 'T' || at == 't' || at.is_whitespace());
    let (date, time) = end.map_or((rest, ""), |end| (&rest[..end], rest[end + 1..].trim()));
    let numbers: Vec<i64> = date.split('-').map(digits).collect::<Option<_>>().ok_or_else(bad)?;
    let (date, after) = match numbers[..] {
        [year] => (Date { year: sign * year, month: 1, day: 1 }, calendar.next_year(sign * year)),
        [year, month] => {
            (Date { year: sign * year, month, day: 1 }, calendar.next_month(sign * year, month))
        }
        [year, month, day] => {
            let date = Date { year: sign * year, month, day };
            (date, calendar.next(date))
        }
        _ => return Err(bad()),
    };
    let start = calendar.day_number(date)? * MICROS_PER_DAY;
    if time.is_empty() {
        return Ok((start, calendar.day_number(after)? * MICROS_PER_DAY));
    }
    if numbers.len() != 3 {
        return Err(bad());
    }
    let (clock, zone) = zone(time).ok_or_else(bad)?;
    let (micros, precision) = clock_micros(clock).ok_or_else(bad)?;
    let start = start + micros - zone;
    Ok((start, start + precision))
}

/// A number of decimal digits, at most nine.
fn digits(text: &str) -> Option<i64> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|at| at.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The time of the day, and the zone's distance from UTC in microseconds.
fn zone(time: &str) -> Option<(&str, i64)> {
    let upper = time.to_ascii_uppercase();
    for name in ["UTC", "GMT", "Z"] {
        if upper.ends_with(name) {
            return Some((time[..time.len() - name.len()].trim_end(), 0));
        }
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let offset = &offset[1..];
    let (hours, minutes) = match offset.split_once(':') {
        Some((hours, minutes)) => (digits(hours)?, digits(minutes)?),
        None if offset.len() == 4 => (digits(&offset[..2])?, digits(&offset[2..])?),
        None => (digits(offset)?, 0),
    };
    let is_zone = hours <= 24 && minutes < 60;
    let micros = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE;
    is_zone.then_some((clock.trim_end(), sign * micros))
}

/// Microseconds since the day began, and those of the last part that is named.
fn clock_micros(clock: &str) -> Option<(i64, i64)> {
    let parts: Vec<&str> = clock.split(':').collect();
    let hours = digits(parts.first()?).filter(|hours| *hours < 24)?;
    let minutes = parts.get(1).map_or(Some(0), |at| digits(at).filter(|at| *at < 60))?;
    let (seconds, fraction) = match parts.get(2) {
        None => (0, 0),
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
            let fraction = if fraction.is_empty() {
                0
            } else {
                digits(&format!("{:0<6}", fraction.get(..6).unwrap_or(fraction)))?
            };
            (digits(whole).filter(|at| *at < 61)?, fraction)
        }
    };
    let precision = match parts.len() {
        1 => MICROS_PER_HOUR,
        2 => MICROS_PER_MINUTE,
        3 => MICROS_PER_SECOND,
        _ => return None,
    };
    let micros = hours * MICROS_PER_HOUR
        + minutes * MICROS_PER_MINUTE
        + seconds * MICROS_PER_SECOND
        + fraction;
    Some((micros, precision))
}

/// The times of all steps of an axis, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Times {
    calendar: Calendar,
    /// Microseconds since the calendar's day 0.
    micros: Vec<i64>,
    /// How exactly they are known: times that differ by less are equal.
    tolerance: i64,
}

/// Where in its year and its day a time is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Days since the year began.
    pub(crate) year_day: f64,
    /// Days of the year.
    pub(crate) year_days: f64,
    /// The share of the day that has passed.
    pub(crate) day: f64,
}

/// Why no step is at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// It is before the first time, or after the last.
    Outside,
    /// There are times before and after it.
    Gap,
    /// Several steps have this time.
    Doubled,
}

impl Times {
    /// What coordinates stand for.
    pub(crate) fn of(coordinates: &Coordinates) -> Result<Self, String> {
        let units = coordinates.attribute("units");
        let units = units.ok_or("they have no attribute `units` (`hours since 2026-01-01`)")?;
        let units = TimeUnits::parse(units, coordinates.attribute("calendar"))?;
        let outside = |at: usize| format!("the time at {at} is beyond what 64 bits count");
        let (micros, tolerance) = match coordinates.values() {
            CoordinateValues::Integers(values) => {
                let each = values.iter().enumerate().map(|(at, value)| {
                    let micros = i128::from(*value) * i128::from(units.unit);
                    i64::try_from(micros + i128::from(units.since)).map_err(|_| outside(at))
                });
                (each.collect::<Result<Vec<_>, _>>()?, 0)
            }
            CoordinateValues::Floats(values) => {
                let each = values.iter().enumerate().map(|(at, value)| {
                    let micros = (value * units.unit as f64).round();
                    if !micros.is_finite() {
                        return Err(format!("the time at {at} is {value}"));
                    }
                    let micros = micros as i128 + i128::from(units.since);
                    i64::try_from(micros).map_err(|_| outside(at))
                });
                (each.collect::<Result<Vec<_>, _>>()?, tolerance(values, units.unit))
            }
            CoordinateValues::Strings(_) => return Err("they are texts".to_owned()),
        };
        if let Some(at) = micros.windows(2).position(|two| two[1] < two[0]) {
            return Err(format!(
                "they do not ascend: the time at {} is before that at {at}",
                at + 1
            ));
        }
        Ok(Self { calendar: units.calendar, micros, tolerance })
    }

    /// Microseconds of a step, since the calendar's day 0.
    pub(crate) fn micros(&self, step: u64) -> Option<i64> {
        self.micros.get(usize::try_from(step).ok()?).copied()
    }

    /// The month of a step, from 1 to 12.
    pub(crate) fn month(&self, step: u64) -> Option<i64> {
        self.calendar.month(self.micros(step)?.div_euclid(MICROS_PER_DAY))
    }

    /// Where in its year and its day it is so long after a step; NaN beyond the calendar.
    pub(crate) fn moment(&self, step: u64, after: TimeSpan) -> Moment {
        let found = self.micros_after(step, after).and_then(|micros| {
            let number = micros.div_euclid(MICROS_PER_DAY);
            let (days, _) = self.calendar.year(number)?;
            let day = micros.rem_euclid(MICROS_PER_DAY) as f64 / MICROS_PER_DAY as f64;
            let year_day = (number - days.start) as f64 + day;
            Some(Moment { year_day, year_days: (days.end - days.start) as f64, day })
        });
        found.unwrap_or(Moment { year_day: f64::NAN, year_days: f64::NAN, day: f64::NAN })
    }

    /// Fails if the calendar has dates that the Gregorian one does not have.
    pub(crate) fn check_gregorian(&self) -> Result<(), String> {
        match self.calendar {
            Calendar::AllLeap | Calendar::Days360 => Err(format!(
                "the calendar {} has dates that the Gregorian one does not have",
                if self.calendar == Calendar::Days360 { "360_day" } else { "all_leap" }
            )),
            _ => Ok(()),
        }
    }

    fn micros_after(&self, step: u64, after: TimeSpan) -> Option<i64> {
        self.micros(step)?.checked_add(after.micros)
    }

    /// Microseconds since 1970-01-01 of the Gregorian calendar, so long after a step: of the date,
    /// if the calendar counts days in its own way.
    pub(crate) fn gregorian_micros(&self, step: u64, after: TimeSpan) -> Option<i64> {
        let micros = self.micros_after(step, after)?;
        if self.calendar != Calendar::NoLeap {
            return Some(micros);
        }
        let date = self.calendar.date(micros.div_euclid(MICROS_PER_DAY))?;
        Some(gregorian_day(date) * MICROS_PER_DAY + micros.rem_euclid(MICROS_PER_DAY))
    }

    /// The step at a time.
    pub(crate) fn find(&self, micros: i64) -> Result<u64, NotFound> {
        let first = self.micros.partition_point(|at| *at < micros.saturating_sub(self.tolerance));
        let end = self.micros.partition_point(|at| *at <= micros.saturating_add(self.tolerance));
        match end - first {
            1 => Ok(first as u64),
            0 if first == 0 || first == self.micros.len() => Err(NotFound::Outside),
            0 => Err(NotFound::Gap),
            _ => Err(NotFound::Doubled),
        }
    }

    /// The first step at or after the beginning of a date (`2020`, `2020-03-01 06:00`).
    pub(crate) fn first_from(&self, date: &str) -> Result<u64, String> {
        let (start, _) = parse_moment(date, self.calendar)?;
        let start = start.saturating_sub(self.tolerance);
        Ok(self.micros.partition_point(|at| *at < start) as u64)
    }

    /// The first step after the end of a date: `2020` ends with the year.
    pub(crate) fn first_after(&self, date: &str) -> Result<u64, String> {
        let (start, end) = parse_moment(date, self.calendar)?;
        // A date with a time of the day is that moment.
        let is_moment = end - start < MICROS_PER_DAY;
        let end = if is_moment { start + self.tolerance } else { end - 1 };
        Ok(self.micros.partition_point(|at| *at <= end) as u64)
    }

    /// Whether days of both calendars are counted alike.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        use Calendar::{Julian, ProlepticGregorian, Standard};
        let is_real = |calendar| matches!(calendar, Standard | ProlepticGregorian | Julian);
        self.calendar == other.calendar || is_real(self.calendar) && is_real(other.calendar)
    }

    /// Whether they are the same times, as exactly as both are known.
    pub(crate) fn are(&self, other: &Self) -> bool {
        let tolerance = self.tolerance.max(other.tolerance).unsigned_abs();
        let is_same = |(one, other): (&i64, &i64)| one.abs_diff(*other) <= tolerance;
        self.counts_as(other)
            && self.micros.len() == other.micros.len()
            && self.micros.iter().zip(&other.micros).all(is_same)
    }

    /// How exactly times are known, in microseconds.
    pub(crate) fn tolerance(&self) -> i64 {
        self.tolerance
    }
}

/// Microseconds to which floating point numbers are exact: the distance of neighbours of the
/// largest one, in single precision if all are of it.
fn tolerance(values: &[f64], unit: i64) -> i64 {
    let most = values.iter().fold(0_f64, |most, value| most.max(value.abs()));
    let is_single = values.iter().all(|value| f64::from(*value as f32) == *value);
    let is_whole = values.iter().all(|value| value.fract() == 0.0);
    if is_whole && most < f64::from(1 << 24) {
        return LEAST_TOLERANCE;
    }
    let spacing = most * if is_single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    ((spacing * unit as f64).ceil() as i64).max(LEAST_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn times(values: CoordinateValues, units: &str, calendar: &str) -> Result<Times, String> {
        let attributes = json!({"units": units, "calendar": calendar});
        let attributes: Map<String, Value> = attributes.as_object().unwrap().clone();
        Times::of(&Coordinates::new("time", values, attributes))
    }

    fn integers(values: &[i64], units: &str, calendar: &str) -> Times {
        times(CoordinateValues::Integers(values.to_vec()), units, calendar).unwrap()
    }

    fn moment(date: &str, calendar: &str) -> i64 {
        parse_moment(date, Calendar::named(calendar).unwrap()).unwrap().0
    }

    #[test]
    fn numbers_stand_for_the_times_of_their_calendar() {
        for (units, value, calendar, date) in [
            ("days since 2020-02-28 23:10:00", 1, "standard", "2020-02-29 23:10"),
            ("days since 2020-02-28 23:10:00", 1, "noleap", "2020-03-01 23:10"),
            ("days since 2020-02-28 23:10:00", 1, "360_day", "2020-02-29 23:10"),
            ("days since 1850-01-01", 60_265, "gregorian", "2015-01-01"),
            ("days since 1850-01-01", 60_225, "365_day", "2015-01-01"),
            ("days since 1850-01-01", 59_400, "360_day", "2015-01-01"),
            ("days since 1582-10-04", 1, "standard", "1582-10-15"),
            ("days since 1582-10-04", 1, "proleptic_gregorian", "1582-10-05"),
            ("days since 1582-10-04", 1, "julian", "1582-10-05"),
            ("hours since 1900-01-01", 350_616, "standard", "1940-01-01"),
            ("hours since 1900-01-01", 517_176, "proleptic_gregorian", "1959-01-01"),
            ("seconds since 2000-1-1T0:0:0 +01:00", 0, "standard", "1999-12-31 23:00:00"),
            ("months since 2000-01-01", 2, "360_day", "2000-03-01"),
            ("hours since -1-12-31", 24, "julian", "1-01-01"),
        ] {
            let times = integers(&[value], units, calendar);
            assert_eq!(times.micros(0), Some(moment(date, calendar)), "{value} {units} {calendar}");
        }
    }

    #[test]
    fn units_that_are_no_times_are_errors() {
        for (units, calendar) in [
            ("months since 2000-01-01", "standard"),
            ("years since 2000-01-01", "noleap"),
            ("days since 0-01-01", "standard"),
            ("days since 2000-01-01", "foo"),
            ("days", "standard"),
            ("days since", "standard"),
            ("K", "standard"),
            ("days since 2000-01-01 25:00", "standard"),
            ("days since 2000-01-01-01", "standard"),
            ("days since 99999999999-01-01", "noleap"),
            ("parsecs since 2000-01-01", "standard"),
        ] {
            let found = times(CoordinateValues::Integers(vec![0]), units, calendar);
            assert!(found.is_err(), "{units} {calendar}");
        }
        let hours = "hours since 2000-01-01";
        assert!(times(CoordinateValues::Integers(vec![i64::MAX]), hours, "standard").is_err());
        assert!(times(CoordinateValues::Floats(vec![f64::NAN]), hours, "standard").is_err());
        assert!(times(CoordinateValues::Integers(vec![2, 1]), hours, "standard").is_err());
    }

    #[test]
    fn steps_are_found_by_their_time() {
        let times = integers(&[0, 6, 6, 12, 24], "hours since 2000-01-01", "standard");
        let find =
            |hours: i64| times.find(moment("2000-01-01", "standard") + hours * MICROS_PER_HOUR);
        assert_eq!(find(0), Ok(0));
        assert_eq!(find(12), Ok(3));
        assert_eq!(find(6), Err(NotFound::Doubled));
        assert_eq!(find(18), Err(NotFound::Gap));
        assert_eq!((find(-6), find(30)), (Err(NotFound::Outside), Err(NotFound::Outside)));
    }

    /// Single precision has 1/24 of day 60,264 only to within 112.5 s.
    #[test]
    fn times_of_single_precision_are_found_by_their_tolerance() {
        let values = (0..48).map(|hour| f64::from(60_264.0_f32 + hour as f32 / 24.0)).collect();
        let times =
            times(CoordinateValues::Floats(values), "days since 1850-01-01", "standard").unwrap();
        let start = moment("1850-01-01", "standard") + 60_264 * MICROS_PER_DAY;
        assert_eq!(times.micros(1), Some(start + MICROS_PER_HOUR + 112_500_000));
        for hour in 0..48 {
            assert_eq!(times.find(start + hour * MICROS_PER_HOUR), Ok(hour as u64));
        }
    }

    #[test]
    fn dates_choose_steps() {
        // Six-hourly, 2019 and 2020.
        let hours: Vec<i64> = (0..4 * (365 + 366)).map(|step| 6 * step).collect();
        let times = integers(&hours, "hours since 2019-01-01", "standard");
        assert_eq!(times.first_from("2020"), Ok(1_460));
        assert_eq!(times.first_after("2019"), Ok(1_460));
        assert_eq!(times.first_after("2020"), Ok(2_924));
        assert_eq!(times.first_from("2019-01-01T05"), Ok(1));
        assert_eq!(times.first_after("2019-01-01T06:00"), Ok(2));
        assert_eq!(times.first_after("2019-02"), Ok(4 * 59));
        assert!(times.first_from("2019-02-30").is_err());
        assert!(times.first_from("soon").is_err());
    }

    #[test]
    fn lead_times_in_single_precision_are_whole_seconds() {
        let of = |values: CoordinateValues, units: &str| {
            let attributes = json!({"units": units}).as_object().unwrap().clone();
            span_micros(&Coordinates::new("lead", values, attributes)).unwrap()
        };
        let hours: Vec<i64> = (0..60).map(|at| 2 * at).collect();
        let right: Vec<i64> = hours.iter().map(|at| at * MICROS_PER_HOUR).collect();
        let days = hours.iter().map(|at| f64::from(*at as f32 / 24.0)).collect();
        assert_eq!(of(CoordinateValues::Floats(days), "days"), right);
        assert_eq!(of(CoordinateValues::Integers(hours), "hours"), right);
        assert_eq!(of(CoordinateValues::Floats(vec![0.5]), "seconds"), [500_000]);
    }

    #[test]
    fn equal_times_may_be_counted_in_other_ways() {
        let whole =
            times(CoordinateValues::Integers(vec![0, 6, 18]), "hours since 2000-01-01", "standard");
        let days = CoordinateValues::Floats(vec![0.0, 0.25, 0.75]);
        let days = times(days, "days since 2000-01-01", "proleptic_gregorian");
        assert!(whole.as_ref().unwrap().are(days.as_ref().unwrap()));
        let other =
            times(CoordinateValues::Integers(vec![0, 6, 12]), "hours since 2000-01-01", "standard");
        assert!(!whole.as_ref().unwrap().are(&other.unwrap()));
        let model =
            times(CoordinateValues::Integers(vec![0, 6, 18]), "hours since 2000-01-01", "noleap");
        assert!(!whole.unwrap().are(&model.unwrap()));
    }
}
