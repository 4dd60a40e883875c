//! The rank of this process among several: given as arguments, or read from the launcher's
//! environment.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The rank of this process, and the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct World {
    /// The rank, counted from 0 across all machines; never the number on one machine
    /// (`LOCAL_RANK`).
    pub rank: u64,
    /// Number of ranks on all machines together.
    pub size: u64,
}

/// One process alone.
impl Default for World {
    fn default() -> Self {
        Self { rank: 0, size: 1 }
    }
}

/// The variables in which a launcher puts rank and world size.
#[derive(Clone, Copy)]
struct Launcher {
    rank: &'static str,
    size: &'static str,
}

const TORCH: Launcher = Launcher { rank: "RANK", size: "WORLD_SIZE" };
/// Variables of a Slurm step, and of an allocation without steps.
const SLURM_STEP: Launcher = Launcher { rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS" };
const SLURM: Launcher = Launcher { rank: "SLURM_PROCID", size: "SLURM_NTASKS" };
/// Variables of OpenMPI; of MVAPICH; of MPICH and Intel MPI.
const MPI: [Launcher; 3] = [
    Launcher { rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE" },
    Launcher { rank: "MV2_COMM_WORLD_RANK", size: "MV2_COMM_WORLD_SIZE" },
    Launcher { rank: "PMI_RANK", size: "PMI_SIZE" },
];

impl World {
    /// Reads rank and world size from the environment; a single process if no launcher has set
    /// them.
    ///
    /// | first pair that is set | set by |
    /// |---|---|
    /// | `RANK`, `WORLD_SIZE` | torchrun, or by hand |
    /// | `NODE_RANK`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, and `WORLD_SIZE` or `NNODES` | a launcher that numbers processes by machine |
    /// | `SLURM_PROCID`, `SLURM_NTASKS` | srun |
    /// | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`; `MV2_COMM_WORLD_…`; `PMI_RANK`, `PMI_SIZE` | mpirun of OpenMPI, MVAPICH, MPICH and Intel MPI |
    ///
    /// Slurm sets its variables in every allocation, even if srun started nothing there: those are
    /// ignored. If srun started mpirun, one per machine, the two disagree, and mpirun's variables
    /// count: it started this process.
    ///
    /// # Errors
    /// Only one variable of a pair is set; a value is not a number; the rank is not below the size;
    /// two kinds of MPI disagree; srun started this shell as one of several tasks; only the number
    /// on the machine is set (`LOCAL_RANK`, `PMIX_RANK` without a size). The message names the
    /// variables.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_lookup(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    /// Like [`World::from_environment`], with any source of variables.
    ///
    /// # Errors
    /// Those of [`World::from_environment`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let variables = Variables { lookup: &lookup };
        if let Some(world) = variables.by_machine()? {
            return Ok(world);
        }
        if let Some(world) = variables.pair(TORCH)? {
            return Ok(world);
        }
        let mpi = variables.mpi()?;
        let slurm = variables.slurm(mpi)?;
        if let Some(world) = mpi.or(slurm) {
            return Ok(world);
        }
        for lone in ["LOCAL_RANK", "PMIX_RANK"] {
            if variables.get(lone).is_some() {
                return Err(Error::RankUnknown { variable: lone });
            }
        }
        Ok(Self::default())
    }

    /// Fails if the rank is not below the size.
    pub(crate) fn check(self) -> Result<(), Error> {
        let Self { rank, size } = self;
        if rank < size { Ok(()) } else { Err(Error::NoSuchRank { rank, size }) }
    }
}

/// The environment, or a substitute for it.
struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    /// The value of a variable. An empty variable counts as unset.
    fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.trim().is_empty())
    }

    fn number(&self, name: &'static str) -> Result<Option<u64>, Error> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Error::RankNotANumber { variable: name, value }),
        }
    }

    /// Both numbers of a launcher, or neither.
    fn pair(&self, Launcher { rank, size }: Launcher) -> Result<Option<World>, Error> {
        match (self.number(rank)?, self.number(size)?) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(Error::RankHalfSet { set: rank, missing: size }),
            (None, Some(_)) => Err(Error::RankHalfSet { set: size, missing: rank }),
            (Some(of_rank), Some(of_size)) => {
                let world = World { rank: of_rank, size: of_size };
                world.check().map_err(|_| Error::RankOutside {
                    variables: (rank, size),
                    rank: of_rank,
                    size: of_size,
                })?;
                Ok(Some(world))
            }
        }
    }

    /// Computes the rank from the process's number on its machine and the machine's number, if
    /// `RANK` is not set.
    fn by_machine(&self) -> Result<Option<World>, Error> {
        let number = |name| self.number(name);
        let (Some(node), Some(local), Some(of_node), None) = (
            number("NODE_RANK")?,
            number("LOCAL_RANK")?,
            number("LOCAL_WORLD_SIZE")?,
            number("RANK")?,
        ) else {
            return Ok(None);
        };
        let (size_variable, size) = match (number("WORLD_SIZE")?, number("NNODES")?) {
            (Some(size), _) => ("WORLD_SIZE", size),
            (None, Some(nodes)) => ("NNODES", nodes.saturating_mul(of_node)),
            (None, None) => return Ok(None),
        };
        if local >= of_node {
            let variables = ("LOCAL_RANK", "LOCAL_WORLD_SIZE");
            return Err(Error::RankOutside { variables, rank: local, size: of_node });
        }
        let rank = node.saturating_mul(of_node).saturating_add(local);
        let variables = ("NODE_RANK", size_variable);
        let world = World { rank, size };
        world.check().map_err(|_| Error::RankOutside { variables, rank, size })?;
        Ok(Some(world))
    }

    /// The values of mpirun. All variables that it has set must agree.
    fn mpi(&self) -> Result<Option<World>, Error> {
        let mut found: Option<(Launcher, World)> = None;
        for launcher in MPI {
            let Some(world) = self.pair(launcher)? else { continue };
            match found {
                Some((first, other)) if other != world => {
                    return Err(Error::RankContradiction {
                        variables: [first.rank, first.size, launcher.rank, launcher.size],
                        worlds: [(other.rank, other.size), (world.rank, world.size)],
                    });
                }
                Some(_) => {}
                None => found = Some((launcher, world)),
            }
        }
        Ok(found.map(|(_, world)| world))
    }

    /// The values of srun, if it started this process.
    fn slurm(&self, mpi: Option<World>) -> Result<Option<World>, Error> {
        let of_step = ["SLURM_STEP_ID", "SLURM_STEPID"].iter().any(|name| self.get(name).is_some());
        let has_tasks = self.get(SLURM_STEP.size).is_some();
        let of_allocation = self.get("SLURM_JOB_ID").or_else(|| self.get("SLURM_JOBID")).is_some();
        if of_allocation && !of_step && !has_tasks {
            return Ok(None);
        }
        // A step may have fewer tasks than its allocation.
        let world = self.pair(if has_tasks { SLURM_STEP } else { SLURM })?;
        // A shell that waits for commands is one of several tasks, but the others do not run the
        // commands.
        match world {
            Some(World { size, .. }) if size > 1 && mpi.is_none() && self.is_shell() => {
                Err(Error::RankOfShell { size })
            }
            world => Ok(world),
        }
    }

    /// Whether srun started an interactive shell: by the job's name, as Lightning decides, or by
    /// srun's terminal.
    fn is_shell(&self) -> bool {
        let is_named = self
            .get("SLURM_JOB_NAME")
            .is_some_and(|name| matches!(name.as_str(), "bash" | "interactive"));
        is_named && self.get("SLURM_PTY_PORT").is_some()
    }
}
