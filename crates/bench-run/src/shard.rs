//! Parts of a grid for several machines: which part this process measures.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

/// One of `count` parts of a grid, numbered from 0. Shown as `index/count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

/// `--shard` as typed: `I/N`, or `auto/N` for the index that the launcher gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFlag {
    /// `None` for the launcher's.
    index: Option<u64>,
    count: u64,
}

/// The variables in which a launcher passes a task its number and the number of tasks.
struct Launcher {
    index: &'static str,
    /// `None` if the launcher passes no such number.
    count: Option<&'static str>,
}

/// Slurm's job arrays, HyperQueue's task arrays, Kubernetes' indexed jobs, and Open MPI, as their
/// documentations name the variables.
const LAUNCHERS: [Launcher; 4] = [
    Launcher { index: "SLURM_ARRAY_TASK_ID", count: Some("SLURM_ARRAY_TASK_COUNT") },
    Launcher { index: "HQ_TASK_ID", count: None },
    Launcher { index: "JOB_COMPLETION_INDEX", count: None },
    Launcher { index: "OMPI_COMM_WORLD_RANK", count: Some("OMPI_COMM_WORLD_SIZE") },
];

/// The variables with a task's number. Tests unset them, so that no command measures a part only.
pub const TASK_VARIABLES: [&str; 4] =
    [LAUNCHERS[0].index, LAUNCHERS[1].index, LAUNCHERS[2].index, LAUNCHERS[3].index];

/// A part of a grid that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// The flag is none of the two forms.
    #[error(
        "{typed:?} is not a part of a grid: give I/N, the part I of N counted from 0, or auto/N, where Slurm, HyperQueue, \
         Kubernetes or mpirun gives the part"
    )]
    Form {
        /// The flag as typed.
        typed: String,
    },
    /// The index is not below the count.
    #[error("there is no part {index} of {count}: parts are counted from 0{}", source_of(*.variable))]
    Index {
        /// The part asked for.
        index: u64,
        /// Number of parts.
        count: u64,
        /// The variable that gives the index, if the flag does not.
        variable: Option<&'static str>,
    },
    /// A variable of a launcher is not a number.
    #[error(
        "{variable} is {value:?}, which is not a number; unset it, or name the part with --shard I/N"
    )]
    Variable {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The launcher gives the index alone.
    #[error(
        "{variable} says that this is one task of several, and no variable gives their number: add --shard auto/N for N tasks, or --shard 0/1 to \
         measure everything here"
    )]
    NoCount {
        /// The variable.
        variable: &'static str,
    },
    /// Two launchers, one within the other.
    #[error("{one} and {other} both give the task's number: name its part with --shard I/N")]
    Ambiguous {
        /// A variable with one number.
        one: &'static str,
        /// A variable with another number.
        other: &'static str,
    },
    /// `auto` without a launcher.
    #[error(
        "--shard auto/{count} needs a launcher that gives the part, and none of {} is set",
        variables()
    )]
    NoLauncher {
        /// Number of parts.
        count: u64,
    },
}

fn source_of(variable: Option<&'static str>) -> String {
    variable.map_or_else(String::new, |variable| format!(", and {variable} gives it"))
}

fn variables() -> String {
    LAUNCHERS.iter().map(|launcher| launcher.index).collect::<Vec<_>>().join(", ")
}

impl Shard {
    /// The part of this process: that of the flag, else that of the launcher's variables, else
    /// none, and everything is measured here.
    ///
    /// # Errors
    /// The launcher gives the index alone, an impossible part, or not a number; or two launchers
    /// give one.
    pub fn of_process(flag: Option<ShardFlag>) -> Result<Option<Self>, ShardError> {
        Self::with_variables(flag, |name| std::env::var(name).ok())
    }

