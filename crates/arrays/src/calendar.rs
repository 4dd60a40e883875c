//! Calendars: the days of dates, by the CF conventions (1.12, section 4.4.1).

use std::ops::Range;

/// A calendar of the CF conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// Julian until 1582-10-04, Gregorian from the next day, 1582-10-15.
    Standard,
    /// Gregorian at all times.
    ProlepticGregorian,
    /// Every fourth year is a leap year.
    Julian,
    /// Every year has 365 days.
    NoLeap,
    /// Every year has 366 days.
    AllLeap,
    /// Every month has 30 days.
    Days360,
}

/// A day of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
}

/// The first day of the Gregorian calendar, 1582-10-15, in days since 1970-01-01.
const FIRST_GREGORIAN: i64 = -141_427;
/// The largest year, so that days and microseconds stay within an `i64`.
const MOST_YEARS: i64 = 200_000;

impl Calendar {
    /// The calendar that an attribute names.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Days360,
            _ => {
                return Err(format!(
                    "the calendar {name:?} is not known: there are standard, proleptic_gregorian, \
                     julian, noleap, all_leap and 360_day"
                ));
            }
        })
    }

    /// The number of days of a month.
    fn month_days(self, year: i64, month: i64) -> i64 {
        // Neither has a year 0: the year before 1 is -1, a leap year.
        let is_julian_leap = (year + i64::from(year < 0)) % 4 == 0;
        let is_leap = match self {
            Self::Standard if year < 1583 => is_julian_leap,
            Self::Standard | Self::ProlepticGregorian => {
                year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            }
            Self::Julian => is_julian_leap,
            Self::NoLeap => false,
            Self::AllLeap => true,
            Self::Days360 => return 30,
        };
        match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// The number of a day: days since one that all dates of the calendar are counted from, in the
    /// standard, Gregorian and Julian ones 1970-01-01 of the Gregorian.
    pub(crate) fn day_number(self, date: Date) -> Result<i64, String> {
        let Date { year, month, day } = date;
        let has_day = (1..=12).contains(&month)
            && (-MOST_YEARS..=MOST_YEARS).contains(&year)
            && (1..=self.month_days(year, month)).contains(&day);
        let has_year = year != 0 || !matches!(self, Self::Standard | Self::Julian);
        let was_left_out =
            self == Self::Standard && (year, month) == (1582, 10) && (5..15).contains(&day);
        if !has_day || !has_year || was_left_out {
            return Err(format!("there is no {year:04}-{month:02}-{day:02} in its calendar"));
        }
        Ok(match self {
            Self::ProlepticGregorian => gregorian_day(date),
            Self::Julian => julian_day(date),
            Self::Standard => match gregorian_day(date) {
                number if FIRST_GREGORIAN <= number => number,
                _ => julian_day(date),
            },
            Self::NoLeap | Self::AllLeap | Self::Days360 => {
                let months = (1..month).map(|month| self.month_days(year, month));
                year * self.year_days() + months.sum::<i64>() + day - 1
            }
        })
    }

    /// Days of a year, where all have as many.
    fn year_days(self) -> i64 {
        (1..=12).map(|month| self.month_days(1, month)).sum()
    }

    /// The month of a day, given its number; `None` beyond the largest year.
    pub(crate) fn month(self, number: i64) -> Option<i64> {
        let (_, mut first) = self.year(number)?;
        loop {
            let next = self.next_month(first.year, first.month);
            if number < self.day_number(next).ok()? {
                return Some(first.month);
            }
            first = next;
        }
    }

    /// The date of a day, given its number; `None` beyond the largest year.
    pub(crate) fn date(self, number: i64) -> Option<Date> {
        let (_, Date { year, .. }) = self.year(number)?;
        let mut date = Date { year, month: self.month(number)?, day: 1 };
        while self.day_number(date).ok()? < number {
            date = self.next(date);
        }
        Some(date)
    }

    /// The numbers of the first day of the year in which a day is, given its number, and of that of
    /// the next year, with the first day; `None` beyond the largest year.
    pub(crate) fn year(self, number: i64) -> Option<(Range<i64>, Date)> {
        let year = match self {
            Self::Standard | Self::ProlepticGregorian | Self::Julian => {
                // Years of other calendars and a year 0 that is not there are less than 6 years
                // off.
                1970 + number.div_euclid(146_097) * 400 + number.rem_euclid(146_097) / 366 - 6
            }
            Self::NoLeap | Self::AllLeap | Self::Days360 => number.div_euclid(self.year_days()),
        };
        let year = if year == 0 { -1 } else { year };
        let mut first = Date { year, month: 1, day: 1 };
        loop {
            let next = self.next_year(first.year);
            let end = self.day_number(next).ok()?;
            if number < end {
                return Some((self.day_number(first).ok()?..end, first));
            }
            first = next;
        }
    }

    /// The day after a date.
    pub(crate) fn next(self, Date { year, month, day }: Date) -> Date {
        if (self, year, month, day) == (Self::Standard, 1582, 10, 4) {
            return Date { year, month, day: 15 };
        }
        if day < self.month_days(year, month) {
            return Date { year, month, day: day + 1 };
        }
        self.next_month(year, month)
    }

    /// The first day of the month after this one.
    pub(crate) fn next_month(self, year: i64, month: i64) -> Date {
        if month < 12 {
            return Date { year, month: month + 1, day: 1 };
        }
        self.next_year(year)
    }

    /// The first day of the year after this one.
    pub(crate) fn next_year(self, year: i64) -> Date {
        let has_no_0 = matches!(self, Self::Standard | Self::Julian) && year == -1;
        Date { year: if has_no_0 { 1 } else { year + 1 }, month: 1, day: 1 }
    }
}

