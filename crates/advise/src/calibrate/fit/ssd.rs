//! Fits `ssd`.
//!
//! The latency of a single 4 KiB read in flight is the time of a die, the controller and the link.
//! The highest read rate is the limit of the dies or the link. Probes of several depths and sizes
//! give the number of dies, the division of the time, and the size that a die reads at once. The
//! parameters of programming, erasing and the buffer follow from probes that write, or have usual
//! values.

use iosched_disk::ssd::{
    SsdBufferConfig, SsdCleaningConfig, SsdFlashConfig, SsdInterfaceConfig, SsdStartConfig, SsdVictim,
};
use iosched_disk::{Model, SsdConfig};

use super::search::{Search, times};
use super::{Fit, bandwidth, most_iops, single};
use crate::calibrate::error::CalibrateError;
use crate::calibrate::evidence::{Evidence, Norm};
use crate::calibrate::probe::Role;

/// Numbers of dies that are tried.
const DIES: [u32; 11] = [1, 2, 4, 8, 12, 16, 24, 32, 64, 96, 128];
/// Candidates for the share of the die in the latency of a single read.
const DIE_SHARES: [f64; 4] = [0.4, 0.6, 0.75, 0.9];
/// Candidates for the size that a die reads at once, sectors.
const READ_SECTORS: [u32; 5] = [8, 16, 32, 64, 128];
/// Candidates for the number of channels that together fill the link.
const CHANNEL_SHARES: [u64; 6] = [1, 2, 3, 4, 6, 8];
/// Longest median read latency of flash, ns.
const LATENCY_NS_MAX: u64 = 5_000_000;
/// Size of a program operation, sectors. Assumed.
const PROGRAM_SECTORS: u32 = 32;
/// Least number of erase blocks in the capacity. With fewer blocks, garbage collection would not
/// resemble the garbage collection of a real device.
const BLOCKS: u64 = 512;
/// Spare flash, per cent. Assumed.
const SPARE_PERCENT: f64 = 7.0;

const READS: [Role; 5] = [Role::Depth, Role::Size, Role::Bandwidth, Role::Sequential, Role::Distance];

fn model(config: SsdConfig) -> Model {
    Model::Ssd(Box::new(config))
}

/// Returns the best model, or the reason why the device is no flash.
pub(super) fn fit(evidence: &Evidence) -> Result<Fit, CalibrateError> {
    let single = single(evidence)?;
    let latency_ns = single.latency.quantile_ns(0.5);
    if latency_ns > LATENCY_NS_MAX {
        return Ok(Err("the reads take longer than reads from flash"));
    }
    let most_iops = most_iops(evidence)?;
    let start = start(evidence, latency_ns as f64, most_iops);
    let mut best: Option<Search<'_, SsdConfig>> = None;
    for dies in DIES {
        for share in DIE_SHARES {
            let mut config = start.clone();
            divide(&mut config, latency_ns as f64, share);
            set_dies(&mut config, dies);
            let found = Search::new(evidence, model, config, &[Role::Depth])?;
            if best.as_ref().is_none_or(|best| found.miss() < best.miss()) {
                best = Some(found);
            }
        }
    }
    let Some(mut search) = best else { return Ok(Err("no values of the parameters give a valid model")) };
    for _ in 0..2 {
        refine(&mut search)?;
    }
    if evidence.norm() == Norm::Squares {
        polish(&mut search)?;
    }
    if evidence.of_role(Role::Write).next().is_some() {
        fit_writes(evidence, &mut search)?;
    }
    Ok(Ok(model(search.into_best())))
}

/// Gives `share` of the latency of a single read to the die. The controller gets the rest, without
/// the time of the data transfer.
fn divide(config: &mut SsdConfig, latency_ns: f64, share: f64) {
    let data_ns = 4096e9 / config.interface.bytes_per_second as f64;
    let rest_ns = latency_ns * (1.0 - share) - 2.0 * data_ns - config.interface.read_command_ns as f64;
    config.flash.read_ns = (latency_ns * share) as u64;
    config.interface.read_latency_ns = rest_ns.max(0.0) as u64;
}

/// Sets the number of dies, and an erase size that leaves enough blocks.
fn set_dies(config: &mut SsdConfig, dies: u32) {
    config.flash.dies = dies;
    config.flash.channels = dies.min(8);
    let wanted = config.capacity_sectors / u64::from(dies) / BLOCKS / u64::from(PROGRAM_SECTORS);
    config.flash.erase_sectors = PROGRAM_SECTORS * (wanted.clamp(1, 1 << 18) as u32).next_power_of_two().min(1 << 18);
}

fn start(evidence: &Evidence, latency_ns: f64, most_iops: f64) -> SsdConfig {
    let target = &evidence.target;
    let link = (bandwidth(evidence) * 1.05) as u64;
    let mut config = SsdConfig {
        capacity_sectors: target.capacity_sectors,
        depth: target.depth.max(1),
        hw_queues: 1,
        specimens_percent: 0.0,
        max_hw_sectors_kb: target.max_sectors_kb.max(4),
        fua: target.fua,
        flash: SsdFlashConfig {
            dies: 1,
            channels: 1,
            channel_bytes_per_second: link.max(1_000_000),
            read_sectors: 8,
            read_ns: 0,
            program_sectors: PROGRAM_SECTORS,
            program_ns: 600_000,
            erase_sectors: PROGRAM_SECTORS,
            erase_ns: 5_000_000,
            suspend_ns: 10_000,
            suspends_max: 4,
            reads_in_a_row: 8,
            programs_max: None,
            cached_programs: 0,
            quick_read: None,
        },
        buffer: SsdBufferConfig {
            sectors: 16_384,
            power_loss_protection: !target.write_cache,
            reported: Some(target.write_cache),
            flush_ns: 100_000,
        },
        cache: None,
        cleaning: SsdCleaningConfig { spare_percent: SPARE_PERCENT, victim: SsdVictim::Greedy, burst_sectors: 0 },
        start: SsdStartConfig::FRESH,
        interface: SsdInterfaceConfig {
            read_latency_ns: 0,
            write_latency_ns: (latency_ns / 4.0) as u64,
            // One half of the time per command at the highest rate.
            read_command_ns: (0.5e9 / most_iops) as u64,
            write_command_ns: (0.5e9 / most_iops) as u64,
            bytes_per_second: link.max(1_000_000),
            full_duplex: true,
            read_page_ns: 0,
            command_slots: None,
        },
    };
    set_dies(&mut config, 1);
    config
}