    fn with_variables(
        flag: Option<ShardFlag>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ShardError> {
        if let Some(ShardFlag { index: Some(index), count }) = flag {
            return Self::new(index, count, None).map(Some);
        }
        let launchers: Vec<&Launcher> =
            LAUNCHERS.iter().filter(|launcher| variable(launcher.index).is_some()).collect();
        match (&launchers[..], flag) {
            ([], None) => Ok(None),
            ([], Some(ShardFlag { count, .. })) => Err(ShardError::NoLauncher { count }),
            ([launcher], flag) => launcher.shard(flag.map(|flag| flag.count), variable),
            ([one, other, ..], _) => {
                Err(ShardError::Ambiguous { one: one.index, other: other.index })
            }
        }
    }

    fn new(index: u64, count: u64, variable: Option<&'static str>) -> Result<Self, ShardError> {
        if index < count {
            Ok(Self { index, count })
        } else {
            Err(ShardError::Index { index, count, variable })
        }
    }

    /// The items of this part, in their order. Each item is in exactly one part.
    ///
    /// The most expensive items are dealt first, in rounds of one item per part; in each round the
    /// part with the lowest cost so far gets the most expensive item. So each part gets expensive
    /// and cheap items, the numbers of items differ by one at most, and the costs by the most
    /// expensive item at most.
    pub fn deal<T>(self, items: Vec<T>, cost: impl Fn(&T) -> u64) -> Vec<T> {
        let mut by_cost: Vec<(Reverse<u64>, usize)> =
            items.iter().enumerate().map(|(at, item)| (Reverse(cost(item)), at)).collect();
        by_cost.sort_unstable();
        // Further parts get nothing.
        let n_parts = usize::try_from(self.count).unwrap_or(usize::MAX).min(items.len()).max(1);
        let mut parts: Vec<(u128, u64)> = (0..n_parts as u64).map(|part| (0, part)).collect();
        let mut mine = vec![false; items.len()];
        for round in by_cost.chunks(n_parts) {
            parts.sort_unstable();
            for ((Reverse(cost), at), (total, part)) in round.iter().zip(&mut parts) {
                *total += u128::from(*cost);
                mine[*at] = *part == self.index;
            }
        }
        items.into_iter().zip(mine).filter_map(|(item, mine)| mine.then_some(item)).collect()
    }

    /// The part as a folder's name has it: `shard-2-of-8`.
    pub fn folder_name(self) -> String {
        format!("shard-{}-of-{}", self.index, self.count)
    }
}

impl Launcher {
    fn shard(
        &self,
        count: Option<u64>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Shard>, ShardError> {
        let number = |name: &'static str| match variable(name) {
            None => Ok(None),
            Some(value) => match value.trim().parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ShardError::Variable { variable: name, value }),
            },
        };
        let variable = |name: Option<&'static str>| name.map_or(Ok(None), number);
        let count = match count {
            Some(count) => count,
            None => variable(self.count)?.ok_or(ShardError::NoCount { variable: self.index })?,
        };
        let index = number(self.index)?.unwrap_or(0);
        Shard::new(index, count, Some(self.index)).map(Some)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for ShardFlag {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let form = || ShardError::Form { typed: text.to_owned() };
        let (index, count) = text.split_once('/').ok_or_else(form)?;
        let count = count.parse().map_err(|_| form())?;
        let index = match index {
            "auto" => None,
            index => Some(index.parse().map_err(|_| form())?),
        };
        // Also refuses no parts at all.
        Shard::new(index.unwrap_or(0), count, None)?;
        Ok(Self { index, count })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn resolved(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
        let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
        let flag = flag.map(ShardFlag::from_str).transpose().map_err(|error| error.to_string())?;
        Shard::with_variables(flag, |name| variables.get(name).map(|value| (*value).to_owned()))
            .map(|shard| shard.map_or_else(|| "all".to_owned(), |shard| shard.to_string()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_part_is_the_flags_or_the_launchers() {
        let slurm = [("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_COUNT", "4")];
        let alone = [("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_ARRAY_TASK_COUNT", "1")];
        let mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        for (flag, variables, expected) in [
            (None, &[][..], "all"),
            (Some("2/5"), &slurm, "2/5"),
            (None, &slurm, "3/4"),
            (Some("auto/9"), &slurm, "3/9"),
            // One task of an array that is started again.
            (None, &alone, "there is no part 2 of 1"),
            (Some("auto/4"), &alone, "2/4"),
            (None, &[slurm, mpi].concat(), "both give the task's number"),
            (Some("1/2"), &[slurm, mpi].concat(), "1/2"),
            (None, &mpi, "1/2"),
            (None, &[("HQ_TASK_ID", "3")], "HQ_TASK_ID says that this is one task of several"),
            (Some("auto/4"), &[("HQ_TASK_ID", "3")], "3/4"),
            (Some("auto/4"), &[("JOB_COMPLETION_INDEX", "0")], "0/4"),
            (Some("auto/3"), &[("JOB_COMPLETION_INDEX", "3")], "JOB_COMPLETION_INDEX gives it"),
            (Some("auto/4"), &[("HQ_TASK_ID", "x")], "HQ_TASK_ID is \"x\", which is not a number"),
            (Some("auto/4"), &[], "none of SLURM_ARRAY_TASK_ID, HQ_TASK_ID"),
            (Some("4/4"), &[], "there is no part 4 of 4"),
            (Some("0/0"), &[], "there is no part 0 of 0"),
            (Some("auto/0"), &[], "there is no part 0 of 0"),
            (Some("1"), &[], "\"1\" is not a part of a grid"),
            (Some("-1/4"), &[], "\"-1/4\" is not a part of a grid"),
        ] {
            let found = resolved(flag, variables).unwrap_or_else(|error| error);
            assert!(found.contains(expected), "{flag:?} {variables:?}: {found}");
        }
    }

    proptest! {
        #[test]
        fn each_item_is_in_one_part(costs in prop::collection::vec(0_u64..1000, 0..40), count in 1_u64..9) {
            let items: Vec<(usize, u64)> = costs.iter().copied().enumerate().collect();
            let parts: Vec<Vec<(usize, u64)>> = (0..count)
                .map(|index| Shard { index, count }.deal(items.clone(), |item| item.1))
                .collect();
            prop_assert!(parts.iter().all(|part| part.is_sorted_by_key(|item| item.0)));
            let mut all = parts.concat();
            all.sort_unstable();
            prop_assert_eq!(all, items);
            let spread = |all: Vec<u64>| all.iter().max().unwrap() - all.iter().min().unwrap();
            prop_assert!(spread(parts.iter().map(|part| part.len() as u64).collect()) <= 1);
            let most = costs.iter().copied().max().unwrap_or(0);
            let sums = parts.iter().map(|part| part.iter().map(|item| item.1).sum()).collect();
            prop_assert!(spread(sums) <= most);
            // Each part has one of the most expensive items, one of the next, and so on.
            let mut falling = costs;
            falling.sort_unstable_by_key(|cost| Reverse(*cost));
            for part in &parts {
                let mut own: Vec<u64> = part.iter().map(|item| item.1).collect();
                own.sort_unstable_by_key(|cost| Reverse(*cost));
                for (cost, round) in own.iter().zip(falling.chunks(usize::try_from(count).unwrap())) {
                    prop_assert!(round.contains(cost), "{own:?} of {falling:?}");
                }
            }
        }
    }
}
