//! The interface to the optimiser. Only this file uses the crate `tpe`.
//!
//! For each dimension, TPE models where good trials lie and where the other trials lie. It proposes
//! values that are likelier among the good trials. TPE suits this search space: some dimensions
//! exist only for one elevator, there are few trials, and there are no gradients. The scale of the
//! objective does not matter, because TPE uses only ranks.

use std::convert::Infallible;

use iosched_numbers::SplitMix64;
use rand::TryRng;
use tpe::density_estimation::DefaultEstimatorBuilder;
use tpe::{TpeOptimizer, TpeOptimizerBuilder};

use super::space::{Point, Space};

/// Share of the trials that count as good.
const GOOD_SHARE: f64 = 0.2;

/// Returns a new point of `space`. `trials` are points with their losses. `None` if the space has
/// nothing to choose from.
pub(super) fn propose(space: &Space, trials: &[(&Point, f64)], random: &mut SplitMix64) -> Option<Point> {
    let random = &mut Random(random);
    let elevators = space.elevators.len();
    let elevator = choose(elevators, trials.iter().map(|(point, loss)| (point.elevator, *loss)), Kind::Names, random)?;
    let of_elevator: Vec<_> = trials.iter().filter(|(point, _)| point.elevator == elevator).collect();
    let dimensions = &space.elevators[elevator].dimensions;
    let levels = dimensions.iter().enumerate().map(|(number, dimension)| {
        let levels_tried = of_elevator.iter().map(|(point, loss)| (point.levels[number], *loss));
        choose(dimension.values.len(), levels_tried, Kind::Steps, random)
    });
    Some(Point { elevator, levels: levels.collect::<Option<_>>()? })
}

/// Meaning of the numbers of a dimension.
enum Kind {
    /// Ordered values: neighbours have similar effects.
    Steps,
    /// Unordered names.
    Names,
}

/// Returns one of `0..count`, by the losses of the earlier choices in `tried`.
fn choose(
    count: usize,
    tried: impl Iterator<Item = (usize, f64)>,
    kind: Kind,
    random: &mut Random<'_>,
) -> Option<usize> {
    if count <= 1 {
        return (count == 1).then_some(0);
    }
    let mut optimiser = optimiser(count, kind)?;
    for (number, loss) in tried {
        // The centre of the interval that represents the number.
        optimiser.tell(number as f64 + 0.5, loss).ok()?;
    }
    let proposed = optimiser.ask(random).unwrap_or_else(|never: Infallible| match never {});
    Some((proposed as usize).min(count - 1))
}

fn optimiser(count: usize, kind: Kind) -> Option<TpeOptimizer<DefaultEstimatorBuilder>> {
    let range = tpe::range(0.0, count as f64).ok()?;
    let estimator = match kind {
        Kind::Steps => tpe::parzen_estimator(),
        Kind::Names => tpe::histogram_estimator(),
    };
    TpeOptimizerBuilder::new().gamma(GOOD_SHARE).build(estimator, range).ok()
}

/// Adapts the generator of iosched to the trait of the crate.
struct Random<'a>(&'a mut SplitMix64);

impl TryRng for Random<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iosched::QueueConfig;

    use super::super::space::Selection;
    use iosched::Setting;

    use super::*;

    #[test]
    fn late_proposals_are_near_the_best_setting() {
        let schedulers = ["cfq", "deadline"].map(Setting::defaults);
        let space = Space::of(&schedulers, &Selection::default(), &QueueConfig::default()).unwrap();
        // Only the first tunable of deadline matters, and its smallest value is best.
        let loss = |point: &Point| if point.elevator == 0 { 9.0 } else { point.levels[0] as f64 };
        let mut random = SplitMix64::new(1);
        let mut trials: Vec<(Point, f64)> = space.defaults().map(|point| (point.clone(), loss(&point))).collect();
        let mut late = Vec::new();
        for number in 0..60 {
            let tried: Vec<(&Point, f64)> = trials.iter().map(|(point, loss)| (point, *loss)).collect();
            let point = propose(&space, &tried, &mut random).unwrap();
            late.extend((number >= 40).then(|| loss(&point)));
            trials.push((point.clone(), loss(&point)));
        }
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(mean < 2.0, "{late:?}");
    }

    #[test]
    fn space_without_dimensions_proposes_the_default() {
        let space = Space::of(&[Setting::defaults("noop")], &Selection::default(), &QueueConfig::default());
        let space = space.unwrap();
        let point = propose(&space, &[], &mut SplitMix64::new(1)).unwrap();
        assert_eq!(point, space.defaults().next().unwrap());
    }
}