/// Days of the months before this one, in years that begin in March.
fn days_before(month: i64) -> i64 {
    (153 * ((month + 9) % 12) + 2) / 5
}

/// Days since 1970-01-01 in the Gregorian calendar.
pub(crate) fn gregorian_day(Date { year, month, day }: Date) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let days = of_era * 365 + of_era / 4 - of_era / 100 + days_before(month) + day - 1;
    era * 146_097 + days - 719_468
}

/// Days since 1970-01-01 of the Gregorian calendar, of a date of the Julian one. It has no year 0.
fn julian_day(Date { year, month, day }: Date) -> i64 {
    let year = year + i64::from(year < 0) - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(4), year.rem_euclid(4));
    era * 1_461 + of_era * 365 + days_before(month) + day - 1 - 719_470
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Calendar; 6] = [
        Calendar::Standard,
        Calendar::ProlepticGregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ];

    fn number(calendar: Calendar, year: i64, month: i64, day: i64) -> i64 {
        calendar.day_number(Date { year, month, day }).unwrap()
    }

    /// Each date's number is one more than that of the day before, over centuries.
    #[test]
    fn days_follow_each_other() {
        for calendar in ALL {
            for year in [-402, 1380, 1890] {
                let mut date = Date { year, month: 1, day: 1 };
                let mut expected = calendar.day_number(date).unwrap();
                while date.year < year + 420 {
                    assert_eq!(
                        calendar.day_number(date).unwrap(),
                        expected,
                        "{calendar:?} {date:?}"
                    );
                    if date.day == 1 || date.day > 27 {
                        let found = calendar.month(expected);
                        assert_eq!(found, Some(date.month), "{calendar:?} {date:?}");
                        assert_eq!(calendar.date(expected), Some(date), "{calendar:?}");
                        let (days, first) = calendar.year(expected).unwrap();
                        assert!(days.contains(&expected), "{calendar:?} {date:?}");
                        assert_eq!(first, Date { year: date.year, month: 1, day: 1 });
                    }
                    date = calendar.next(date);
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn known_days_have_their_numbers() {
        assert_eq!(number(Calendar::Standard, 1970, 1, 1), 0);
        assert_eq!(number(Calendar::ProlepticGregorian, 2000, 3, 1), 11_017);
        assert_eq!(number(Calendar::Standard, 1582, 10, 15), FIRST_GREGORIAN);
        assert_eq!(number(Calendar::Julian, 1582, 10, 5), FIRST_GREGORIAN);
        // 2015-01-01 in days since 1850-01-01.
        let days = |calendar| number(calendar, 2015, 1, 1) - number(calendar, 1850, 1, 1);
        assert_eq!(days(Calendar::Standard), 60_265);
        assert_eq!(days(Calendar::NoLeap), 60_225);
        assert_eq!(days(Calendar::Days360), 59_400);
        assert_eq!(
            number(Calendar::Days360, 2001, 1, 1) - number(Calendar::Days360, 2000, 1, 1),
            360
        );
        let days_of = |calendar: Calendar, year| {
            let (days, _) = calendar.year(number(calendar, year, 7, 1)).unwrap();
            days.end - days.start
        };
        let lengths = ALL.map(|calendar| (days_of(calendar, 1900), days_of(calendar, 2000)));
        assert_eq!(
            lengths,
            [(365, 366), (365, 366), (366, 366), (365, 365), (366, 366), (360, 360)]
        );
        // Ten days were left out.
        assert_eq!(days_of(Calendar::Standard, 1582), 355);
    }

    #[test]
    fn dates_that_are_not_there_are_errors() {
        for (calendar, year, month, day) in [
            (Calendar::Standard, 0, 1, 1),
            (Calendar::Julian, 0, 1, 1),
            (Calendar::Standard, 1582, 10, 10),
            (Calendar::NoLeap, 2000, 2, 29),
            (Calendar::ProlepticGregorian, 1900, 2, 29),
            (Calendar::Days360, 2000, 1, 31),
            (Calendar::AllLeap, 2001, 13, 1),
            (Calendar::AllLeap, i64::MAX, 1, 1),
        ] {
            assert!(calendar.day_number(Date { year, month, day }).is_err(), "{calendar:?} {year}");
        }
        assert!(
            Calendar::ProlepticGregorian.day_number(Date { year: 0, month: 2, day: 29 }).is_ok()
        );
        assert!(Calendar::named("foo").unwrap_err().contains("foo"));
    }
}
