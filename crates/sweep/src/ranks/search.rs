//! Searches the largest number of ranks that is enough, with few measurements.

/// Returns the largest number from 1 to `most` for which `is_enough` holds, `None` if it does not
/// hold for 1. Doubles the number until it is too large, then halves the interval. `is_enough` is
/// asked once per number, and must not hold above a number for which it does not. Fails with its
/// error.
pub(crate) fn largest<Error>(
    most: u64,
    is_enough: &mut dyn FnMut(u64) -> Result<bool, Error>,
) -> Result<Option<u64>, Error> {
    let (mut enough, mut too_many) = (0, most.saturating_add(1));
    // Doubles as long as no number was too large.
    let mut next = 1;
    while next < too_many {
        if is_enough(next)? {
            enough = next;
        } else {
            too_many = next;
        }
        next = if too_many <= most {
            enough + (too_many - enough) / 2
        } else {
            enough.saturating_mul(2).min(most)
        };
        if next == enough {
            break;
        }
    }
    Ok((0 < enough).then_some(enough))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_equals_the_naive_one(most in 1_u64..300, limit in 0_u64..320) {
            let mut asked = Vec::new();
            let found = largest(most, &mut |n| {
                asked.push(n);
                Ok::<_, Infallible>(n <= limit)
            })
            .unwrap();
            let naive = (1..=most).filter(|n| *n <= limit).max();
            prop_assert_eq!(found, naive);
            let n_asked = asked.len();
            prop_assert!(asked.iter().all(|n| (1..=most).contains(n)), "{:?}", asked);
            asked.sort_unstable();
            asked.dedup();
            prop_assert_eq!(asked.len(), n_asked, "a number was asked for twice");
            let most_asked = 2 * (u64::BITS - most.leading_zeros()) as usize + 1;
            prop_assert!(n_asked <= most_asked, "{n_asked} measurements for {most}");
        }

        #[test]
        fn an_error_ends_the_search(most in 1_u64..300, at in 1_usize..5) {
            let mut n_asked = 0;
            let found = largest(most, &mut |_| {
                n_asked += 1;
                if n_asked == at { Err("stop") } else { Ok(true) }
            });
            prop_assert!(found == Err("stop") && n_asked == at || n_asked < at);
        }
    }
}