/// Returns every combination of a number of dies and a read size of a die. Fast large reads need
/// either many dies or large reads of a die.
fn dies_and_pages() -> Vec<(u32, u32)> {
    DIES.iter().flat_map(|&dies| READ_SECTORS.map(|sectors| (dies, sectors))).collect()
}

/// Refines one parameter after another.
fn refine(search: &mut Search<'_, SsdConfig>) -> Result<(), CalibrateError> {
    let link = |config: &mut SsdConfig, factor| {
        config.interface.bytes_per_second = times(config.interface.bytes_per_second, factor);
    };
    let channel = |config: &mut SsdConfig, factor| {
        config.flash.channel_bytes_per_second = times(config.flash.channel_bytes_per_second, factor);
    };
    search
        .judged_by(&[Role::Size, Role::Bandwidth, Role::Sequential])?
        .among(&READ_SECTORS, |config, sectors| config.flash.read_sectors = sectors)?
        .among(&CHANNEL_SHARES, |config, share| {
            config.flash.channel_bytes_per_second = config.interface.bytes_per_second / share;
        })?
        .scale(link)?
        .scale(channel)?
        .judged_by(&[Role::Depth, Role::Distance, Role::Size])?
        .among(&dies_and_pages(), |config, (dies, sectors)| {
            set_dies(config, dies);
            config.flash.read_sectors = sectors;
        })?
        .judged_by(&[Role::Depth, Role::Distance])?
        .scale(|config, factor| config.interface.read_command_ns = times(config.interface.read_command_ns, factor))?
        .scale(|config, factor| config.flash.read_ns = times(config.flash.read_ns, factor))?
        .scale(|config, factor| config.interface.read_latency_ns = times(config.interface.read_latency_ns, factor))?
        .judged_by(&READS)?
        .scale(|config, factor| config.flash.read_ns = times(config.flash.read_ns, factor))?
        .scale(link)?
        .judged_by(&[Role::Depth, Role::Distance])?
        .scale(|config, factor| config.interface.read_command_ns = times(config.interface.read_command_ns, factor))?;
    Ok(())
}

/// Changes the parameters of reads one after the other, until the model comes no closer to the
/// measured reads. The search compares all reads after each change, because a table can lack the
/// rows that show a single parameter.
fn polish(search: &mut Search<'_, SsdConfig>) -> Result<(), CalibrateError> {
    /// Largest number of rounds, and the largest ratio of distances that justifies another round.
    const ROUNDS: u32 = 6;
    const IMPROVEMENT: f64 = 0.99;
    search.judged_by(&READS)?;
    for _ in 0..ROUNDS {
        let before = search.miss();
        search
            .among(&DIES, set_dies)?
            .scale(|config, factor| config.interface.read_command_ns = times(config.interface.read_command_ns, factor))?
            .scale(|config, factor| {
                config.interface.bytes_per_second = times(config.interface.bytes_per_second, factor);
            })?
            .scale(|config, factor| {
                config.flash.channel_bytes_per_second = times(config.flash.channel_bytes_per_second, factor);
            })?
            .scale(|config, factor| config.flash.read_ns = times(config.flash.read_ns, factor))?
            .scale(|config, factor| config.interface.read_latency_ns = times(config.interface.read_latency_ns, factor))?
            // The time of a single read stays the same. Part of it moves between the die and the
            // controller.
            .scale(|config, factor| {
                let sum = config.flash.read_ns + config.interface.read_latency_ns;
                config.flash.read_ns = times(config.flash.read_ns, factor).min(sum);
                config.interface.read_latency_ns = sum - config.flash.read_ns;
            })?;
        if search.miss() > before * IMPROVEMENT {
            break;
        }
    }
    Ok(())
}

/// Fits the parameters of writes and flushes.
fn fit_writes(evidence: &Evidence, search: &mut Search<'_, SsdConfig>) -> Result<(), CalibrateError> {
    if let Some(flush) = evidence.of_role(Role::Flush).next() {
        let program_ns = search.best().flash.program_ns;
        let mean_ns = flush.summary.flushes.mean_ns() as u64;
        search.set(|config| {
            let programs_ns = if config.buffer.power_loss_protection { 0 } else { program_ns };
            config.buffer.flush_ns = mean_ns.saturating_sub(programs_ns);
        })?;
    }
    search.judged_by(&[Role::Write, Role::Mixed])?;
    for _ in 0..2 {
        search
            .among(&[false, true], |config, both_ways| config.interface.full_duplex = both_ways)?
            .scale(|config, factor| {
                config.interface.write_command_ns = times(config.interface.write_command_ns, factor);
            })?
            .scale(|config, factor| {
                config.interface.write_latency_ns = times(config.interface.write_latency_ns, factor);
            })?
            .scale(|config, factor| config.flash.program_ns = times(config.flash.program_ns, factor))?;
    }
    Ok(())
}
