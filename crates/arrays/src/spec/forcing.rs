//! Forcings: what is computed from times and places, in place of an array.

/// What is computed from the time of a step, and the latitudes and longitudes of the grid. Each is
/// one field of shape `[latitude, longitude]`, in the order and the direction of the variable whose
/// grid it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forcing {
    /// The cosine of the angle between the sun and the zenith, from -1 to 1; below 0 the sun is
    /// below the horizon. Where the year begins and how many days it has is by the calendar.
    ///
    /// Source: "General Solar Position Calculations" of NOAA's Global Monitoring Division, whose
    /// declination and equation of time are the series of Spencer (1971), "Fourier series
    /// representation of the position of the sun", Search 2 (5), 172. From 1950 to 2050 they are
    /// within 0.01 of the formula of the Astronomical Almanac. Refraction is not counted.
    CosineZenith,
    /// The sine of 2π times the share of the calendar's year that has passed.
    YearSine,
    /// The cosine of the same.
    YearCosine,
    /// The sine of 2π times the share of the local day that has passed, which is 0 at midnight: the
    /// day begins an hour earlier for each 15 degrees to the east.
    DaySine,
    /// The cosine of the same.
    DayCosine,
    /// The time itself, without a grid: microseconds since 1970-01-01 of the date in the Gregorian
    /// calendar, as `int64`. Calendars with days that this does not have are refused.
    Time,
}
