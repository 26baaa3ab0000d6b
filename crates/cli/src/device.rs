//! `iosched device`: the device models and their comparison with the real devices.

use std::fmt::Write as _;

use anyhow::Result;
use clap::Subcommand;
use iosched_advise::io_cost::IoCost;
use iosched_disk::Profile;
use iosched_disk::io_cost::Family;
use iosched_disk::measure::data_sheet;
use serde_json::{Value, json};

use iosched_terminal::show::{device, io_cost};
use iosched_terminal::{output, show};

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    /// List the profiles that come with iosched
    List {
        /// List the devices of this family instead; the family "ssd" has drives with known maximum
        /// rates and unknown latencies
        #[arg(long, value_name = "NAME", value_parser = family)]
        family: Option<&'static Family>,
        /// Print the list as one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show rates, latencies and flush times of a device model, next to those of the real device
    Show {
        /// A profile from `iosched device list`, or a file whose name contains a / or ends in .toml
        ///
        /// For flash, NAME:steady models a drive that was filled and overwritten before.
        #[arg(value_name = "PROFILE|FILE")]
        device: String,
        /// List the fitted parameters, the measurements used to fit each parameter, and the assumed parameters
        #[arg(long, conflicts_with = "json")]
        assumptions: bool,
        /// Print the profile as a TOML file, to copy and change
        #[arg(long, conflicts_with_all = ["json", "assumptions"])]
        toml: bool,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print io.cost settings for a device: linear model, latencies and an entry for systemd's hwdb
    ///
    /// To find the values, iosched increases the load on the model of the device until the rate no longer grows.
    #[command(name = "io-cost")]
    IoCost {
        /// A profile from `iosched device list` or from a family, or a file whose name contains a /
        /// or ends in .toml
        #[arg(value_name = "PROFILE|FILE")]
        device: String,
        /// Name of the device model in udev (ID_MODEL), for the hwdb entry
        #[arg(long, value_name = "NAME")]
        model_name: Option<String>,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
}

fn family(text: &str) -> Result<&'static Family, String> {
    Family::named(text).ok_or_else(|| {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.name).collect();
        format!("there is no family of devices {text:?}; available: {}", known.join(", "))
    })
}

pub(crate) fn run(command: &DeviceCommand) -> Result<()> {
    let text = match command {
        DeviceCommand::List { family: Some(family), json: false } => return show::page(&device::members(family)),
        DeviceCommand::List { family: Some(family), json: true } => {
            let list = family.members().into_iter().map(|member| {
                let runs: Vec<Value> = member
                    .runs
                    .iter()
                    .map(
                        |run| json!({ "model": run.model, "qos": run.qos, "kernel": run.kernel, "result": run.result }),
                    )
                    .collect();
                let profile = Profile::of_member(family, &member)?;
                Ok(json!({
                    "name": member.name, "kind": profile.model().kind(), "about": profile.about(),
                    "model_name": member.model_name, "mean": member.mean(), "runs": runs, "fit": profile.fit(),
                }))
            });
            serde_json::to_string_pretty(&list.collect::<Result<Vec<_>>>()?)? + "\n"
        }
        DeviceCommand::IoCost { device, model_name, json } => {
            let profile = Profile::load(device)?;
            let known = Family::member(profile.name()).map(|(_, member)| member.model_name);
            let name = model_name.as_deref().or(known.as_deref());
            let io_cost = IoCost::of_profile(&profile);
            if *json {
                let mut document = serde_json::to_value(&io_cost)?;
                document["hwdb"] = io_cost.hwdb(name).into();
                serde_json::to_string_pretty(&document)? + "\n"
            } else {
                return show::page(&io_cost::text(&io_cost, name));
            }
        }
        DeviceCommand::List { family: None, json: false } => {
            let mut text = String::new();
            for name in Profile::names() {
                let _ = writeln!(text, "{name:18}{}", Profile::named(name)?.about());
            }
            return show::page(&text);
        }
        DeviceCommand::List { family: None, json: true } => {
            let list = Profile::names().map(|name| {
                let profile = Profile::named(name)?;
                Ok(json!({ "name": name, "kind": profile.model().kind(), "about": profile.about() }))
            });
            serde_json::to_string_pretty(&list.collect::<Result<Vec<_>>>()?)? + "\n"
        }
        DeviceCommand::Show { device, assumptions, toml, json } => {
            let profile = Profile::load(device)?;
            if *toml {
                // The text of a built-in profile has comments about the sources of its values.
                let text = Profile::built_in_text(device).map_or_else(|| profile.to_toml(), |text| Ok(text.to_owned()));
                return output::print(&text?);
            }
            if *assumptions {
                return show::page(&device::assumptions(&profile));
            }
            let sheet = data_sheet(&profile);
            if *json {
                serde_json::to_string_pretty(&device::json(&profile, &sheet)?)? + "\n"
            } else {
                return show::page(&device::text(&profile, &sheet));
            }
        }
    };
    output::print(&text)
}
