//! Measures one task in its own process.

use std::sync::Arc;

use bench_run::{IoLimit, Order, Reporter};

use super::core_loads::CoreLoads;
use super::epochs::Epochs;
use super::floors;
use super::open::{pipeline, plain_memory};
use super::point::{Consumer, Point};
use super::task::{CubeAnswer, CubeData, CubeTask, CubeWork};
use crate::device::{Clock, Device, StandIn, SystemClock, torch};

/// Reads an order from stdin, performs it and reports on stdout.
pub(crate) fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &CubeTask| task.data.secrets(), perform)
}

fn perform(order: &Order<CubeTask>, reporter: &mut Reporter<CubeAnswer>) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let CubeTask { data, work } = &order.task;
    match work {
        CubeWork::Load(point) => load(data, point, (&order.cache, &clock), reporter),
        CubeWork::Floor(floor) => floors::measure(floor, data, &*clock, reporter),
    }
}

/// Opens the data and measures the epochs of a point.
fn load(
    data: &CubeData,
    point: &Point,
    (cache, clock): (&str, &Arc<dyn Clock>),
    reporter: &mut Reporter<CubeAnswer>,
) -> anyhow::Result<()> {
    if let Some(limit) = &point.io_limit {
        limit.enter()?;
    }
    let opening = clock.now();
    let bucket = point.io_limit.as_ref().and_then(IoLimit::bucket);
    let device = match point.consumer {
        Consumer::None => None,
        Consumer::StandIn(spec) => {
            let device = StandIn::start(spec, point.settings.release, Arc::clone(clock))?;
            let device: Box<dyn Device> = Box::new(device);
            Some(device)
        }
        Consumer::Torch(spec) => {
            let work = point.torch_work(data.open(None, false)?.n_classes());
            Some(torch::start(&spec, work, Arc::clone(clock))?)
        }
    };
    let memory = device.as_ref().map_or_else(plain_memory, |device| device.memory());
    let pipeline = pipeline(data, point, (bucket.as_ref(), memory))?;
    let open_secs = clock.now().saturating_sub(opening).as_secs_f64();
    let cores = CoreLoads::start(Arc::clone(clock))?;
    let cache = cache.to_owned();
    let clock = Arc::clone(clock);
    Epochs { data, point, pipeline: &pipeline, bucket, device, cores, clock, cache, open_secs }
        .run(reporter)
}
